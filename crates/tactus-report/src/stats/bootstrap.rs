//! Moving-block bootstrap of the difference between two rows.
//!
//! Latencies that follow each other are not independent (a load comes and goes, a housekeeping task
//! returns), so single samples must not be redrawn. Whole blocks of neighbouring time intervals are,
//! which keeps the dependence within a block: H. R. Künsch, "The jackknife and the bootstrap for general
//! stationary observations", Annals of Statistics 17 (1989); D. N. Politis and J. P. Romano, "The
//! stationary bootstrap", JASA 89 (1994). Blocks are as long as the cube root of the number of
//! intervals (P. Hall, J. L. Horowitz and B.-Y. Jing, Biometrika 82, 1995).
//!
//! Percentiles of the redrawn differences are too narrow when there are few blocks: two rows of the
//! same kind, ten intervals each, seemed different in a third of the cases. They are therefore widened
//! as a t interval is against a normal one (T. Hesterberg, "What teachers should know about the
//! bootstrap", The American Statistician 69, 2015), and the three intervals of an effect hold at 95 %
//! together (Bonferroni). Two rows of the same kind then differ in 1 to 2 % of the cases when their
//! intervals are independent, and in 4 to 11 % when their latency comes and goes in slow waves
//! (autocorrelation 0.7 from one interval to the next; 8 to 240 intervals).
//!
//! The seed is fixed: the same bundle gives the same report.

use tactus_model::buckets::{Counts, Packed};
use tactus_model::bundle::Row;
use tactus_model::number::{float, whole};

/// With fewer intervals than this in either row, nothing is said about their difference.
pub const ENOUGH: usize = 8;

/// More intervals than this are joined before they are redrawn: a finer grain adds nothing to
/// blocks that span several of them.
const MOST: usize = 360;

/// How often a row is redrawn.
const REDRAWN: usize = 1_000;

/// The part of the redrawn differences outside of an interval: 5 %, shared by the three quantities
/// of an effect.
const OUTSIDE: f64 = 0.05 / 3.0;

/// How much wider an interval is with this many blocks: the t quantile of `1 - OUTSIDE / 2` with one
/// degree of freedom less, over the normal one, times the root of `blocks / (blocks - 1)`.
const WIDER: [(f64, f64); 11] = [
    (2.0, 22.6),
    (3.0, 3.92),
    (4.0, 2.35),
    (5.0, 1.85),
    (6.0, 1.62),
    (8.0, 1.40),
    (10.0, 1.30),
    (15.0, 1.18),
    (20.0, 1.13),
    (60.0, 1.04),
    (1e9, 1.0),
];

/// A range in which a difference lies, in ns, at 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
}

impl Interval {
    /// Whether no difference at all is among what the interval allows.
    #[must_use]
    pub fn excludes_zero(self) -> bool {
        self.low_ns > 0.0 || self.high_ns < 0.0
    }

    /// The largest difference that the interval allows, without its sign.
    #[must_use]
    pub fn largest(self) -> f64 {
        self.low_ns.abs().max(self.high_ns.abs())
    }

    /// The interval `factor` times as wide around `value`, and with `value` in it: a percentile
    /// interval may miss its own estimate, and a range that is too wide says less, never more, than
    /// there is.
    fn around(self, value: f64, factor: f64) -> Self {
        Self {
            low_ns: value - (value - self.low_ns).max(0.0) * factor,
            high_ns: value + (self.high_ns - value).max(0.0) * factor,
        }
    }
}

/// A row cut into intervals of time, all series together.
#[derive(Clone, Debug)]
pub struct Slots {
    /// The values that occur, rising, in ns.
    values: Vec<u64>,
    /// Running sums of each value's count over the intervals: `sums[i][v]` counts those before `i`.
    sums: Vec<Vec<u64>>,
    /// The largest value of each interval.
    maxima: Vec<u64>,
}

