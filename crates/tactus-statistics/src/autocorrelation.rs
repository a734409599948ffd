//! How many independent values a series in time is worth.
//!
//! Latencies that follow each other are not independent: a load comes and goes, a housekeeping task returns.
//! The mean of `n` such values is as uncertain as that of `n / tau` independent ones, where `tau` is the
//! integrated autocorrelation time. It is estimated twice, and the larger one counts:
//!
//! - by Geyer's initial monotone sequence (C. J. Geyer, "Practical Markov chain Monte Carlo", Statistical
//!   Science 7, 1992): sums of neighbouring autocovariances for as long as they are positive;
//! - as that of a first-order autoregression, `(1 + r) / (1 - r)`, whose coefficient is corrected for its
//!   downward bias in short series, `r + (1 + 3 r) / n` (F. H. C. Marriott and J. A. Pope, Biometrika 41, 1954).
//!
//! Correlation that makes values more even than independent ones counts for nothing.

use tactus_model::number::float;

/// The effective number of values of a series: at most its length, at least 1 (0 for none).
#[must_use]
pub fn effective_size(series: &[f64]) -> f64 {
    let n = size(series.len());
    let mean = series.iter().sum::<f64>() / n.max(1.0);
    let centred: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let covariance = |lag: usize| -> f64 {
        centred.iter().zip(centred.iter().skip(lag)).map(|(one, later)| one * later).sum::<f64>() / n
    };
    let variance = covariance(0);
    if series.len() < 3 || variance <= 0.0 {
        return n;
    }
    let first = covariance(1) / variance;
    let corrected = (first + (1.0 + 3.0 * first) / n).min(1.0 - 1.0 / n);
    let autoregression = (1.0 + corrected) / (1.0 - corrected);
    // Twice the sum of all pairs, less the variance that the first of them has twice.
    let (mut sum, mut least) = (0.0, f64::INFINITY);
    for lag in (0..series.len() / 2).map(|pair| 2 * pair) {
        let pair = covariance(lag) + covariance(lag + 1);
        if pair <= 0.0 {
            break;
        }
        least = least.min(pair);
        sum += least;
    }
    let geyer = (2.0 * sum - variance) / variance;
    (n / geyer.max(autoregression).max(1.0)).max(1.0)
}

pub(crate) fn size(n: usize) -> f64 {
    float(u64::try_from(n).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn autoregression(coefficient: f64, n: usize, random: &mut Random) -> Vec<f64> {
        let mut value = random.normal() / (1.0 - coefficient * coefficient).sqrt();
        let step = |value: &mut f64, random: &mut Random| {
            *value = coefficient * *value + random.normal();
            *value
        };
        (0..n).map(|_| step(&mut value, random)).collect()
    }

    #[test]
    fn a_long_autoregression_has_the_time_that_its_coefficient_says() {
        let mut random = Random::new(3);
        for (coefficient, tau) in [(0.0, 1.0), (0.5, 3.0), (0.7, 17.0 / 3.0), (0.9, 19.0)] {
            let n = 40_000;
            let found = size(n) / effective_size(&autoregression(coefficient, n, &mut random));
            assert!((found / tau - 1.0).abs() < 0.2, "{coefficient}: {found} for {tau}");
        }
    }

    #[test]
    fn what_alternates_is_worth_no_more_than_independent_values_and_what_stands_still_is_not_correlated() {
        let alternating: Vec<f64> = (0..40).map(|n| f64::from(n % 2)).collect();
        assert!((effective_size(&alternating) - 40.0).abs() < 1e-9);
        assert!((effective_size(&[5.0; 12]) - 12.0).abs() < 1e-9);
        assert!(effective_size(&[]).abs() < 1e-9);
    }

    #[test]
    fn short_correlated_series_are_seldom_taken_for_independent_ones() {
        let mut random = Random::new(9);
        let trusted = |n, random: &mut Random| {
            (0..400).filter(|_| effective_size(&autoregression(0.9, n, random)) >= 8.0).count()
        };
        assert!(trusted(10, &mut random) < 60 && trusted(30, &mut random) < 60);
    }
}
