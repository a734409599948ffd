//! Figures that are impossible, from any source: no report shows them.

use crate::Evidence;
use crate::bundle::RowResult;
use crate::latency::{Corrected, HIGHEST_NS, Summary};
use crate::number::float;
use crate::outcome::{Outcome, RowEnd};

/// Allowed distance of a mean outside of the range of its values: sums are kept in whole ns, and divided in floating
/// point.
const ROUNDING: f64 = 1e-9;
/// Allowed number of periods of a thread, as a multiple of those that fit into its time: clocks differ, and the last
/// period is a whole one.
const PERIODS: u64 = 2;

/// Why the latencies of a row are impossible; `None`: they are possible. A latency may be longer than its measurement
/// only if a pause held the thread beyond the end; the log then contains it as well. `logged_ns` finds the largest
/// latency in the log.
pub fn impossible(row: &RowResult, logged_ns: impl FnOnce() -> u64) -> Option<String> {
    let Outcome::Latency(latencies) = &row.outcome else { return None };
    let series = latencies.series.iter().map(|series| (series.key.to_string(), &series.summary, 1));
    let threads = latencies.series.len().max(1);
    let all = latencies.all.iter().map(|all| ("all threads".to_owned(), all, threads));
    let each: Vec<_> = series.chain(all).collect();
    let lasted_ns = row.planned_ns.max(row.measured_ns);
    let longest_ns = match row.evidence {
        // A file of another tool need not say how long it measured.
        Some(Evidence::Imported) => u64::MAX - 1,
        _ if each.iter().all(|(_, summary, _)| summary.max_ns <= Some(lasted_ns)) => lasted_ns,
        _ => {
            let outliers = latencies.series.iter().flat_map(|series| &series.outliers);
            let logged_ns = outliers.map(|outlier| outlier.value_ns).fold(logged_ns(), u64::max);
            lasted_ns.max(logged_ns.min(HIGHEST_NS))
        }
    };
    each.into_iter().find_map(|(who, summary, threads)| {
        let why = of(summary, longest_ns).or_else(|| of_row(row, summary, lasted_ns, threads))?;
        Some(format!("of {who} {why}"))
    })
}

/// Why figures contradict the time and the period of their row. Figures that another tool leaves out are unknown.
fn of_row(row: &RowResult, all: &Summary, lasted_ns: u64, threads: usize) -> Option<&'static str> {
    if row.evidence == Some(Evidence::Imported) || all.cycles == 0 {
        return None;
    }
    if row.ended == RowEnd::Complete && row.measured_ns == 0 {
        return Some("there are latencies, but no time in which they were measured");
    }
    let gaps = row.restarts.iter().fold(row.planned_ns / 200, |sum, own| sum.saturating_add(own.gap_ns));
    if row.planned_ns > 0 && row.measured_ns > row.planned_ns.saturating_add(gaps) {
        return Some("the measurement is longer than planned");
    }
    if !row.measurement.has_periods() || row.measurement.only_reads() {
        return None;
    }
    if row.interval_ns == 0 {
        return (all.missed() > 0).then_some("periods were missed, but there is no period");
    }
    let threads = u64::try_from(threads).unwrap_or(u64::MAX);
    let fit = (lasted_ns / row.interval_ns).saturating_add(1).saturating_mul(PERIODS).saturating_mul(threads);
    (all.cycles.saturating_add(all.missed()) > fit)
        .then_some("there are more periods than fit into the time of the measurement")
}

