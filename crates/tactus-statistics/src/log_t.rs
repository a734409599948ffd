//! Two sets of positive values: is one larger than the other by more than a factor, where the values are medians of several
//! runs each.
//!
//! Student's t test for two samples with a common variance (W. S. Gosset, "The probable error of a mean", Biometrika 6,
//! 1908), one-sided, of the logarithms. A set may have a single value: then it is the prediction of that value from the
//! other set (W. J. Hahn, W. Q. Meeker, "Statistical Intervals", 1991, section 4.7). The logarithm of a median of five or
//! more runs is near enough to normal, also where single runs have heavy tails (`simulation_of_sittings`).

use statrs::distribution::{ContinuousCDF, StudentsT};
use tactus_model::number::float;

use super::two_samples::Samples;

/// Values of both sets that the test needs together: five for the spread where the other set has one.
pub const LEAST: usize = 6;
/// The most values of each set that are worth naming.
const MOST: usize = 1_000;
/// The chance of a decision that is planned for.
const POWER: f64 = 0.8;

/// The difference of the means of logarithms, its standard error, and the degrees of freedom.
struct Difference {
    mean: f64,
    error: f64,
    freedom: f64,
}

impl Difference {
    /// `None` with too few values, or with one that has no logarithm.
    fn of(Samples { base, with }: Samples) -> Option<Self> {
        let (m, n) = (base.len(), with.len());
        let positive = base.iter().chain(with).all(|value| *value > 0.0 && value.is_finite());
        if m == 0 || n == 0 || m + n < LEAST || !positive {
            return None;
        }
        let mean = |set: &[f64]| set.iter().map(|value| value.ln()).sum::<f64>() / size(set.len());
        let squares =
            |set: &[f64], mean: f64| set.iter().map(|value| (value.ln() - mean).powi(2)).sum::<f64>();
        let (one, other) = (mean(base), mean(with));
        let freedom = size(m + n - 2);
        let variance = (squares(base, one) + squares(with, other)) / freedom;
        let error = (variance * (1.0 / size(m) + 1.0 / size(n))).sqrt();
        Some(Self { mean: other - one, error, freedom })
    }

    /// The chance of a difference as large as this above `distance`.
    fn chance_above(&self, distance: f64) -> f64 {
        let above = self.mean - distance;
        if self.error > 0.0 {
            student(self.freedom).map_or(1.0, |law| law.sf(above / self.error))
        } else if above > 0.0 {
            0.0
        } else {
            1.0
        }
    }

    fn reach(&self, error: f64) -> f64 {
        student(self.freedom).map_or(f64::INFINITY, |law| law.inverse_cdf(1.0 - error) * self.error)
    }
}

fn student(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom).ok()
}

fn size(count: usize) -> f64 {
    float(count as u64)
}

/// The chance of such values if those of `with` are at most `factor` times those of `base`: small if they are larger. 1
/// where the test cannot be made.
#[must_use]
pub fn larger_p(samples: Samples, factor: f64) -> f64 {
    Difference::of(samples).map_or(1.0, |of| of.chance_above(factor.ln()))
}

/// The same the other way round: small where they are smaller than `factor` times those of `base`.
#[must_use]
pub fn smaller_p(Samples { base, with }: Samples, factor: f64) -> f64 {
    larger_p(Samples { base: with, with: base }, 1.0 / factor)
}

/// The least factor of `with` over `base`, but for this error; 0 where nothing bounds it.
#[must_use]
pub fn low(samples: Samples, error: f64) -> f64 {
    Difference::of(samples).map_or(0.0, |of| (of.mean - of.reach(error)).exp())
}

/// The largest factor of `with` over `base`, but for this error; infinite where nothing bounds it.
#[must_use]
pub fn high(samples: Samples, error: f64) -> f64 {
    Difference::of(samples).map_or(f64::INFINITY, |of| (of.mean + of.reach(error)).exp())
}

