//! Judges each measurement of a bundle: the answer of the rule, if the evidence allows it.

use std::collections::BTreeSet;

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::MarkedValue;
use tactus_model::document::{ClassEntry, Fit, FitnessEntry};
use tactus_model::event::RowStatus;
use tactus_model::number::float;
use tactus_model::outcome::SeriesResult;
use tactus_model::plan::Class;

use super::rule::{Held, Room, held};
use crate::row::{Runs, bounded_rate, figures, looked_ns, standing};
use crate::stats::{Line, comparison};

/// Why it is not judged how long an application computes.
pub const COMPUTES: &str = "it is computing time, not a latency";

/// A measurement of latencies that is not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: &'static str,
}

/// Every kind of latency of every measurement, and below it what its document published, in the order of the report.
#[must_use]
pub fn entries(contents: &Contents, classes: &[Class]) -> Vec<FitnessEntry> {
    let (mut all, mut told): (Vec<FitnessEntry>, _) = (Vec::new(), BTreeSet::new());
    let measurements = Runs::new(contents);
    for line in comparison(contents) {
        let Some(row) = contents.rows.get(line.row) else { continue };
        let planned = measurements.of(line.row);
        let runs = judged(planned, row);
        let mut kinds: Vec<&str> = Vec::new();
        for series in runs.iter().flat_map(|run| run.result.series()) {
            if !kinds.contains(&series.key.kind.as_str()) {
                kinds.push(&series.key.kind);
            }
        }
        all.extend(kinds.into_iter().filter_map(|kind| measured(&runs, planned.len(), kind, classes)));
        // Several measurements of one scenario may share what was published of it.
        if let Some(theirs) = published(&line, &row.result, classes)
            && told.insert((&row.result.name, &row.result.environment))
        {
            all.push(theirs);
        }
    }
    all
}

/// Whether it says how long an application computes, and nothing of when it began: no latency.
fn only_computes(row: &Row) -> bool {
    matches!(&row.result.measurement, Measure::Application(of) if of.value() == MarkedValue::Execution)
}

/// How much of the cycle it may take: a response ends when the application has computed.
fn room(row: &Row) -> Room {
    match &row.result.measurement {
        Measure::Application(of) if of.value() == MarkedValue::Response => Room::Cycle,
        _ => Room::Share,
    }
}

/// The measurements of latencies that are not judged, though they have numbers.
#[must_use]
pub fn left_out(contents: &Contents) -> Vec<LeftOut> {
    let why = |row: &Row| match row.result.status {
        _ if !row.result.fault.is_empty() => Some("a fault was injected"),
        RowStatus::Failed => Some("it failed"),
        _ if only_computes(row) => Some(COMPUTES),
        _ => None,
    };
    let of = |line: Line| {
        let row = contents.rows.get(line.row)?;
        figures(&row.result)?;
        Some(LeftOut { why: why(row)?, name: line.name })
    };
    comparison(contents).into_iter().filter_map(of).collect()
}

/// The runs of a measurement that can be judged: completed ones, of a scenario without a fault. The effect of
/// a fault is known before, and no application causes one.
fn judged<'a>(planned: &[&'a Row], row: &Row) -> Vec<&'a Row> {
    if !row.result.fault.is_empty() || only_computes(row) {
        return Vec::new();
    }
    let says = |run: &&Row| run.result.status == RowStatus::Measured && figures(&run.result).is_some();
    planned.iter().copied().filter(says).collect()
}

