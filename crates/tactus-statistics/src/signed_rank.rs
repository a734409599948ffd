//! The benefit of a setting, from pairs of measurements with and without it.
//!
//! Estimate and interval are those of the signed-rank test (Wilcoxon 1945; Hodges and Lehmann 1963;
//! Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, 3rd ed., section 3.2 and 3.3). They
//! suppose nothing of the shape of a latency's distribution, and one wild pair does not move them far. The
//! exact distribution is used, never an approximation. The order within a pair is drawn at random, so that
//! drift of the machine is not taken for an effect of the setting.

use std::cell::RefCell;
use std::rc::Rc;

/// The difference that a setting makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Median of the pairwise means of all differences, with minus without.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of pairs.
    pub pairs: usize,
}

/// The most pairs that are worked out exactly; more are refused rather than approximated.
const MOST: usize = 1000;

/// Estimate and interval of the differences at the given error (0.05: 95 %), two-sided. A difference may be infinite, where
/// one half of its pair broke, or no number, where both did: then it may be any. `None` when there are too few pairs for
/// any interval at that error: n pairs reach 2^(1-n) at best.
#[must_use]
pub fn paired(differences: &[f64], error: f64) -> Option<Paired> {
    let pairs = differences.len();
    if pairs > MOST || differences.iter().all(|one| one.is_nan()) {
        return None;
    }
    let depth = depth(pairs, error / 2.0)?;
    let mut means = Vec::with_capacity(pairs * (pairs + 1) / 2);
    for (n, one) in differences.iter().enumerate() {
        means.extend(differences[n..].iter().map(|other| f64::midpoint(*one, *other)));
    }
    // NaN may be any value: the smallest for the lower end, the largest for the upper end.
    let sorted = |unknown: f64| {
        let mut sorted: Vec<f64> =
            means.iter().map(|mean| if mean.is_nan() { unknown } else { *mean }).collect();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    let (least, most) = (sorted(f64::NEG_INFINITY), sorted(f64::INFINITY));
    let middle = |means: &[f64]| {
        let middle = means.len() / 2;
        if means.len() % 2 == 1 { means[middle] } else { f64::midpoint(means[middle - 1], means[middle]) }
    };
    let estimate = f64::midpoint(middle(&least), middle(&most));
    Some(Paired { estimate, low: least[depth - 1], high: most[most.len() - depth], pairs })
}

/// The smallest error at which [`paired`] excludes zero, two-sided; 1 without usable differences.
#[must_use]
pub fn paired_p(differences: &[f64]) -> f64 {
    if differences.is_empty() || differences.len() > MOST {
        return 1.0;
    }
    let (mut not_above, mut not_below) = (0, 0);
    for (n, one) in differences.iter().enumerate() {
        for mean in differences[n..].iter().map(|other| f64::midpoint(*one, *other)) {
            // One that may be any is on neither side.
            not_above += usize::from(mean <= 0.0 || mean.is_nan());
            not_below += usize::from(mean >= 0.0 || mean.is_nan());
        }
    }
    let tail: f64 = shares(differences.len()).iter().take(not_above.min(not_below) + 1).sum();
    (2.0 * tail).min(1.0)
}

/// How many pairs it takes for an interval at this error to be possible at all.
#[must_use]
pub fn least_pairs(error: f64) -> usize {
    (1..=MOST).find(|pairs| depth(*pairs, error / 2.0).is_some()).unwrap_or(MOST)
}

/// How many distributions are kept, of different numbers of pairs: of a thousand pairs one takes 4 MB.
const KEPT: usize = 8;

thread_local! {
    static KNOWN: RefCell<Vec<(usize, Rc<[f64]>)>> = const { RefCell::new(Vec::new()) };
}

/// The share of the 2^n sign patterns whose positive ranks sum to each number. It takes time in the third
/// power of the number of pairs, and each quantity of each claim needs it, so it is kept.
fn shares(pairs: usize) -> Rc<[f64]> {
    KNOWN.with_borrow_mut(|known| {
        if let Some((_, shares)) = known.iter().find(|(of, _)| *of == pairs) {
            return Rc::clone(shares);
        }
        let shares: Rc<[f64]> = worked_out(pairs).into();
        if known.len() == KEPT {
            known.remove(0);
        }
        known.push((pairs, Rc::clone(&shares)));
        shares
    })
}

fn worked_out(pairs: usize) -> Vec<f64> {
    let most = pairs * (pairs + 1) / 2;
    let mut share = vec![0.0; most + 1];
    share[0] = 1.0;
    let mut reached = 0;
    for rank in 1..=pairs {
        reached += rank;
        for sum in (0..=reached).rev() {
            let with = if sum >= rank { share[sum - rank] } else { 0.0 };
            share[sum] = f64::midpoint(share[sum], with);
        }
    }
    share
}

/// How many of the sorted pairwise means lie outside on each side: the largest k with P(T <= k - 1) <=
/// `tail`. T is the signed-rank statistic of n pairs without an effect.
fn depth(pairs: usize, tail: f64) -> Option<usize> {
    let mut below = 0.0;
    let mut depth = 0;
    for part in shares(pairs).iter() {
        below += part;
        if below > tail {
            break;
        }
        depth += 1;
    }
    (depth > 0).then_some(depth)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_exact_depths_are_those_of_the_tables() {
        // Hollander, Wolfe and Chicken, table A.4: two-sided 5 % critical values of T.
        for (pairs, critical) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (12, 13), (15, 25), (20, 52)] {
            assert_eq!(depth(pairs, 0.025), Some(critical + 1), "{pairs} pairs");
        }
        assert_eq!(depth(5, 0.025), None);
        assert_eq!(depth(10, 0.05 / 6.0), Some(5));
    }

    #[test]
    fn what_takes_long_is_worked_out_once_for_all_claims_of_as_many_pairs() {
        let first = shares(300);
        for pairs in 1..KEPT {
            shares(pairs);
        }
        assert!(Rc::ptr_eq(&first, &shares(300)));
        shares(KEPT);
        assert!(!Rc::ptr_eq(&first, &shares(300)), "and of few numbers of pairs");
        assert_eq!(first, shares(300));
        assert!(KNOWN.with_borrow(|known| known.len() <= KEPT));
    }

    #[test]
    fn the_interval_of_the_text_book_is_met() {
        // Ten differences 1..10: 55 pairwise means, the ninth from either end at 95 %.
        let differences: Vec<f64> = (1..=10).map(f64::from).collect();
        let paired = paired(&differences, 0.05).unwrap();
        assert!((paired.estimate - 5.5).abs() < 1e-9);
        assert!((paired.low - 3.0).abs() < 1e-9 && (paired.high - 8.0).abs() < 1e-9, "{paired:?}");
    }

    #[test]
    fn too_few_pairs_say_nothing_and_neither_does_nonsense() {
        assert_eq!(paired(&[1.0; 5], 0.05), None);
        assert_eq!(paired(&[], 0.05), None);
        assert_eq!(paired(&[f64::NAN; 10], 0.05), None);
        assert_eq!(paired(&[0.0; MOST + 1], 0.05), None);
        assert!((paired_p(&[0.0; 10]) - 1.0).abs() < 1e-12 && (paired_p(&[]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_smallest_number_of_pairs_is_that_whose_signs_alone_are_rare_enough() {
        for (error, pairs) in [(0.05, 6), (0.05 / 3.0, 7), (0.05 / 27.0, 11), (0.05 / 120.0, 13)] {
            assert_eq!(least_pairs(error), pairs, "{error}");
        }
    }

    #[test]
    fn noise_alone_is_taken_for_an_effect_as_rarely_as_promised() {
        // A linear congruential generator; differences symmetric about zero, heavy in the tails.
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from(u32::try_from(state >> 33).unwrap()) / f64::from(1u32 << 31) - 0.5
        };
        let mut wrong = 0;
        for _ in 0..4000 {
            let differences: Vec<f64> = (0..10).map(|_| next().powi(3)).collect();
            wrong += i32::from(paired_p(&differences) <= 0.05);
        }
        // At most 4.9 % are expected with ten pairs (T <= 8); 6 % is four standard deviations more.
        assert!(wrong < 240, "{wrong} of 4000");
    }

    #[test]
    fn a_run_that_broke_is_worse_than_any_and_two_that_broke_may_be_any() {
        let noise = [3.0, -2.0, 1.0, -4.0, 2.0, -1.0, 4.0, -3.0];
        let with = |more: &[f64]| paired(&[&noise, more].concat(), 0.05).unwrap();
        let whole = with(&[]);
        let broke = with(&[f64::INFINITY; 4]);
        assert!(whole.high.is_finite() && broke.high.is_infinite() && broke.low.is_finite(), "{broke:?}");
        let both = with(&[f64::NAN; 4]);
        assert!(both.low.is_infinite() && both.high.is_infinite(), "{both:?}");
        let p = |more: &[f64]| paired_p(&[&noise, more].concat());
        assert!(p(&[f64::INFINITY; 4]) < p(&[]) && p(&[f64::NAN; 4]) >= 1.0);
        assert!(paired_p(&[f64::INFINITY; 8]) < 0.01 && paired_p(&[f64::NEG_INFINITY; 8]) < 0.01);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_estimate_and_follows_a_shift(
            differences in prop::collection::vec(-1e6..1e6f64, 6..40),
            shift in -1e6..1e6f64,
        ) {
            let one = paired(&differences, 0.05).unwrap();
            prop_assert!(one.low <= one.estimate && one.estimate <= one.high);
            // The test and the interval say the same.
            for error in [0.05, 0.3] {
                let shown = paired(&differences, error).is_some_and(|one| one.low > 0.0 || one.high < 0.0);
                prop_assert_eq!(shown, paired_p(&differences) <= error);
            }
            let moved: Vec<f64> = differences.iter().map(|d| d + shift).collect();
            let other = paired(&moved, 0.05).unwrap();
            prop_assert!((other.estimate - one.estimate - shift).abs() < 1e-3);
        }
    }
}
