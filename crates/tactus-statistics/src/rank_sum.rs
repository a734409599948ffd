//! How much larger one set of values typically is than another: the rank-sum test and its interval.
//!
//! The test counts the pairs (one of each set) in which the second value is the smaller. Their number has a
//! distribution that does not depend on the measured quantity (H. B. Mann and D. R. Whitney, "On a test of
//! whether one of two random variables is stochastically larger than the other", Annals of Mathematical
//! Statistics 18, 1947). It is exact up to `EXACT` pairs, and a normal approximation above. Inverting the
//! test gives the interval of the ratio between the two sets. Its ends are ordered ratios of all pairs, as
//! far from either end as the test allows (L. E. Moses, in Hollander, Wolfe and Chicken, "Nonparametric
//! Statistical Methods", section 4.3). The estimate is their median (Hodges and Lehmann, 1963).
//!
//! The test supposes that values of one set do not depend on each other. So a value is the maximum of a whole
//! slot of time, and not a single latency.

use std::cell::RefCell;
use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, Normal};
use tactus_model::number::{float, whole};

/// Pairs of values above which the distribution is taken for normal; it differs by less than a pair in a
/// hundred there.
pub(super) const EXACT: usize = 1_600;

/// With more values than this in either set, neighbours are joined, equally many in both sets, and the
/// largest counts. A maximum over two slots is another quantity than one over one.
pub const MOST: usize = 400;

/// The ratio of one set to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Median of all ratios.
    pub estimate: f64,
    /// It is at least this; 0 where there are too few values to say.
    pub low: f64,
    /// It is at most this; infinite where there are too few values to say.
    pub high: f64,
}

/// The test at one probability of error on either side. It remembers its results.
#[derive(Debug)]
pub struct Test {
    error: f64,
    depths: RefCell<BTreeMap<(usize, usize), usize>>,
}

impl Test {
    /// A test that errs with this probability on each side.
    #[must_use]
    pub const fn new(error: f64) -> Self {
        Self { error, depths: RefCell::new(BTreeMap::new()) }
    }

    /// The ratio of values of `with` to those of `without`; `None` if one is empty.
    #[must_use]
    pub fn ratio(&self, without: &[u64], with: &[u64]) -> Option<Ratio> {
        let each = without.len().max(with.len()).div_ceil(MOST).max(1);
        let (without, with) = (joined(without, each), joined(with, each));
        let mut ratios: Vec<f64> = with
            .iter()
            .flat_map(|with| without.iter().map(|without| float((*with).max(1)) / float((*without).max(1))))
            .collect();
        ratios.sort_by(f64::total_cmp);
        let middle = ratios.len() / 2;
        let estimate = match ratios.len() {
            0 => return None,
            n if n % 2 == 1 => ratios[middle],
            _ => (ratios[middle - 1] * ratios[middle]).sqrt(),
        };
        let (low, high) = match self.depth(without.len(), with.len()) {
            0 => (0.0, f64::INFINITY),
            depth => (ratios[depth - 1], ratios[ratios.len() - depth]),
        };
        Some(Ratio { estimate, low, high })
    }

    /// How many ratios in from an end the interval begins; 0: no interval is possible.
    fn depth(&self, without: usize, with: usize) -> usize {
        *self.depths.borrow_mut().entry((without, with)).or_insert_with(|| depth(without, with, self.error))
    }
}

/// The largest `d` with P(fewer than `d` pairs are the wrong way round) <= `error` where nothing differs.
fn depth(m: usize, n: usize, error: f64) -> usize {
    if m * n > EXACT { approximated(m, n, error) } else { counted(m, n, error) }
}

/// By the normal approximation.
fn approximated(m: usize, n: usize, error: f64) -> usize {
    let (m, n) = (float(m as u64), float(n as u64));
    let spread = (m * n * (m + n + 1.0) / 12.0).sqrt();
    let most = m * n / 2.0 + Normal::standard().inverse_cdf(error) * spread - 0.5;
    usize::try_from(whole((most + 1.0).max(0.0))).unwrap_or(0)
}

/// By counting.
fn counted(m: usize, n: usize, error: f64) -> usize {
    let chances = chances(m, n);
    chances.iter().position(|chance| *chance > error).unwrap_or(chances.len() - 1)
}

