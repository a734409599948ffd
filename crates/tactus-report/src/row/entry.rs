//! A row in the JSON document.

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::{AttributionEntry, Entry, SeriesEntry, ValueEntry};
use tactus_model::number::float;
use tactus_model::outcome::{ValueResult, Yields};
use tactus_model::scheduling::Policy;

use super::attribution::attribution;
use super::blame::blame;
use super::control::control;
use super::name::inside;
use super::published::{published, published_value};
use super::summary::{figures, reason};
use super::tail::tail_entry;
use super::verdict::verdict;

/// The entry of a row.
#[must_use]
pub fn entry(contents: &Contents, row: &Row) -> Entry {
    let result = &row.result;
    Entry {
        name: result.name.clone(),
        environment: result.environment.clone(),
        host: result.host.clone(),
        repeat: result.repeat,
        kind: result.kind.clone(),
        to: result.to.clone(),
        inside: inside(contents, &result.environment),
        evidence: result.evidence,
        measurement: result.measurement.kind().into(),
        load: result.load.clone(),
        fault: result.fault.clone(),
        status: result.status,
        ended: result.ended,
        reason: reason(contents, result),
        started: result.started.clone(),
        duration_s: measured_s(result),
        interval_ns: (result.interval_ns > 0).then_some(result.interval_ns),
        priority: (result.priority > 0).then_some(result.priority),
        policy: policy(result),
        files: files(contents, row),
        restarts: result.restarts.clone(),
        notes: result.notes.clone(),
        frames_lost: result.frames_lost,
        series: result
            .series()
            .iter()
            .map(|series| SeriesEntry {
                id: series.key.id(&result.environment),
                key: series.key.clone(),
                summary: series.summary.clone(),
            })
            .collect(),
        all: figures(result).cloned(),
        values: (result.outcome.yields() == Yields::Values).then(|| values(contents, result)),
        breakdown: result.breakdown.clone(),
        exits: result.exits.clone(),
        card: result.card,
        self_test: control(result),
        attribution: attribution(result).map(|found| AttributionEntry {
            of: found.of,
            host: if found.is_claimed() { found.host } else { 0 },
            explained: found.host,
            unknown: found.unknown,
            by_chance: found.by_chance,
            chance: found.chance,
            ppm: result.clock_fit.map(|clock| clock.ppm),
            largest_ns: found.largest_ns,
            waited_ns: found.waited_ns,
        }),
        blame: blame(contents, result),
        tail: tail_entry(row),
        published: published(&contents.plan, &result.name, &result.environment),
        verdict: verdict(row),
    }
}

/// How it was scheduled; `None` if a file of another tool does not say it: it has a real-time policy without
/// a priority.
#[must_use]
pub fn policy(result: &RowResult) -> Option<Policy> {
    let unknown = result.evidence == Some(Evidence::Imported)
        && matches!(result.policy, Policy::Fifo | Policy::Rr)
        && result.priority == 0;
    (!unknown).then_some(result.policy)
}

/// How long it measured, in seconds; `None` if a file of another tool does not say it.
fn measured_s(result: &RowResult) -> Option<f64> {
    let known = result.measured_ns > 0 || result.evidence != Some(Evidence::Imported);
    known.then(|| float(result.measured_ns) / 1e9)
}

/// The files of a row, as the manifest names them.
fn files(contents: &Contents, row: &Row) -> Vec<String> {
    let of = |directory: &String| {
        let own = format!("scenarios/{directory}/");
        let from = contents.manifest.files.range(own.clone()..).map(|(name, _)| name.clone());
        from.take_while(move |name| name.starts_with(&own))
    };
    row.directories.iter().flat_map(of).collect()
}

fn values(contents: &Contents, result: &RowResult) -> Vec<ValueEntry> {
    let entry = |of: &ValueResult| ValueEntry {
        result: of.clone(),
        published: published_value(&contents.plan, result, of).map(|theirs| theirs.value),
    };
    result.values().iter().map(entry).collect()
}
