//! Whether values rise or fall over time.
//!
//! The test of Mann and Kendall (H. B. Mann, "Nonparametric tests against trend", Econometrica 13, 1945; M. G. Kendall,
//! "Rank Correlation Methods", 1975): later values against earlier ones, by the normal approximation with the variance of
//! ties. It assumes independent values: values that depend on each other have trends by chance.

use statrs::distribution::{ContinuousCDF, Normal};

use super::autocorrelation::size;

/// The chance of a trend as clear as this one, up or down, without any; 1 with fewer than four values.
#[must_use]
pub fn trend_p(values: &[f64]) -> f64 {
    let n = values.len();
    if n < 4 {
        return 1.0;
    }
    let later = |at: usize| values[at + 1..].iter().map(move |later| later.total_cmp(&values[at]) as i64);
    let score: i64 = (0..n).flat_map(later).sum();
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let weight = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let ties: f64 =
        sorted.chunk_by(|one, next| one.total_cmp(next).is_eq()).map(|tie| weight(size(tie.len()))).sum();
    let variance = (weight(size(n)) - ties) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    // A step of the score is two pairs: half of it is the correction for continuity.
    #[expect(clippy::cast_precision_loss, reason = "pairs of at most some thousand values")]
    let distance = (score.unsigned_abs() as f64 - 1.0).max(0.0) / variance.sqrt();
    2.0 * Normal::standard().sf(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pymannkendall.original_test` gives the same.
    #[test]
    fn it_is_the_published_test() {
        let rising: Vec<f64> = (0..10).map(f64::from).collect();
        assert!((trend_p(&rising) - 8.303_070_332_644_964e-5).abs() < 1e-9, "{}", trend_p(&rising));
        let falling: Vec<f64> = rising.iter().rev().copied().collect();
        assert!((trend_p(&falling) - trend_p(&rising)).abs() < 1e-12);
    }

    #[test]
    fn what_never_changes_and_what_is_too_short_has_no_trend() {
        assert!(trend_p(&[5.0; 50]) >= 1.0 && trend_p(&[1.0, 2.0, 3.0]) >= 1.0 && trend_p(&[]) >= 1.0);
        let alternating: Vec<f64> = (0..60).map(|n| f64::from(n % 2)).collect();
        assert!(trend_p(&alternating) > 0.5);
    }
}
