//! Latency histograms: exact minimum, maximum and sum beside an HDR histogram, and the correction
//! for periods that a disturbance swallowed.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::number::{float, whole};

/// The highest value that a histogram distinguishes, in ns (one hour); longer ones count in its last bucket. The exact
/// maximum is kept beside it.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits of a histogram's value: a quantile is within 0.1 %.
pub const DIGITS: u8 = 3;

/// An empty histogram of the one layout that tactus uses everywhere (ns, 1 ns to one hour, 3 digits).
///
/// # Panics
/// Never: the bounds are constants that the library accepts.
#[must_use]
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS).expect("constant bounds are valid")
}

/// Counts of a histogram, bucket by bucket, as they travel: `[value, count, step, count, ...]`, where
/// each value is given as the step from the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sparse(pub Vec<u64>);

/// Why travelling counts cannot be a histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SparseError {
    /// An odd number of entries: a value without its count.
    #[error("the last value has no count")]
    Odd,
    /// The values or counts add up beyond 2^64.
    #[error("the values or counts are too large")]
    TooLarge,
}

impl Sparse {
    /// The non-empty buckets of `histogram`.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let mut flat = Vec::new();
        let mut last = 0;
        for bucket in histogram.iter_recorded() {
            let value = bucket.value_iterated_to();
            flat.extend([value - last, bucket.count_at_value()]);
            last = value;
        }
        Self(flat)
    }

    /// Value and count of each bucket, in rising order.
    ///
    /// # Errors
    /// When the list is truncated or its numbers overflow: it may come from any source.
    pub fn buckets(&self) -> Result<Vec<(u64, u64)>, SparseError> {
        if !self.0.len().is_multiple_of(2) {
            return Err(SparseError::Odd);
        }
        let mut value: u64 = 0;
        let mut total: u64 = 0;
        self.0
            .chunks_exact(2)
            .map(|pair| {
                value = value.checked_add(pair[0]).ok_or(SparseError::TooLarge)?;
                total = total.checked_add(pair[1]).ok_or(SparseError::TooLarge)?;
                Ok((value, pair[1]))
            })
            .collect()
    }

    /// Adds the counts to `histogram`.
    ///
    /// # Errors
    /// As [`Sparse::buckets`]; `histogram` is then unchanged.
    pub fn add_to(&self, histogram: &mut Histogram<u64>) -> Result<(), SparseError> {
        for (value, count) in self.buckets()? {
            histogram.saturating_record_n(value, count);
        }
        Ok(())
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Exact counts, without a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Wake-ups measured (for `spin`: passes of the polling loop).
    pub cycles: u64,
    /// Periods that passed while the thread was still late: they were never measured.
    pub overruns: u64,
    /// Smallest latency in ns; `u64::MAX` before the first.
    pub min_ns: u64,
    /// Largest latency in ns.
    pub max_ns: u64,
    /// Sum of all latencies in ns.
    pub sum_ns: u64,
}

impl Default for Totals {
    fn default() -> Self {
        Self { cycles: 0, overruns: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }
}

impl Totals {
    /// Joins what two stretches or two threads counted.
    pub fn add(&mut self, other: &Self) {
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.overruns = self.overruns.saturating_add(other.overruns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Mean latency in ns, if anything was measured and its sum did not overflow.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        ratio_mean(self.sum_ns, self.cycles).filter(|_| self.sum_ns < u64::MAX)
    }
}

/// The mean of `count` values that add up to `sum`, if there are any.
#[must_use]
pub fn ratio_mean(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| float(sum) / float(count))
}

/// A latency distribution: exact totals, a histogram of the measured values, and a histogram of the swallowed periods.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Exact counts, minimum, maximum and sum, as the measuring threads kept them.
    pub totals: Totals,
    /// The measured values.
    pub raw: Histogram<u64>,
    /// The latencies that the swallowed periods would have had. A wake-up that came `L` late at interval `I` swallowed
    /// the periods with latencies `L - I`, `L - 2I`, ... down to below `I` (G. Tene, "How NOT to measure latency":
    /// coordinated omission).
    pub missed: Histogram<u64>,
}

impl Default for Latency {
    fn default() -> Self {
        Self { totals: Totals::default(), raw: histogram(), missed: histogram() }
    }
}

