//! The number of runs that decides, and the difference that a number of runs can show.

use statrs::distribution::{ContinuousCDF, Normal};
use tactus_model::number::float;

use super::two_samples::least_p;

/// The probability that this number of runs decides.
const POWER: f64 = 0.8;
/// The most runs that are realistic.
const MOST: usize = 1_000;
/// Fewer show too little of how much runs differ by themselves.
const FEWEST: usize = 5;

/// How far apart two sets of `runs` runs must lie, in logarithms, so that the rank-sum test at this error
/// tells them apart with 80 %. It needs pi / 3 times the values of the t test (normal differences). Tests of
/// few values are coarse, so two more are asked for.
fn apart(spread: f64, runs: usize, error: f64) -> f64 {
    let normal = Normal::standard();
    let both = normal.inverse_cdf(1.0 - error) + normal.inverse_cdf(POWER);
    let worth = float(runs.saturating_sub(2).max(1) as u64) * 3.0 / std::f64::consts::PI;
    spread * both * (2.0 / worth).sqrt()
}

/// How many runs of each condition tell a distance, in logarithms, at this error with 80 %; `None` if no
/// realistic number does. `spread` is the standard deviation of a run's logarithm.
#[must_use]
pub fn runs_needed(spread: f64, distance: f64, error: f64) -> Option<usize> {
    let decides =
        |runs: &usize| least_p(*runs, *runs) <= error && apart(spread, *runs, error) <= distance.abs();
    (FEWEST..=MOST).find(decides)
}

/// The smallest ratio that `runs` runs of each condition tell from `limit` at this error with 80 %; `None` if
/// they are too few for any.
#[must_use]
pub fn detectable_ratio(spread: f64, runs: usize, error: f64, limit: f64) -> Option<f64> {
    (least_p(runs, runs) <= error).then(|| limit * apart(spread, runs, error).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_runs_tell_a_third_more_where_runs_differ_by_a_twentieth() {
        let distance = (1.3_f64 / 1.1).ln();
        for quantities in [1.0, 10.0, 30.0] {
            let needed = runs_needed(0.05, distance, 0.05 / quantities).unwrap();
            assert!((5..=8).contains(&needed), "{quantities}: {needed}");
            let ratio = detectable_ratio(0.05, 8, 0.05 / quantities, 1.1).unwrap();
            assert!(ratio < 1.3 && ratio > 1.1, "{ratio}");
        }
        assert!(runs_needed(0.1, distance, 0.05 / 30.0).unwrap() > 8);
    }

    #[test]
    fn what_lies_on_the_margin_is_decided_by_no_number_of_runs() {
        assert_eq!(runs_needed(0.05, 0.0, 0.05), None);
        assert_eq!(runs_needed(0.0, 0.1, 0.05), Some(5));
        assert_eq!(
            detectable_ratio(0.05, 4, 0.05 / 30.0, 1.1),
            None,
            "one of 70 orders is no rarer than that"
        );
    }
}
