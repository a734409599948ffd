//! The number of late periods to expect, after a run has seen some.
//!
//! Anything that keeps a thread from its CPU makes every period late that falls into it: late periods come in
//! stalls. Stalls are independent of each other, but the periods of one stall are not. So a run that has seen
//! few late periods has seen next to nothing.
//!
//! The bound is that of M. P. Fay and E. J. Feuer for a sum of Poisson counts of different weights
//! (*Confidence intervals for directly standardized rates: a method based on the gamma distribution*,
//! Statistics in Medicine 16, 1997). A stall counts once, with the number of its late periods as its weight.
//! If all stalls are equally long, it is the bound of F. Garwood (*Fiducial limits for the Poisson
//! distribution*, Biometrika 28, 1936) on their number, times their length.

use statrs::distribution::{ContinuousCDF, Gamma, Normal};

/// How sure a bound is.
const SURE: f64 = 0.95;

/// The late periods of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Late {
    /// How many.
    pub periods: f64,
    /// The sum, over the stalls, of the square of how many were in it.
    pub squares: f64,
}

impl Late {
    /// The late periods of a run of `times` times the length.
    #[must_use]
    pub fn times(self, times: f64) -> Self {
        Self { periods: self.periods * times, squares: self.squares * times }
    }

    /// The most late periods to expect in such a run, with 95 %, if no unseen stall is longer than `unseen`
    /// periods, or than the typical late period's.
    #[must_use]
    pub fn upper(self, unseen: f64) -> f64 {
        let Self { periods, squares } = self;
        // The mean length of the stall around a late period, over the late periods.
        let typical = if periods > 0.0 { squares / periods } else { 0.0 };
        let longest = typical.max(unseen).max(1.0);
        let (mean, variance) = (periods + longest, squares + longest * longest);
        quantile(mean * mean / variance).map_or(f64::INFINITY, |bound| bound * variance / mean)
    }

    /// How long an unseen stall may be, in periods, until more than `allowed` late ones must be expected;
    /// `None` if more must be expected anyway.
    #[must_use]
    pub fn longest_unseen(self, unseen: f64, allowed: f64) -> Option<f64> {
        (self.upper(unseen) <= allowed).then(|| last(unseen, allowed, |unseen| self.upper(unseen) <= allowed))
    }

    /// The length that the run needs until at most the allowed part is expected to be late, as a multiple of
    /// its present length. It supposes that late periods keep their rate; `None` if the multiple is above
    /// `most`.
    #[must_use]
    pub fn times_needed(self, unseen: f64, allowed: f64, most: f64) -> Option<f64> {
        let shown = |times: f64| self.times(times).upper(unseen) <= allowed * times;
        shown(most).then(|| last(most, 1.0, shown))
    }
}

/// The 95th percentile of a gamma distribution of this shape and rate 1; `None` if the shape is invalid.
fn quantile(shape: f64) -> Option<f64> {
    // E. B. Wilson, M. M. Hilferty (1931); from here on it is exact to a millionth.
    const LARGE: f64 = 1_000.0;
    if shape > LARGE {
        let cube = 1.0 - 1.0 / (9.0 * shape) + Normal::standard().inverse_cdf(SURE) / (3.0 * shape.sqrt());
        return Some(shape * cube.powi(3));
    }
    Gamma::new(shape, 1.0).ok().map(|gamma| gamma.inverse_cdf(SURE))
}

/// The last number from `from`, where it holds, on the way to `to` at which it still does.
fn last(from: f64, to: f64, holds: impl Fn(f64) -> bool) -> f64 {
    const STEPS: u32 = 30;
    if holds(to) {
        return to;
    }
    let (mut good, mut bad) = (from, to);
    for _ in 0..STEPS {
        let middle = f64::midpoint(good, bad);
        if holds(middle) { good = middle } else { bad = middle }
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalls(number: u32, length: f64) -> Late {
        let number = f64::from(number);
        Late { periods: number * length, squares: number * length * length }
    }

    fn close(found: f64, wanted: f64) {
        assert!((found / wanted - 1.0).abs() < 1e-4, "{found} and not {wanted}");
    }

    #[test]
    fn stalls_of_one_length_have_the_bound_of_garwood() {
        // scipy.stats.chi2.ppf(0.95, 2 * (k + 1)) / 2
        for (number, bound) in [
            (0, 2.995_732),
            (1, 4.743_865),
            (2, 6.295_794),
            (10, 16.962_219),
            (100, 118.079_273),
            (10_000, 10_166.06),
        ] {
            close(stalls(number, 1.0).upper(1.0), bound);
            close(stalls(number, 50.0).upper(50.0), 50.0 * bound);
        }
    }

    #[test]
    fn late_periods_that_come_together_are_less_evidence_than_as_many_apart() {
        let (apart, together) = (stalls(300, 1.0), stalls(6, 50.0));
        assert!(apart.upper(1.0) < 1.2 * 300.0 && together.upper(1.0) > 1.9 * 300.0);
    }

    #[test]
    fn a_run_without_a_late_period_shows_as_much_as_the_longest_stall_allows() {
        let none = Late::default();
        close(none.longest_unseen(50.0, 300.0).unwrap(), 300.0 / 2.995_732);
        assert_eq!(none.longest_unseen(50.0, 100.0), None);
        close(none.times_needed(50.0, 30.0, 100.0).unwrap(), 50.0 * 2.995_732 / 30.0);
        assert_eq!(none.times_needed(50.0, 1.0, 100.0), None);
        assert_eq!(stalls(3, 50.0).times_needed(50.0, 149.0, 100.0), None, "it is broken");
    }
}