impl Latency {
    /// An empty distribution.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one latency of a thread that wakes every `interval_ns` (0: not periodic, as in `spin`).
    pub fn record(&mut self, latency_ns: u64, interval_ns: u64) {
        self.record_until(latency_ns, interval_ns, u64::MAX);
    }

    /// The same for a thread that was to wake `left` times more: periods that a late wake-up swallows after the end of
    /// the measurement do not count.
    pub fn record_until(&mut self, latency_ns: u64, interval_ns: u64, left: u64) {
        let overruns = swallowed(latency_ns, interval_ns).min(left);
        self.totals.add(&Totals {
            cycles: 1,
            overruns,
            min_ns: latency_ns,
            max_ns: latency_ns,
            sum_ns: latency_ns,
        });
        self.raw.saturating_record(latency_ns);
        record_missed(&mut self.missed, latency_ns, interval_ns, overruns);
    }

    /// Adds a period whose cycle came while an earlier one still ran. It counts as missed, and its measured value takes
    /// the place of a computed one.
    pub fn record_behind(&mut self, latency_ns: u64) {
        let totals = Totals { overruns: 1, max_ns: latency_ns, ..Totals::default() };
        self.totals.add(&totals);
        self.missed.saturating_record(latency_ns);
    }

    /// Adds another distribution.
    pub fn merge(&mut self, other: &Self) {
        self.totals.add(&other.totals);
        // Both have the one layout, so that adding cannot fail.
        let _ = self.raw.add(&other.raw);
        let _ = self.missed.add(&other.missed);
    }

    /// Empties the distribution, keeping its memory.
    pub fn clear(&mut self) {
        self.totals = Totals::default();
        self.raw.reset();
        self.missed.reset();
    }

    /// Samples that were measured but did not reach the histogram (a dropped frame, a full ring).
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.totals.cycles.saturating_sub(self.raw.len())
    }

    /// Raw and missed periods together.
    #[must_use]
    pub fn corrected(&self) -> Histogram<u64> {
        let mut both = self.raw.clone();
        let _ = both.add(&self.missed);
        both
    }

    /// The figures of the distribution.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let corrected = self.corrected();
        let cap = |histogram: &Histogram<u64>, quantile: f64| {
            (!histogram.is_empty()).then(|| self.within(histogram.value_at_quantile(quantile)))
        };
        // Of fewer it would be the largest of them.
        let rare = |histogram: &Histogram<u64>, quantile: f64, fewest: u64| {
            (histogram.len() >= fewest).then(|| cap(histogram, quantile)).flatten()
        };
        let measured = self.totals.cycles > 0;
        Summary {
            cycles: self.totals.cycles,
            overruns: Some(self.totals.overruns),
            lost: self.lost(),
            min_ns: measured.then_some(self.totals.min_ns),
            mean_ns: self.totals.mean_ns(),
            p50_ns: cap(&self.raw, 0.50),
            p99_ns: cap(&self.raw, 0.99),
            p999_ns: cap(&self.raw, 0.999),
            p9999_ns: rare(&self.raw, 0.9999, 10_000),
            p99999_ns: rare(&self.raw, 0.999_99, 100_000),
            max_ns: measured.then_some(self.totals.max_ns),
            corrected: Corrected {
                count: corrected.len(),
                lost: self.totals.cycles.saturating_add(self.totals.overruns).saturating_sub(corrected.len()),
                p50_ns: cap(&corrected, 0.50),
                p99_ns: cap(&corrected, 0.99),
                p999_ns: cap(&corrected, 0.999),
                p9999_ns: rare(&corrected, 0.9999, 10_000),
                p99999_ns: rare(&corrected, 0.999_99, 100_000),
            },
        }
    }

    /// A quantile of a histogram is the upper edge of its bucket: never above the exact maximum.
    fn within(&self, value: u64) -> u64 {
        if self.totals.cycles == 0 { value } else { value.min(self.totals.max_ns) }
    }
}

/// Puts the first `periods` that a wake-up `latency_ns` late swallowed into `missed`: those of one bucket at once, since
/// an hour at 200 us is 18 million.
#[inline(never)]
fn record_missed(missed: &mut Histogram<u64>, latency_ns: u64, interval_ns: u64, periods: u64) {
    let (mut left, mut value) = (periods, latency_ns);
    while left > 0 {
        value -= interval_ns;
        let within = value - missed.lowest_equivalent(value);
        let more = (within / interval_ns).min(left - 1);
        missed.saturating_record_n(value, more + 1);
        value -= more * interval_ns;
        left -= more + 1;
    }
}