impl Slots {
    /// The intervals of a row's histograms.
    #[must_use]
    pub fn of(row: &Row) -> Self {
        let intervals: Vec<&Packed> = row.histograms.intervals.values().collect();
        let joined: Vec<Packed> = intervals
            .chunks(intervals.len().div_ceil(MOST).max(1))
            .map(|some| {
                let mut all = Counts::default();
                some.iter().for_each(|counts| all.add_packed(counts));
                all.pack()
            })
            .collect();
        Self::build(&joined, Packed::buckets)
    }

    fn build<'a, C, I: Iterator<Item = (u64, u64)>>(slots: &'a [C], buckets: impl Fn(&'a C) -> I) -> Self {
        let mut values = Vec::new();
        for counts in slots {
            values.extend(buckets(counts).map(|(value, _)| value));
            values.sort();
            values.dedup();
        }
        let mut sums = vec![vec![0_u64; values.len()]];
        for counts in slots {
            let mut next = sums[sums.len() - 1].clone();
            let mut at = 0;
            for (value, count) in buckets(counts) {
                at += values[at..].partition_point(|one| *one < value);
                next[at] = next[at].saturating_add(count);
            }
            sums.push(next);
        }
        let maxima =
            slots.iter().filter_map(|counts| buckets(counts).last()).map(|(value, _)| value).collect();
        Self { values, sums, maxima }
    }

    /// How many intervals there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sums.len() - 1
    }

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn quantile(&self, counts: &[u64], part: f64) -> f64 {
        let total: u64 = counts.iter().sum();
        let rank = whole((float(total) * part).ceil()).max(1);
        let mut seen = 0;
        let at = counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        at.map_or(0.0, |at| float(self.values[at]))
    }

    fn all(&self) -> &[u64] {
        &self.sums[self.len()]
    }

    /// The starts of the blocks of one redrawing.
    fn starts(&self, random: &mut Random) -> Vec<usize> {
        let (length, block) = (self.len(), self.block());
        (0..length.div_ceil(block)).map(|_| random.below(length - block + 1)).collect()
    }

    /// Length of a block: the nearest whole number to the cube root of the number of intervals.
    fn block(&self) -> usize {
        (1..=self.len()).rev().find(|root| (2 * root - 1).pow(3) <= 8 * self.len()).unwrap_or(1)
    }

    /// How many blocks there are.
    fn blocks(&self) -> f64 {
        let count = |n: usize| float(u64::try_from(n).unwrap_or(u64::MAX));
        count(self.len()) / count(self.block())
    }

    fn redrawn(&self, starts: &[usize], into: &mut Vec<u64>) {
        into.clear();
        into.resize(self.values.len(), 0);
        for start in starts {
            let (before, after) = (&self.sums[*start], &self.sums[start + self.block()]);
            for (sum, (after, before)) in into.iter_mut().zip(after.iter().zip(before)) {
                *sum += after - before;
            }
        }
    }

    fn median_of_maxima(&self, starts: &[usize], scratch: &mut Vec<u64>) -> f64 {
        scratch.clear();
        for start in starts {
            scratch.extend(&self.maxima[*start..start + self.block()]);
        }
        median(scratch)
    }
}

fn median(values: &mut [u64]) -> f64 {
    values.sort_unstable();
    let middle = values.len() / 2;
    match values.get(middle) {
        None => 0.0,
        Some(value) if values.len() % 2 == 1 => float(*value),
        Some(value) => f64::midpoint(float(values[middle - 1]), float(*value)),
    }
}

/// Estimate and interval of `with` minus `base`, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The difference of what was measured.
    pub difference_ns: f64,
    /// Where it lies; `None` when there are too few intervals to say.
    pub interval: Option<Interval>,
}

/// The differences of quantiles and of the median per-interval maximum.
#[derive(Clone, Debug)]
pub struct Differences {
    /// One for each quantile that was asked for.
    pub quantiles: Vec<Estimate>,
    /// Of the median of the per-interval maxima.
    pub maxima: Estimate,
}

