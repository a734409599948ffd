//! Two sets of runs: is one larger than the other by more than a factor, and by how much at least and at most.
//!
//! The exact rank-sum test of [`super::rank_sum`], one-sided, of one set against the other times the factor.
//! Its p-values and the ends of the interval agree. The lower end at an error is above a factor exactly if
//! the p-value of that factor is not above the error (L. E. Moses, in Hollander, Wolfe and Chicken,
//! "Nonparametric Statistical Methods", section 4.3). Equal values count for neither side.
//!
//! Pairs are counted along both sets in order, and a ratio among all pairs is found by counting those that
//! are no larger. The pairs themselves, millions for sets of thousands, are never stored.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::rank_sum::{EXACT, approximate_chance, chances};

/// With up to this many values in one of the sets the normal approximation is not used, however many the
/// other has.
const FEW: usize = 10;

/// Two sets of values that are positive, or zero.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// The reference.
    pub base: &'a [f64],
    /// The values compared with it.
    pub with: &'a [f64],
}

/// The chance of at most 0, 1, 2, ... pairs the wrong way round, by the numbers of values of both sets.
type Chances = BTreeMap<(usize, usize), Rc<Vec<f64>>>;

/// The test. It remembers its counts.
#[derive(Debug, Default)]
pub struct TwoSamples {
    chances: RefCell<Chances>,
}

impl TwoSamples {
    /// The chance of such values if those of `with` are at most `factor` times those of `base`: small if they
    /// are larger.
    #[must_use]
    pub fn larger_p(&self, Samples { base, with }: Samples, factor: f64) -> f64 {
        let contrary = pairs(&in_order(base), &in_order(with), |with, base| with <= factor * base);
        self.chance(base.len(), with.len(), contrary)
    }

    /// The same the other way round: small where they are smaller than `factor` times those of `base`.
    #[must_use]
    pub fn smaller_p(&self, Samples { base, with }: Samples, factor: f64) -> f64 {
        let smaller = pairs(&in_order(base), &in_order(with), |with, base| with < factor * base);
        self.chance(base.len(), with.len(), base.len() * with.len() - smaller)
    }

    /// The least factor of `with` over `base`, but for this error; 0 where nothing bounds it.
    #[must_use]
    pub fn low(&self, samples: Samples, error: f64) -> f64 {
        match self.depth(samples, error) {
            0 => 0.0,
            depth => Ratios::of(samples).nth(depth - 1),
        }
    }

    /// The largest factor of `with` over `base`, but for this error; infinite where nothing bounds it.
    #[must_use]
    pub fn high(&self, samples: Samples, error: f64) -> f64 {
        match self.depth(samples, error) {
            0 => f64::INFINITY,
            depth => Ratios::of(samples).nth(samples.base.len() * samples.with.len() - depth),
        }
    }

