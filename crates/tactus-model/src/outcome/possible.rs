//! Figures that cannot be, whoever wrote them: no report shows one.

use crate::latency::{Corrected, HIGHEST_NS, Summary};
use crate::number::float;
use crate::outcome::LatencyOutcome;

/// By how much a mean may be outside of what it is the mean of: sums are kept in whole ns, and divided in floating point.
const ROUNDING: f64 = 1e-9;

/// Why the latencies of a row that was to measure, or did measure, so long cannot be; none: they can. A thread that is held
/// beyond the end of its measurement is late for longer than that lasted, but nobody waits for hours.
#[must_use]
pub fn impossible(latencies: &LatencyOutcome, lasted_ns: u64) -> Option<String> {
    let longest_ns = lasted_ns.max(HIGHEST_NS);
    let series = latencies.series.iter().map(|series| (series.key.to_string(), &series.summary));
    let all = latencies.all.iter().map(|all| ("all threads".to_owned(), all));
    series.chain(all).find_map(|(who, summary)| Some(format!("of {who} {}", of(summary, longest_ns)?)))
}

fn of(all: &Summary, longest_ns: u64) -> Option<&'static str> {
    let Summary { min_ns, max_ns, mean_ns, .. } = *all;
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
    use crate::latency::Latency;

    fn alone(all: Summary) -> LatencyOutcome {
        LatencyOutcome { series: Vec::new(), all: Some(all) }
    }

    #[test]
    fn each_figure_that_cannot_be_is_named() {
        let sound = Summary {
            cycles: 3,
            min_ns: Some(1_000),
            mean_ns: Some(2_000.0),
            p50_ns: Some(2_000),
            p99_ns: Some(3_000),
            max_ns: Some(3_000),
            ..Summary::default()
        };
        assert_eq!(impossible(&alone(sound.clone()), 10), None);
        let why = |summary: Summary| impossible(&alone(summary), 10).unwrap();
        assert!(
            why(Summary { max_ns: Some(u64::MAX), ..sound.clone() }).contains("longer than the measurement")
        );
        assert!(why(Summary { min_ns: Some(u64::MAX), ..sound.clone() }).contains("above the largest"));
        assert!(why(Summary { mean_ns: Some(0.0), ..sound.clone() }).contains("below the smallest"));
        assert!(why(Summary { mean_ns: Some(f64::NAN), ..sound.clone() }).contains("the mean"));
        assert!(why(Summary { mean_ns: Some(9_000.0), ..sound.clone() }).contains("above the largest"));
        assert!(why(Summary { p99_ns: Some(4_000), ..sound.clone() }).contains("a quantile"));
        assert!(why(Summary { p50_ns: Some(3_001), ..sound }).contains("a quantile"));
    }

    proptest! {
        #[test]
        fn whatever_is_measured_can_be(
            values in proptest::collection::vec(0u64..HIGHEST_NS, 0..100), interval in 10_000_000u64..1_000_000_000,
        ) {
            let mut latency = Latency::new();
            values.iter().for_each(|value| latency.record(*value, interval));
            prop_assert_eq!(impossible(&alone(latency.summary()), 1), None);
            let again = Latency { totals: latency.summary().totals(), ..latency };
            prop_assert_eq!(impossible(&alone(again.summary()), 1), None);
        }
    }
}
