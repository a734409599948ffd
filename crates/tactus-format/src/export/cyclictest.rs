//! The common part of cyclictest's two formats: rows of whole microseconds or ns, cut off as cyclictest cuts
//! them off.

use std::collections::BTreeMap;

use tactus_model::number::float;
use tactus_model::series::SeriesKey;
use tactus_model::text::clean;

use super::series::{self, Counted};
use super::{Measured, Options, Source, of_each};

/// The output of cyclictest for a thread. Times are in its unit.
pub(super) struct Thread<'a> {
    pub key: &'a SeriesKey,
    pub cycles: u64,
    pub min: u64,
    pub mean: f64,
    pub max: u64,
    /// Its rows; `None` without a histogram.
    pub rows: Option<BTreeMap<u64, u64>>,
    /// How many of its values are too large for any row.
    pub overflows: u64,
}

/// The threads of a row.
pub(super) fn threads(one: Measured<'_>, options: Options) -> Vec<Thread<'_>> {
    series::of(one.row).map(|counted| thread(&counted, options)).collect()
}

fn thread<'a>(counted: &Counted<'a>, options: Options) -> Thread<'a> {
    let unit_ns = options.unit_ns();
    let summary = &counted.result.summary;
    let max_ns = summary.max_ns.unwrap_or(0);
    let (mut rows, mut overflows) = (BTreeMap::new(), 0_u64);
    for (value_ns, count) in counted.raw.iter().flat_map(|counts| counts.buckets()) {
        // A bucket's largest value may lie above the exact maximum.
        let value = value_ns.min(max_ns.max(1)) / unit_ns;
        if options.histogram.is_some_and(|rows| value >= rows) {
            overflows = overflows.saturating_add(count);
        } else {
            *rows.entry(value).or_insert(0) += count;
        }
    }
    Thread {
        key: &counted.result.key,
        cycles: summary.cycles,
        min: summary.min_ns.unwrap_or(0) / unit_ns,
        mean: summary.mean_ns.unwrap_or(0.0) / float(unit_ns),
        max: max_ns / unit_ns,
        rows: (summary.cycles == 0 || counted.raw.is_some_and(|counts| !counts.is_empty())).then_some(rows),
        overflows,
    }
}

/// Notes on the data of a bundle that cyclictest's formats leave out.
pub(super) fn notes(source: &Source<'_>, options: Options) -> Vec<String> {
    let mut notes = of_each(source.latencies(), |one| {
        let all = one.entry.all.as_ref();
        let (overruns, lost) = all.map_or((0, 0), |all| (all.missed(), all.lost));
        let series = one.row.result.series();
        let mut said = Vec::new();
        if overruns > 0 {
            said.push(format!("the {overruns} periods that late wake-ups missed are not in it"));
        }
        if lost > 0 {
            said.push(format!("{lost} values are in its totals but in no row"));
        }
        if let Some(other) = series.iter().find(|series| series.key.kind != "thread") {
            said.push(format!(
                "the values are of the kind `{}`, but cyclictest's are wake-ups",
                other.key.kind
            ));
        }
        if series
            .iter()
            .zip(0..)
            .any(|(series, column)| series.key.thread != column || series.key.cpu != column)
        {
            let keys: Vec<String> = series.iter().map(|series| series.key.to_string()).collect();
            said.push(format!("its threads are {}, in this order", keys.join(", ")));
        }
        (!said.is_empty()).then(|| said.join("; "))
    });
    if options.unit_ns() > 1 && source.latencies().next().is_some() {
        notes.push(
            "times are cut off to whole microseconds, as cyclictest does it; `--unit ns` keeps them".into(),
        );
    }
    let judged = |one: &Measured<'_>| one.entry.verdict.is_some();
    if source.latencies().any(|one| judged(&one)) {
        notes.push("the verdicts are not in it: `tactus report --format junit` writes them".into());
    }
    notes
}

/// The command in cyclictest's words, with a mark that it is from tactus: cyclictest would not print that.
pub(super) fn command(one: Measured<'_>, options: Options) -> String {
    let result = &one.row.result;
    let mut words = String::from("tactus");
    if result.interval_ns > 0 {
        words += &format!(" -i {}", result.interval_ns / 1_000);
    }
    if result.priority > 0 {
        words += &format!(" -p {}", result.priority);
    }
    if let Some(rows) = options.histogram {
        words += &format!(" -h {rows}");
    }
    if options.unit_ns() == 1 {
        words += " -N";
    }
    let evidence =
        one.entry.evidence.map_or_else(|| "unknown".to_owned(), |evidence| evidence.key().to_owned());
    format!("{words} # {}; evidence: {evidence}", clean(&one.entry.name))
}