/// How far apart, in logarithms, `base` and `with` values tell two sets at this error in 80 of 100 cases. `spread` is the
/// standard deviation of the logarithm.
#[must_use]
pub fn apart(spread: f64, [base, with]: [usize; 2], error: f64) -> Option<f64> {
    let law = (base > 0 && with > 0 && base + with >= LEAST).then(|| student(size(base + with - 2)))??;
    let scale = (1.0 / size(base) + 1.0 / size(with)).sqrt();
    Some((law.inverse_cdf(1.0 - error) + law.inverse_cdf(POWER)) * spread * scale)
}

/// How many values of each set tell a distance, in logarithms, at this error in 80 of 100 cases; `None` if no realistic
/// number does.
#[must_use]
pub fn needed(spread: f64, distance: f64, error: f64) -> Option<usize> {
    let tells = |each: usize| apart(spread, [each; 2], error).is_some_and(|apart| apart <= distance.abs());
    if distance == 0.0 || !tells(MOST) {
        return None;
    }
    // More values tell less: halve.
    let (mut low, mut high) = (LEAST / 2, MOST);
    while low < high {
        let middle = usize::midpoint(low, high);
        if tells(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy: `stats.ttest_ind(log(with), log(base), alternative="greater")`.
    const EXPECTED: [f64; 4] = [
        6.259_525_442_015_947e-5,
        2.771_483_210_332_322e-3,
        5.218_020_970_895_428e-3,
        3.023_935_425_153_145_5e-2,
    ];

    #[test]
    fn it_is_students_test_of_the_logarithms() {
        let base = [100.0, 104.0, 97.0, 99.0, 103.0];
        let with = [120.0, 118.0, 125.0];
        let samples = Samples { base: &base, with: &with };
        assert!((larger_p(samples, 1.0) - EXPECTED[0]).abs() < 1e-9, "{}", larger_p(samples, 1.0));
        assert!((larger_p(samples, 1.1) - EXPECTED[1]).abs() < 1e-9, "{}", larger_p(samples, 1.1));
        assert!((smaller_p(samples, 1.3) - EXPECTED[2]).abs() < 1e-9, "{}", smaller_p(samples, 1.3));
        let one = Samples { base: &base, with: &with[..1] };
        assert!((larger_p(one, 1.1) - EXPECTED[3]).abs() < 1e-9, "a prediction: {}", larger_p(one, 1.1));
    }

    #[test]
    fn its_bounds_and_its_chances_agree() {
        let samples = Samples { base: &[100.0, 104.0, 97.0, 99.0, 103.0], with: &[120.0, 118.0, 125.0] };
        for error in [0.05, 0.0125, 0.001] {
            assert!((larger_p(samples, low(samples, error)) - error).abs() < 1e-6);
            assert!((smaller_p(samples, high(samples, error)) - error).abs() < 1e-6);
        }
    }

    #[test]
    fn too_few_values_and_values_without_a_logarithm_decide_nothing() {
        let few = Samples { base: &[100.0; 4], with: &[200.0] };
        assert!(larger_p(few, 1.0) >= 1.0 && low(few, 0.05) <= 0.0 && high(few, 0.05).is_infinite());
        let zero = Samples { base: &[0.0, 1.0, 1.0, 1.0, 1.0], with: &[200.0] };
        assert!(larger_p(zero, 1.0) >= 1.0);
        let alike = Samples { base: &[7.0; 5], with: &[7.0] };
        assert!(larger_p(alike, 1.1) >= 1.0 && smaller_p(alike, 1.1) < 1e-9, "they never differed");
    }

    #[test]
    fn more_values_tell_less() {
        assert_eq!(needed(0.05, (1.3_f64 / 1.1).ln(), 0.0125), Some(4));
        assert_eq!(needed(0.2, (1.3_f64 / 1.1).ln(), 0.0125), Some(29));
        assert_eq!(needed(0.05, 0.0, 0.05), None, "on the margin no number decides");
        assert_eq!(apart(0.05, [4, 1], 0.05), None);
    }
}