    /// How many pairs may be the wrong way round at most.
    fn depth(&self, Samples { base, with }: Samples, error: f64) -> usize {
        let (m, n) = (base.len(), with.len());
        // The chance grows with the pairs: halve.
        let (mut low, mut high) = (0, m * n);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.chance(m, n, middle) <= error {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The chance of at most `pairs` pairs the wrong way round if nothing differs.
    fn chance(&self, m: usize, n: usize, pairs: usize) -> f64 {
        if m == 0 || n == 0 || pairs >= m * n {
            return 1.0;
        }
        if m * n > EXACT && m.min(n) > FEW {
            return approximate_chance(m, n, pairs);
        }
        let counted = Rc::clone(
            self.chances.borrow_mut().entry((m, n)).or_insert_with(|| Rc::new(chances(m.min(n), m.max(n)))),
        );
        match counted.get(pairs) {
            Some(chance) => *chance,
            // The other half is the mirror of this one.
            None => 1.0 - counted.get(m * n - pairs - 1).copied().unwrap_or(0.0),
        }
    }
}

/// The smallest p-value that sets of these sizes can have: 1 / C(m + n, n).
#[must_use]
pub fn least_p(m: usize, n: usize) -> f64 {
    use tactus_model::number::float;
    (1..=m.min(n)).fold(1.0, |p, i| p * float(i as u64) / float((m.max(n) + i) as u64))
}

/// Median of all ratios (Hodges and Lehmann, 1963); `None` without values, with a value below zero, or if it
/// is not finite.
#[must_use]
pub fn typical_ratio(samples: Samples) -> Option<f64> {
    let all = samples.base.len() * samples.with.len();
    if all == 0 || samples.base.iter().chain(samples.with).any(|value| *value < 0.0) {
        return None;
    }
    let (ratios, middle) = (Ratios::of(samples), all / 2);
    let estimate = match all % 2 {
        1 => ratios.nth(middle),
        _ => (ratios.nth(middle - 1) * ratios.nth(middle)).sqrt(),
    };
    estimate.is_finite().then_some(estimate)
}

/// Values in order. A value below zero counts as 0, because it has no ratio.
fn in_order(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().map(|value| if *value > 0.0 { *value } else { 0.0 }).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// How many pairs of two ordered sets have a property. A property of a value of `with` and one of `base` must
/// also hold for smaller values of `with` and larger ones of `base`.
fn pairs(base: &[f64], with: &[f64], holds: impl Fn(f64, f64) -> bool) -> usize {
    let mut first = 0;
    let of = |with: &f64| {
        first += base[first..].iter().take_while(|base| !holds(*with, **base)).count();
        base.len() - first
    };
    with.iter().map(of).sum()
}

/// All ratios of two sets. The ratio of 0 to 0 is 1.
struct Ratios {
    base: Vec<f64>,
    with: Vec<f64>,
}

impl Ratios {
    fn of(Samples { base, with }: Samples) -> Self {
        Self { base: in_order(base), with: in_order(with) }
    }

    /// How many are no larger than this.
    fn up_to(&self, most: f64) -> usize {
        let ratio = |with: f64, base: f64| if with <= 0.0 && base <= 0.0 { 1.0 } else { with / base };
        pairs(&self.base, &self.with, |with, base| ratio(with, base) <= most)
    }

    /// The ratio at this place of their order, from 0: the smallest number that more than `place` ratios do
    /// not exceed. The bits of numbers that are not below zero are in the order of the numbers, so bisection
    /// of the bits finds it.
    fn nth(&self, place: usize) -> f64 {
        let (mut low, mut high) = (0, f64::INFINITY.to_bits());
        while low < high {
            let middle = u64::midpoint(low, high);
            if self.up_to(f64::from_bits(middle)) > place {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        f64::from_bits(low)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOW: [f64; 8] = [100.0, 104.0, 97.0, 99.0, 103.0, 101.0, 96.0, 102.0];

    #[test]
    fn a_set_that_lies_apart_has_the_least_p_there_is() {
        let high = LOW.map(|value| value * 1.3);
        let (test, samples) = (TwoSamples::default(), Samples { base: &LOW, with: &high });
        assert!((test.larger_p(samples, 1.1) - 1.0 / 12_870.0).abs() < 1e-15);
        assert!((least_p(8, 8) - 1.0 / 12_870.0).abs() < 1e-15);
        assert!(test.smaller_p(samples, 1.1) > 0.999);
        assert!((typical_ratio(samples).unwrap() - 1.3).abs() < 0.01);
        assert!(test.low(samples, 0.05 / 30.0) > 1.1 && test.high(samples, 0.05) < 1.4);
    }

    #[test]
    fn one_value_needs_nineteen_to_be_larger_than_all_of_them() {
        let base: Vec<f64> = (0..19).map(|n| 100.0 + f64::from(n)).collect();
        let test = TwoSamples::default();
        assert!((test.larger_p(Samples { base: &base, with: &[200.0] }, 1.0) - 0.05).abs() < 1e-12);
        assert!(test.larger_p(Samples { base: &base[1..], with: &[200.0] }, 1.0) > 0.05);
        assert!((least_p(19, 1) - 0.05).abs() < 1e-12);
        let many: Vec<f64> = (0..2000).map(|n| 100.0 + f64::from(n)).collect();
        let p = test.larger_p(Samples { base: &many, with: &[1e9] }, 1.0);
        assert!((p - 1.0 / 2001.0).abs() < 1e-12, "counted, however many: {p}");
    }

    #[test]
    fn equal_values_count_for_neither_side_and_nothing_says_nothing() {
        let test = TwoSamples::default();
        let same = Samples { base: &[5.0; 8], with: &[5.0; 8] };
        assert!(test.larger_p(same, 1.0) > 0.999 && test.smaller_p(same, 1.0) > 0.999);
        let zeros = Samples { base: &[0.0; 8], with: &[0.0; 8] };
        assert_eq!(typical_ratio(zeros), Some(1.0));
        let none = Samples { base: &[], with: &[5.0] };
        assert!(test.larger_p(none, 1.0) > 0.999 && typical_ratio(none).is_none());
        assert!(test.low(none, 0.05) <= 0.0 && test.high(none, 0.05).is_infinite());
        let from_nothing = Samples { base: &[0.0; 8], with: &[5.0; 8] };
        assert!(test.larger_p(from_nothing, 1.5) < 1e-4 && typical_ratio(from_nothing).is_none());
    }

    #[test]
    fn sets_of_a_hundred_thousand_runs_are_held_against_each_other_without_their_pairs() {
        // Ten thousand million of them.
        let set = |slower: f64| (0..100_000).map(|n| slower * (1_000.0 + f64::from(n))).collect::<Vec<f64>>();
        let (base, with) = (set(1.0), set(1.5));
        let (test, samples) = (TwoSamples::default(), Samples { base: &base, with: &with });
        assert!((typical_ratio(samples).unwrap() - 1.5).abs() < 0.01);
        let (low, high) = (test.low(samples, 0.05), test.high(samples, 0.05));
        assert!(low < 1.5 && 1.5 < high && high / low < 1.05, "{low} {high}");
        assert!(test.larger_p(samples, 1.1) < 1e-9 && test.smaller_p(samples, 1.1) > 0.999);
    }

    #[test]
    fn values_below_zero_have_no_typical_ratio() {
        assert_eq!(typical_ratio(Samples { base: &[1.0, -2.0], with: &[1.0] }), None);
        assert_eq!(typical_ratio(Samples { base: &[-0.0, 0.0], with: &[-0.0] }), Some(1.0));
    }

    proptest! {
        #[test]
        fn the_ratio_at_a_place_is_the_one_that_sorting_them_all_finds(
            base in prop::collection::vec(prop_oneof![Just(0.0), 1e-9..1e9f64], 1..12),
            with in prop::collection::vec(prop_oneof![Just(0.0), 1e-9..1e9f64], 1..12),
        ) {
            let ratio = |with: f64, base: f64| if with <= 0.0 && base <= 0.0 { 1.0 } else { with / base };
            let mut all: Vec<f64> = with.iter().flat_map(|w| base.iter().map(move |b| ratio(*w, *b))).collect();
            all.sort_by(f64::total_cmp);
            let ratios = Ratios::of(Samples { base: &base, with: &with });
            for (place, ratio) in all.iter().enumerate() {
                prop_assert_eq!(ratios.nth(place).to_bits(), ratio.to_bits());
            }
        }

        #[test]
        fn the_ends_and_the_p_values_say_the_same(
            base in prop::collection::vec(1.0..1e6f64, 1..12),
            with in prop::collection::vec(1.0..1e6f64, 1..12),
            factor in 0.1..10.0f64,
            error in 0.001..0.4f64,
        ) {
            let (test, samples) = (TwoSamples::default(), Samples { base: &base, with: &with });
            prop_assert_eq!(test.low(samples, error) > factor, test.larger_p(samples, factor) <= error);
            prop_assert_eq!(test.high(samples, error) < factor, test.smaller_p(samples, factor) <= error);
        }
    }
}