/// The latencies of one kind in all runs together: the smallest of all, the largest of all.
fn measured(runs: &[&Row], planned: usize, kind: &str, classes: &[Class]) -> Option<FitnessEntry> {
    let first = runs.first()?;
    let (result, room) = (&first.result, room(first));
    let series = || runs.iter().flat_map(|run| run.result.series()).filter(|one| one.key.kind == kind);
    let of = |value: fn(&SeriesResult) -> Option<u64>| series().filter_map(value);
    let best_ns = of(|one| one.summary.min_ns).min()?;
    let worst_ns = of(|one| one.summary.max_ns).max()?;
    let sum =
        |of: fn(&RowResult) -> u64| runs.iter().fold(0, |sum: u64, run| sum.saturating_add(of(&run.result)));
    let (measured_ns, looked_ns) = (sum(|result| result.measured_ns), sum(looked_ns));
    // A file of another tool need not say how long, or how often.
    let known = runs.iter().all(|run| run.result.measured_ns > 0);
    let periodic = !matches!(result.measurement, Measure::Spin(_)) && result.interval_ns > 0;
    let may_say = may_say(runs, planned);
    Some(FitnessEntry {
        environment: result.environment.clone(),
        to: result.to.clone(),
        host: result.host.clone(),
        scenario: result.name.clone(),
        latency: Some(kind.to_owned()),
        published: None,
        evidence: result.evidence,
        runs: runs.len(),
        duration_s: known.then(|| float(measured_ns) / 1e9),
        cycles: Some(series().fold(0, |sum: u64, one| sum.saturating_add(one.summary.cycles))),
        interval_ns: periodic.then_some(result.interval_ns),
        best_ns,
        worst_ns,
        jitter_ns: worst_ns.saturating_sub(best_ns),
        worse_per_s: (known && looked_ns > 0).then(|| bounded_rate(looked_ns)),
        classes: classes
            .iter()
            .map(|class| answer(class, held(class, best_ns, worst_ns, room), &may_say))
            .collect(),
    })
}

/// How much the evidence of some runs carries.
enum MaySay {
    /// Nothing, and why.
    Nothing(Fit, String),
    /// It may be said that something is lacking; that nothing is lacking, only without such a doubt.
    Doubted(Option<String>),
}

/// Of several runs the one that carries least counts, as for a verdict.
fn may_say(runs: &[&Row], planned: usize) -> MaySay {
    let mut doubts: Vec<String> = Vec::new();
    for run in runs {
        match standing(&run.result) {
            Err(reason) if run.result.evidence == Some(Evidence::Emulated) => {
                return MaySay::Nothing(Fit::Emulated, reason);
            }
            Err(reason) => return MaySay::Nothing(Fit::Unknowable, reason),
            Ok(doubt) => doubts.extend(doubt),
        }
    }
    if runs.len() < planned {
        doubts.push(format!("{} of {planned} runs were measured", runs.len()));
    }
    MaySay::Doubted(doubts.into_iter().next())
}

fn answer(class: &Class, held: Held, may_say: &MaySay) -> ClassEntry {
    let (fit, reason) = match may_say {
        MaySay::Nothing(fit, reason) => (*fit, Some(reason.clone())),
        MaySay::Doubted(_) if !held.lacks.is_empty() => (Fit::Unfit, None),
        MaySay::Doubted(Some(doubt)) => (Fit::Unknowable, Some(doubt.clone())),
        MaySay::Doubted(None) => (Fit::Fit, None),
    };
    ClassEntry {
        class: class.name.clone(),
        fit,
        demanding: fit == Fit::Fit && held.demanding,
        shortest_cycle_ns: held.shortest_cycle_ns,
        margin: held.margin,
        lacks: held.lacks,
        reason,
    }
}

/// The figures of a document, if it has the smallest and the largest. They are judged as published: the
/// publisher answers for them.
fn published(line: &Line, result: &RowResult, classes: &[Class]) -> Option<FitnessEntry> {
    let theirs = line.published.as_ref()?;
    let (best_ns, worst_ns) = (theirs.min_ns?, theirs.max_ns?);
    let as_it_stands = MaySay::Doubted(None);
    Some(FitnessEntry {
        environment: result.environment.clone(),
        to: None,
        host: None,
        scenario: result.name.clone(),
        latency: None,
        published: Some(theirs.source.clone()),
        evidence: None,
        runs: 0,
        duration_s: None,
        cycles: None,
        interval_ns: None,
        best_ns,
        worst_ns,
        jitter_ns: worst_ns.saturating_sub(best_ns),
        worse_per_s: None,
        classes: classes
            .iter()
            .map(|class| answer(class, held(class, best_ns, worst_ns, Room::Share), &as_it_stands))
            .collect(),
    })
}