/// Compares two rows: `with` minus `base`.
#[must_use]
pub fn differences(base: &Slots, with: &Slots, parts: &[f64]) -> Differences {
    let point = |slots: &Slots, part| slots.quantile(slots.all(), part);
    let measured: Vec<f64> = parts.iter().map(|part| point(with, *part) - point(base, *part)).collect();
    let typical = median(&mut with.maxima.clone()) - median(&mut base.maxima.clone());
    if base.len() < ENOUGH || with.len() < ENOUGH {
        let unknown = |difference_ns| Estimate { difference_ns, interval: None };
        return Differences {
            quantiles: measured.into_iter().map(unknown).collect(),
            maxima: unknown(typical),
        };
    }
    let mut random = Random::new();
    let mut redrawn: Vec<Vec<f64>> = vec![Vec::with_capacity(REDRAWN); parts.len()];
    let mut maxima = Vec::with_capacity(REDRAWN);
    let (mut left, mut right, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REDRAWN {
        let (before, after) = (base.starts(&mut random), with.starts(&mut random));
        base.redrawn(&before, &mut left);
        with.redrawn(&after, &mut right);
        for (differences, part) in redrawn.iter_mut().zip(parts) {
            differences.push(with.quantile(&right, *part) - base.quantile(&left, *part));
        }
        let largest = with.median_of_maxima(&after, &mut scratch);
        maxima.push(largest - base.median_of_maxima(&before, &mut scratch));
    }
    let factor = wider(base.blocks().min(with.blocks()));
    let estimate = |difference_ns, redrawn| Estimate {
        difference_ns,
        interval: Some(percentiles(redrawn).around(difference_ns, factor)),
    };
    Differences {
        quantiles: measured
            .into_iter()
            .zip(redrawn)
            .map(|(value, redrawn)| estimate(value, redrawn))
            .collect(),
        maxima: estimate(typical, maxima),
    }
}

/// The factor of [`WIDER`] between its lines, linear in one over the number of blocks.
fn wider(blocks: f64) -> f64 {
    let at = WIDER.iter().position(|(number, _)| *number >= blocks).unwrap_or(WIDER.len() - 1);
    let Some(before) = at.checked_sub(1) else { return WIDER[0].1 };
    let ((few, more), (many, less)) = (WIDER[before], WIDER[at]);
    let part = (1.0 / blocks - 1.0 / few) / (1.0 / many - 1.0 / few);
    more + (less - more) * part
}

fn percentiles(mut differences: Vec<f64>) -> Interval {
    differences.sort_unstable_by(f64::total_cmp);
    let outside = (REDRAWN - 1).min(differences.len().saturating_sub(1));
    let cut = usize::try_from(whole((float(u64::try_from(outside).unwrap_or(0)) * OUTSIDE / 2.0).floor()))
        .unwrap_or(0);
    Interval { low_ns: differences[cut], high_ns: differences[differences.len() - 1 - cut] }
}

/// `SplitMix64` (G. Steele, D. Lea, C. Flood, OOPSLA 2014) with a fixed seed: small, and the same on
/// every machine and in every version of a library.
struct Random(u64);

impl Random {
    const fn new() -> Self {
        Self(0x7461_6374_7573)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, by the high half of a product (its bias is below `n` / 2^64).
    fn below(&mut self, n: usize) -> usize {
        let product = u128::from(self.next()) * u128::try_from(n).unwrap_or(1);
        usize::try_from(product >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn slots(of: &[Vec<u64>]) -> Slots {
        let counted: Vec<BTreeMap<u64, u64>> = of
            .iter()
            .map(|values| {
                let mut counts = BTreeMap::new();
                for value in values {
                    *counts.entry(*value).or_default() += 1;
                }
                counts
            })
            .collect();
        Slots::build(&counted, |counts| counts.iter().map(|(value, count)| (*value, *count)))
    }

    fn intervals() -> impl Strategy<Value = Vec<Vec<u64>>> {
        prop::collection::vec(prop::collection::vec(2_000u64..9_000, 30..60), ENOUGH..24)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn the_shift_by_a_constant_is_found(of in intervals(), shift in 20_000u64..50_000) {
            let shifted: Vec<Vec<u64>> = of.iter().map(|v| v.iter().map(|v| v + shift).collect()).collect();
            let found = differences(&slots(&of), &slots(&shifted), &[0.5, 0.999]);
            for estimate in found.quantiles.iter().chain([&found.maxima]) {
                prop_assert!((estimate.difference_ns - float(shift)).abs() < 1e-6);
                let interval = estimate.interval.unwrap();
                prop_assert!(interval.low_ns <= float(shift) && float(shift) <= interval.high_ns);
                prop_assert!(interval.excludes_zero());
            }
        }

        #[test]
        fn identical_rows_have_no_effect(of in intervals()) {
            let same = slots(&of);
            let found = differences(&same, &same, &[0.5, 0.999]);
            for estimate in found.quantiles.iter().chain([&found.maxima]) {
                prop_assert!(estimate.difference_ns.abs() < 1e-9);
                prop_assert!(!estimate.interval.unwrap().excludes_zero());
            }
        }
    }

    #[test]
    fn the_same_rows_give_the_same_interval_each_time() {
        let of: Vec<Vec<u64>> = (0..20).map(|n| vec![1_000 + n, 2_000 + 3 * n, 4_000]).collect();
        let other: Vec<Vec<u64>> = (0..20).map(|n| vec![1_100 + n, 2_000 + 5 * n, 5_000]).collect();
        let once = differences(&slots(&of), &slots(&other), &[0.5]);
        let again = differences(&slots(&of), &slots(&other), &[0.5]);
        assert_eq!(once.quantiles, again.quantiles);
    }

    #[test]
    fn two_rows_of_the_same_kind_rarely_differ() {
        let mut random = Random(5);
        let mut row = || -> Vec<Vec<u64>> {
            let mut value = || 2_000 + u64::try_from(random.below(40).pow(2)).unwrap_or(0);
            (0..10).map(|_| (0..200).map(|_| value()).collect()).collect()
        };
        let mut seemed = 0;
        for _ in 0..40 {
            let found = differences(&slots(&row()), &slots(&row()), &[0.5, 0.999]);
            let all = found.quantiles.iter().chain([&found.maxima]);
            seemed += usize::from(all.filter_map(|estimate| estimate.interval).any(Interval::excludes_zero));
        }
        // One in twenty is what the intervals allow.
        assert!(seemed <= 2, "{seemed} of 40 seemed to differ");
    }

    #[test]
    fn fewer_blocks_make_an_interval_wider() {
        let factors: Vec<f64> = [1.5, 2.0, 3.5, 5.0, 7.0, 40.0, 1e6].into_iter().map(wider).collect();
        assert!(factors.windows(2).all(|pair| pair[0] >= pair[1]) && factors[6] < 1.01, "{factors:?}");
        let lengths: Vec<usize> =
            [1, 8, 10, 20, 60, 240, 360].into_iter().map(|n| slots(&vec![vec![1]; n]).block()).collect();
        assert_eq!(lengths, [1, 2, 2, 3, 4, 6, 7]);
    }

    #[test]
    fn too_few_intervals_say_nothing() {
        let few = slots(&vec![vec![1_000, 2_000]; ENOUGH - 1]);
        let found = differences(&few, &few, &[0.5]);
        assert_eq!((found.quantiles[0].interval, found.maxima.interval), (None, None));
        let none = slots(&[]);
        assert!(none.is_empty() && differences(&none, &none, &[0.5]).maxima.interval.is_none());
    }

    #[test]
    fn slow_waves_make_the_interval_wider_than_shuffled_ones() {
        // The same 64 intervals, once in a slow wave and once alternating: blocks must see the wave.
        let wave: Vec<Vec<u64>> =
            (0..64).map(|n| vec![if n / 16 % 2 == 0 { 1_000 } else { 9_000 }; 5]).collect();
        let shuffled: Vec<Vec<u64>> =
            (0..64).map(|n| vec![if n % 2 == 0 { 1_000 } else { 9_000 }; 5]).collect();
        let width = |of: &[Vec<u64>]| {
            let of = slots(of);
            let flat = slots(&vec![vec![5_000; 5]; 64]);
            let mean_like = differences(&flat, &of, &[0.25, 0.4]);
            mean_like.quantiles.iter().map(|e| e.interval.map_or(0.0, |i| i.high_ns - i.low_ns)).sum::<f64>()
        };
        assert!(width(&wave) > width(&shuffled));
    }
}