fn of(all: &Summary, longest_ns: u64) -> Option<&'static str> {
    let Summary { min_ns, max_ns, mean_ns, .. } = *all;
    if all.cycles > 0 && max_ns.is_none() {
        return Some("there are cycles, but no largest latency");
    }
    let (least, most) = (min_ns.unwrap_or(0), max_ns.unwrap_or(u64::MAX));
    if max_ns.is_some_and(|max| max > longest_ns) {
        return Some("the largest latency is longer than the measurement");
    }
    if least > most {
        return Some("the smallest latency is above the largest");
    }
    if let Some(mean) = mean_ns {
        if !mean.is_finite() || mean < float(least) * (1.0 - ROUNDING) {
            return Some("the mean is below the smallest latency");
        }
        if mean > float(most) * (1.0 + ROUNDING) + 1.0 {
            return Some("the mean is above the largest latency");
        }
    }
    let Corrected { p50_ns, p99_ns, p999_ns, p9999_ns, p99999_ns, .. } = all.corrected;
    let raw = [all.p50_ns, all.p99_ns, all.p999_ns, all.p9999_ns, all.p99999_ns, max_ns];
    let corrected = [p50_ns, p99_ns, p999_ns, p9999_ns, p99999_ns, max_ns];
    let rises = |quantiles: &[Option<u64>]| quantiles.iter().flatten().is_sorted();
    (!rises(&raw) || !rises(&corrected))
        .then_some("a quantile is above one that is nearer to the largest latency")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalogue::Measure;
    use crate::latency::Latency;
    use crate::outcome::LatencyOutcome;

    const S: u64 = 1_000_000_000;

    /// Ten seconds at 1 ms.
    fn alone(all: Summary) -> RowResult {
        RowResult {
            interval_ns: S / 1_000,
            planned_ns: 10 * S,
            measured_ns: 10 * S,
            ended: RowEnd::Complete,
            outcome: Outcome::Latency(LatencyOutcome { series: Vec::new(), all: Some(all) }),
            ..RowResult::unmeasured("host, timer", "host", "host")
        }
    }

    fn sound() -> Summary {
        Summary {
            cycles: 3,
            overruns: Some(2),
            min_ns: Some(1_000),
            mean_ns: Some(2_000.0),
            p50_ns: Some(2_000),
            p99_ns: Some(3_000),
            max_ns: Some(3_000),
            ..Summary::default()
        }
    }

    #[test]
    fn each_figure_that_cannot_be_is_named() {
        let sound = sound();
        assert_eq!(impossible(&alone(sound.clone()), || 0), None);
        let why = |summary: Summary| impossible(&alone(summary), || 0).unwrap();
        assert!(
            why(Summary { max_ns: Some(u64::MAX), ..sound.clone() }).contains("longer than the measurement")
        );
        assert!(why(Summary { min_ns: Some(u64::MAX), ..sound.clone() }).contains("above the largest"));
        assert!(why(Summary { mean_ns: Some(0.0), ..sound.clone() }).contains("below the smallest"));
        assert!(why(Summary { mean_ns: Some(f64::NAN), ..sound.clone() }).contains("the mean"));
        assert!(why(Summary { mean_ns: Some(9_000.0), ..sound.clone() }).contains("above the largest"));
        assert!(why(Summary { p99_ns: Some(4_000), ..sound.clone() }).contains("a quantile"));
        assert!(why(Summary { p50_ns: Some(3_001), ..sound.clone() }).contains("a quantile"));
        assert!(why(Summary { max_ns: None, ..sound.clone() }).contains("no largest latency"));
        assert!(why(Summary { overruns: Some(1 << 60), ..sound.clone() }).contains("more periods"));
        assert!(why(Summary { cycles: 1 << 60, ..sound }).contains("more periods"));
    }

    #[test]
    fn a_latency_longer_than_its_measurement_is_one_that_the_logs_have_too() {
        let all = Summary { max_ns: Some(11 * S), ..sound() };
        let row = alone(all);
        assert!(impossible(&row, || 0).unwrap().contains("longer than the measurement"));
        assert_eq!(impossible(&row, || 11 * S), None, "the thread was held beyond the end");
        let beyond = alone(Summary { max_ns: Some(2 * HIGHEST_NS), ..sound() });
        assert!(impossible(&beyond, || u64::MAX).is_some(), "nobody waits for hours");
        let imported = RowResult { evidence: Some(Evidence::Imported), planned_ns: 0, measured_ns: 0, ..row };
        assert_eq!(impossible(&imported, || 0), None, "another tool need not say how long it measured");
    }

    #[test]
    fn figures_go_with_the_time_and_the_period_of_their_row() {
        let whole = || alone(sound());
        let why = |row: RowResult| impossible(&row, || 0).unwrap();
        assert!(why(RowResult { measured_ns: 0, ..whole() }).contains("no time"));
        assert!(why(RowResult { measured_ns: 10_000 * S, ..whole() }).contains("longer than planned"));
        assert!(why(RowResult { interval_ns: 0, ..whole() }).contains("there is no period"));
        let spin = Measure::Spin(crate::catalogue::measure::Spin::default());
        let polled = Summary { cycles: 1 << 40, overruns: None, ..sound() };
        assert_eq!(impossible(&RowResult { measurement: spin, ..alone(polled) }, || 0), None);
        // It ended before its duration was recorded.
        assert_eq!(impossible(&RowResult { measured_ns: 0, ended: RowEnd::Failed, ..whole() }, || 0), None);
    }

    proptest! {
        #[test]
        fn whatever_is_measured_can_be(
            values in proptest::collection::vec(0u64..HIGHEST_NS, 0..100), interval in 10_000_000u64..1_000_000_000,
        ) {
            let (mut latency, mut lasted) = (Latency::new(), interval);
            for value in &values {
                latency.record(*value, interval);
                lasted += interval.max(*value);
            }
            let (planned_ns, measured_ns, interval_ns) = (lasted, lasted, interval);
            let row = |all| RowResult { planned_ns, measured_ns, interval_ns, ..alone(all) };
            prop_assert_eq!(impossible(&row(latency.summary()), || 0), None);
            let again = Latency { totals: latency.summary().totals(), ..latency };
            prop_assert_eq!(impossible(&row(again.summary()), || 0), None);
        }
    }
}
