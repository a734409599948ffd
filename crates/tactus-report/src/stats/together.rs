//! The figures of several runs of one measurement.
//!
//! Each figure of a scenario has one definition, however it was measured. The counts of its threads, slices,
//! restarts and runs are added up, and the extremes of all are kept. Quantiles are those of all periods in
//! one histogram. The typical result of a run is another figure, and is called the median of the runs.

use tactus_model::bundle::Row;
use tactus_model::latency::{Corrected, Latency, Summary};
use tactus_model::number::{float, whole};
use tactus_statistics::median;

use crate::row::figures;

/// All that was measured in these runs, as if it were one run. Quantiles are not known where a histogram lacks what its
/// run counted.
pub(super) fn together(runs: &[&Row]) -> Option<Summary> {
    let measured: Vec<&Row> = runs.iter().copied().filter(|row| figures(&row.result).is_some()).collect();
    match measured.as_slice() {
        [] => None,
        [one] => figures(&one.result).cloned(),
        several => {
            let (mut all, mut whole) = (Latency::new(), true);
            for row in several {
                whole &= row.add_to(&mut all);
            }
            let summary = all.summary();
            let summary = if whole { summary } else { summary.without_quantiles() };
            let counted =
                several.iter().all(|row| row.result.all().is_some_and(|own| own.overruns.is_some()));
            Some(Summary { overruns: summary.overruns.filter(|_| counted), ..summary })
        }
    }
}

/// The median of each figure of these; `None` without any.
pub(super) fn medians(all: &[&Summary]) -> Option<Summary> {
    let middle = |values: Vec<f64>| median(values);
    let count =
        |of: fn(&Summary) -> u64| middle(all.iter().map(|all| float(of(all))).collect()).map_or(0, whole);
    let known = |of: fn(&Summary) -> Option<f64>| middle(all.iter().filter_map(|all| of(all)).collect());
    let ns = |of: fn(&Summary) -> Option<f64>| known(of).map(whole);
    (!all.is_empty()).then(|| Summary {
        cycles: count(|all| all.cycles),
        overruns: ns(|all| all.overruns.map(float)),
        lost: count(|all| all.lost),
        min_ns: ns(|all| all.min_ns.map(float)),
        mean_ns: known(|all| all.mean_ns),
        p50_ns: ns(|all| all.p50_ns.map(float)),
        p99_ns: ns(|all| all.p99_ns.map(float)),
        p999_ns: ns(|all| all.p999_ns.map(float)),
        p9999_ns: ns(|all| all.p9999_ns.map(float)),
        p99999_ns: ns(|all| all.p99999_ns.map(float)),
        max_ns: ns(|all| all.max_ns.map(float)),
        corrected: Corrected {
            count: count(|all| all.corrected.count),
            lost: count(|all| all.corrected.lost),
            p50_ns: ns(|all| all.corrected.p50_ns.map(float)),
            p99_ns: ns(|all| all.corrected.p99_ns.map(float)),
            p999_ns: ns(|all| all.corrected.p999_ns.map(float)),
            p9999_ns: ns(|all| all.corrected.p9999_ns.map(float)),
            p99999_ns: ns(|all| all.corrected.p99999_ns.map(float)),
        },
    })
}