/// The chance that at most 0, 1, 2, ... pairs are the wrong way round where nothing differs, up to half of all pairs.
pub(super) fn chances(m: usize, n: usize) -> Vec<f64> {
    let below = m * n / 2 + 1;
    // counts[i][u]: orders of i and j values with u pairs the wrong way round; j grows.
    let mut counts = vec![vec![0.0_f64; below]; m + 1];
    for row in &mut counts {
        row[0] = 1.0;
    }
    for j in 1..=n {
        for i in 1..=m {
            let (done, rest) = counts.split_at_mut(i);
            for u in (j..below).rev() {
                rest[0][u] += done[i - 1][u - j];
            }
        }
    }
    // Orders of all values: the binomial coefficient.
    let mut all = 1.0;
    for i in 1..=m {
        all *= float((n + i) as u64) / float(i as u64);
    }
    let mut sum = 0.0;
    let chance = |count: &f64| {
        sum += count;
        sum / all
    };
    counts[m].iter().map(chance).collect()
}

/// The chance of at most `pairs` pairs the wrong way round, by the normal approximation with a correction for
/// continuity.
pub(super) fn approximate_chance(m: usize, n: usize, pairs: usize) -> f64 {
    let (m, n) = (float(m as u64), float(n as u64));
    let spread = (m * n * (m + n + 1.0) / 12.0).sqrt();
    Normal::standard().cdf((float(pairs as u64) + 0.5 - m * n / 2.0) / spread)
}

/// The largest of every `each` values; a shorter group at the end is left out.
fn joined(values: &[u64], each: usize) -> Vec<u64> {
    values.chunks_exact(each).map(|some| some.iter().copied().max().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_exact_depths_are_those_of_the_tables() {
        // Mann and Whitney, critical values of U for a one-sided test: 5 % and 1 %.
        for (m, n, error, critical) in
            [(5, 5, 0.05, 4), (8, 8, 0.05, 15), (8, 8, 0.01, 9), (10, 12, 0.05, 34), (20, 20, 0.01, 114)]
        {
            assert_eq!(depth(m, n, error), critical + 1, "{m} and {n} at {error}");
        }
        assert_eq!(depth(3, 3, 0.01), 0, "20 orders cannot be significant at 1 %");
    }

    #[test]
    fn many_values_have_the_depth_that_counting_gives() {
        for (m, n, error) in [(40, 41, 0.01), (60, 50, 0.001), (20, 90, 0.01)] {
            let (exact, normal) = (counted(m, n, error), approximated(m, n, error));
            assert!(exact.abs_diff(normal) * 100 <= exact, "{m} and {n}: {normal} for {exact}");
        }
    }

    #[test]
    fn one_value_more_does_not_make_a_set_of_pairs_larger() {
        let same: Vec<u64> = (0..41).map(|n| 1_000 + 37 * (n * n % 41)).collect();
        let ratio = Test::new(0.01).ratio(&same[..40], &same).unwrap();
        assert!((ratio.estimate - 1.0).abs() < 0.05 && ratio.low < 1.0 && ratio.high > 1.0, "{ratio:?}");
    }

    #[test]
    fn a_set_that_lies_apart_is_larger_and_few_values_say_nothing() {
        let test = Test::new(0.001);
        let (low, high): (Vec<u64>, Vec<u64>) = ((10..18).collect(), (100..108).collect());
        let ratio = test.ratio(&low, &high).unwrap();
        assert!(ratio.low > 5.0 && ratio.high < 11.0, "{ratio:?}");
        let few = test.ratio(&low[..3], &high[..3]).unwrap();
        assert!(few.low <= 0.0 && few.high.is_infinite());
        assert_eq!(test.ratio(&[], &high), None);
    }

    #[test]
    fn noise_alone_is_taken_for_a_difference_as_rarely_as_promised() {
        let mut state = 11u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Heavy in the tail, as maxima of latencies are.
            let unit = float((state >> 33) + 1) / float(1 << 31);
            whole(1000.0 / unit)
        };
        let test = Test::new(0.01);
        let mut wrong = 0;
        for _ in 0..4000 {
            let (a, b): (Vec<u64>, Vec<u64>) =
                ((0..8).map(|_| next()).collect(), (0..8).map(|_| next()).collect());
            wrong += i32::from(test.ratio(&a, &b).unwrap().low > 1.0);
        }
        // 1 % are 40; 60 is three standard deviations more.
        assert!(wrong < 60, "{wrong} of 4000");
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_estimate_and_follows_a_factor(
            a in prop::collection::vec(1_000_u64..1_000_000, 1..60),
            b in prop::collection::vec(1_000_u64..1_000_000, 1..60),
        ) {
            let test = Test::new(0.01);
            let one = test.ratio(&a, &b).unwrap();
            prop_assert!(one.low <= one.estimate && one.estimate <= one.high, "{one:?}");
            let longer: Vec<u64> = b.iter().map(|value| value * 7).collect();
            let other = test.ratio(&a, &longer).unwrap();
            prop_assert!((other.estimate / one.estimate - 7.0).abs() < 1e-6);
        }
    }
}