/// How many periods of `interval_ns` passed unseen while a wake-up was `latency_ns` late.
#[must_use]
pub fn swallowed(latency_ns: u64, interval_ns: u64) -> u64 {
    latency_ns.checked_div(interval_ns).unwrap_or(0)
}

/// The figures of a distribution; all times in ns. Nothing measured gives `null`, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Wake-ups measured.
    pub cycles: u64,
    /// Periods missed by a late wake-up; `null`: not counted, as in most files of other tools.
    pub overruns: Option<u64>,
    /// Samples counted in `cycles` that did not reach the histogram.
    pub lost: u64,
    /// Smallest latency, exact.
    pub min_ns: Option<u64>,
    /// Mean latency.
    pub mean_ns: Option<f64>,
    /// Median, within 0.1 %.
    pub p50_ns: Option<u64>,
    /// 99th percentile, within 0.1 %.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile, within 0.1 %.
    pub p999_ns: Option<u64>,
    /// 99.99th percentile, within 0.1 %; `null` of fewer than 10 000.
    #[serde(default)]
    pub p9999_ns: Option<u64>,
    /// 99.999th percentile, within 0.1 %; `null` of fewer than 100 000.
    #[serde(default)]
    pub p99999_ns: Option<u64>,
    /// Largest latency, exact.
    pub max_ns: Option<u64>,
    /// Quantiles corrected for missed periods (coordinated omission).
    pub corrected: Corrected,
}

/// Quantiles of the corrected histogram, in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Corrected {
    /// Measured and missed periods that the histogram holds.
    pub count: u64,
    /// Those that did not reach it: `count + lost` is `cycles + overruns`.
    #[serde(default)]
    pub lost: u64,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// 99.99th percentile; `null` of fewer than 10 000.
    #[serde(default)]
    pub p9999_ns: Option<u64>,
    /// 99.999th percentile; `null` of fewer than 100 000.
    #[serde(default)]
    pub p99999_ns: Option<u64>,
}

impl Summary {
    /// How many periods are known to have been missed.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.overruns.unwrap_or(0)
    }

    /// Its exact counts, to be joined with those of others.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            cycles: self.cycles,
            overruns: self.missed(),
            min_ns: self.min_ns.unwrap_or(u64::MAX),
            max_ns: self.max_ns.unwrap_or(0),
            sum_ns: whole(self.mean_ns.unwrap_or(0.0) * float(self.cycles)),
        }
    }

    /// The same without quantiles: for a histogram that does not contain all measured values.
    #[must_use]
    pub fn without_quantiles(self) -> Self {
        let Self { cycles, overruns, lost, min_ns, mean_ns, max_ns, corrected, .. } = self;
        let corrected = Corrected { count: corrected.count, lost: corrected.lost, ..Corrected::default() };
        Self { cycles, overruns, lost, min_ns, mean_ns, max_ns, corrected, ..Self::default() }
    }

    /// The mean rounded to a whole ns.
    #[must_use]
    pub fn mean_rounded(&self) -> Option<u64> {
        self.mean_ns.map(whole)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64], interval: u64) -> Latency {
        let mut latency = Latency::new();
        for value in values {
            latency.record(*value, interval);
        }
        latency
    }

    #[test]
    fn nothing_measured_has_no_figures() {
        let summary = Latency::new().summary();
        assert_eq!(
            (summary.min_ns, summary.max_ns, summary.mean_ns, summary.p50_ns),
            (None, None, None, None)
        );
    }

    #[test]
    fn a_swallowed_period_is_counted_and_put_back() {
        // 1 ms late at 200 us: five periods passed, with 800, 600, 400, 200 and 0 us of latency.
        let latency = of(&[1_000_000], 200_000);
        assert_eq!(latency.totals.overruns, 5);
        assert_eq!(latency.corrected().len(), 6);
        let mut values: Vec<u64> =
            latency.missed.iter_recorded().map(|v| v.value_iterated_to() / 1_000).collect();
        values.sort_unstable();
        assert_eq!(values, [0, 200, 400, 600, 800]);
    }

    #[test]
    fn every_period_of_a_stall_is_put_back_however_many_they_are() {
        // Two minutes late at 20 us: six million periods.
        let latency = of(&[120_000_000_000], 20_000);
        assert_eq!((latency.totals.overruns, latency.missed.len()), (6_000_000, 6_000_000));
        let summary = latency.summary();
        assert_eq!((summary.corrected.count, summary.corrected.lost), (6_000_001, 0));
        let half = summary.corrected.p50_ns.unwrap();
        assert!(
            half.abs_diff(60_000_000_000) < 60_000_000,
            "they lie evenly between none and all of it: {half}"
        );
    }

    #[test]
    fn periods_after_the_end_do_not_count() {
        let mut latency = Latency::new();
        latency.record_until(1_000_000, 200_000, 2);
        assert_eq!((latency.totals.cycles, latency.totals.overruns), (1, 2));
        let values: Vec<u64> =
            latency.missed.iter_recorded().map(|v| v.value_iterated_to() / 1_000).collect();
        assert_eq!(values, [600, 800], "those that came first");
    }

    #[test]
    fn periods_that_no_histogram_holds_are_said_to_be_lost() {
        let mut latency = of(&[5, 1_000_000], 200_000);
        // A sample that found its ring full, two periods late, counts in the totals alone.
        latency.totals.add(&Totals {
            cycles: 1,
            overruns: 2,
            min_ns: 400_000,
            max_ns: 400_000,
            sum_ns: 400_000,
        });
        let summary = latency.summary();
        assert_eq!((summary.corrected.count, summary.corrected.lost), (7, 3));
        assert_eq!(summary.cycles + summary.missed(), summary.corrected.count + summary.corrected.lost);
    }

    #[test]
    fn a_quantile_never_exceeds_the_exact_maximum() {
        let summary = of(&[1_234_567], 0).summary();
        assert_eq!(summary.p999_ns, Some(1_234_567));
    }

    #[test]
    fn counts_from_elsewhere_that_are_cut_or_absurd_are_refused() {
        assert_eq!(Sparse(vec![5]).buckets(), Err(SparseError::Odd));
        assert_eq!(Sparse(vec![5, 1, u64::MAX, 1]).buckets(), Err(SparseError::TooLarge));
        assert_eq!(Sparse(vec![5, u64::MAX, 1, 1]).buckets(), Err(SparseError::TooLarge));
    }

    proptest! {
        #[test]
        fn counts_travel_without_a_change(values in proptest::collection::vec(0u64..HIGHEST_NS, 0..200)) {
            let sent = of(&values, 0).raw;
            let mut got = histogram();
            Sparse::of(&sent).add_to(&mut got).unwrap();
            prop_assert_eq!(sent, got);
        }

        #[test]
        fn merging_is_the_same_as_measuring_together(
            a in proptest::collection::vec(0u64..10_000_000, 0..100),
            b in proptest::collection::vec(0u64..10_000_000, 0..100),
        ) {
            let mut merged = of(&a, 200_000);
            merged.merge(&of(&b, 200_000));
            let together = of(&[a, b].concat(), 200_000);
            prop_assert_eq!(merged.summary(), together.summary());
            prop_assert_eq!(merged.raw, together.raw);
            prop_assert_eq!(merged.missed, together.missed);
        }

        #[test]
        fn periods_that_are_put_back_by_the_bucket_are_those_put_back_one_by_one(
            latency in 0u64..500_000_000, interval in 1_000u64..1_000_000, left in 0u64..10_000,
        ) {
            let mut measured = Latency::new();
            measured.record_until(latency, interval, left);
            let mut wanted = histogram();
            for period in 1..=swallowed(latency, interval).min(left) {
                wanted.saturating_record(latency - period * interval);
            }
            prop_assert_eq!(measured.missed, wanted);
        }

        #[test]
        fn cycles_and_overruns_are_what_the_corrected_histogram_holds(
            values in proptest::collection::vec(0u64..50_000_000, 1..50), interval in 10_000u64..1_000_000,
        ) {
            let summary = of(&values, interval).summary();
            prop_assert_eq!(summary.cycles + summary.missed(), summary.corrected.count);
        }

        #[test]
        fn no_counts_make_the_reader_panic(flat in proptest::collection::vec(any::<u64>(), 0..20)) {
            let _ = Sparse(flat).add_to(&mut histogram());
        }
    }
}
