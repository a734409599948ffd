//! The generalised Pareto distribution of values above a threshold, its fit and its profiles.
//!
//! Above a high threshold the excesses of (almost) any quantity follow it, with a scale and a shape `xi`. A
//! shape below 0 has an end, 0 is exponential, above 0 is a power law (S. Coles, "An Introduction to
//! Statistical Modeling of Extreme Values", 2001, chapter 4). The fit is by maximum likelihood. With
//! `theta = xi / sigma` the likelihood has one parameter left: for each theta the best shape is the mean of
//! `ln(1 + theta x)` (S. D. Grimshaw, "Computing maximum likelihood estimates for the generalized Pareto
//! distribution", Technometrics 35, 1993). Shapes below -1/2 are left out: there the likelihood is not
//! regular.
//!
//! Intervals are those of the profile likelihood, never of the delta method. The likelihood of a return level
//! is far from symmetric, and its short side is the one that matters.

use tactus_model::number::float;

use super::maximize::{crossing, highest};

/// The smallest shape that is looked at.
pub const LEAST_SHAPE: f64 = -0.5;
/// The largest.
const MOST_SHAPE: f64 = 4.0;
/// Excesses whose logarithms are taken at once: their product stays a number.
const TOGETHER: usize = 8;
/// Largest multiple of the estimate that counts as a level.
const BEYOND: f64 = 1e9;

/// The distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpd {
    /// Scale, in the unit of the excesses.
    pub sigma: f64,
    /// Shape.
    pub xi: f64,
}

impl Gpd {
    /// The part of all excesses that are larger.
    #[must_use]
    pub fn survival(&self, excess: f64) -> f64 {
        (-self.hazard(excess)).exp()
    }

    /// `-ln` of that part.
    pub fn hazard(&self, excess: f64) -> f64 {
        let z = excess / self.sigma;
        if self.xi.abs() < 1e-9 {
            return z;
        }
        let inside = 1.0 + self.xi * z;
        if inside <= 0.0 { f64::INFINITY } else { inside.ln() / self.xi }
    }

    /// The excess that one in `n` is larger than.
    #[must_use]
    pub fn one_in(&self, n: f64) -> f64 {
        self.sigma * power(self.xi, n)
    }
}

/// `(n^xi - 1) / xi`, and its limit `ln n`.
fn power(xi: f64, n: f64) -> f64 {
    if xi.abs() < 1e-9 { n.ln() } else { (xi * n.ln()).exp_m1() / xi }
}

/// Excesses, ready to be fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Excesses {
    values: Vec<f64>,
    most: f64,
    mean: f64,
}

/// A range; an end may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A fit, and how likely it makes the excesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The distribution.
    pub gpd: Gpd,
    /// Its log likelihood.
    pub log_likelihood: f64,
}

impl Excesses {
    /// Excesses above 0; `None` without any, or if all are equal.
    #[must_use]
    pub fn new(values: Vec<f64>) -> Option<Self> {
        let most = values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = values.iter().sum::<f64>() / float(values.len() as u64);
        (least > 0.0 && most > least && most.is_finite()).then_some(Self { values, most, mean })
    }

    /// The number of excesses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The excesses.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// They, in rising order.
    #[must_use]
    pub fn rising(&self) -> Vec<f64> {
        let mut rising = self.values.clone();
        rising.sort_by(f64::total_cmp);
        rising
    }

    /// The sum of `ln(1 + theta x)`.
    fn logarithms(&self, theta: f64) -> f64 {
        if 1.0 + theta * self.most <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let product = |some: &[f64]| some.iter().map(|x| 1.0 + theta * x).product::<f64>().ln();
        self.values.chunks(TOGETHER).map(product).sum()
    }

    fn count(&self) -> f64 {
        float(self.values.len() as u64)
    }

    /// Log likelihood of a shape and `theta = xi / sigma`.
    fn likelihood(&self, xi: f64, theta: f64, logarithms: f64) -> f64 {
        -self.count() * (xi / theta).ln() - (1.0 + 1.0 / xi) * logarithms
    }

    /// Log likelihood of a distribution.
    #[must_use]
    pub fn log_likelihood(&self, gpd: Gpd) -> f64 {
        if gpd.xi.abs() < 1e-9 {
            return -self.count() * (gpd.sigma.ln() + self.mean / gpd.sigma);
        }
        let theta = gpd.xi / gpd.sigma;
        self.likelihood(gpd.xi, theta, self.logarithms(theta))
    }

    /// The distribution that makes them most likely.
    #[must_use]
    pub fn fit(&self) -> Fit {
        // ln(1 + theta x_max) runs over all that theta can be.
        let theta = |s: f64| s.exp_m1() / self.most;
        let shape = |theta: f64| {
            let logarithms = self.logarithms(theta);
            ((logarithms / self.count()).clamp(LEAST_SHAPE, MOST_SHAPE), logarithms)
        };
        let of = |s: f64| {
            let theta = theta(s);
            if s.abs() < 1e-7 {
                return -self.count() * (self.mean.ln() + 1.0);
            }
            let (xi, logarithms) = shape(theta);
            self.likelihood(xi, theta, logarithms)
        };
        let (s, log_likelihood) = highest(of, -9.0, 13.0, 45);
        let theta = theta(s);
        let gpd = if s.abs() < 1e-7 {
            Gpd { sigma: self.mean, xi: 0.0 }
        } else {
            let (xi, _) = shape(theta);
            Gpd { sigma: xi / theta, xi }
        };
        Fit { gpd, log_likelihood }
    }

    /// The largest log likelihood with this shape.
    fn profile_of_shape(&self, xi: f64) -> f64 {
        let of = |ln_sigma: f64| self.log_likelihood(Gpd { sigma: ln_sigma.exp(), xi });
        // The end must lie beyond the largest.
        let least = if xi < 0.0 { (-xi * self.most).ln() + 1e-9 } else { self.mean.ln() - 8.0 };
        highest(of, least, least.max(self.mean.ln()) + 4.0, 16).1
    }

    /// Where the shape lies: where twice the log likelihood is less than `drop` below its top.
    #[must_use]
    pub fn shape_range(&self, fit: Fit, drop: f64) -> Range {
        let lost = |xi: f64| 2.0 * (fit.log_likelihood - self.profile_of_shape(xi));
        let end = |to: f64| if lost(to) <= drop { to } else { crossing(lost, drop, fit.gpd.xi, to) };
        Range { low: end(LEAST_SHAPE), high: end(MOST_SHAPE) }
    }

    /// The largest log likelihood with which one in `n` is above this excess.
    fn profile_of_level(&self, excess: f64, n: f64) -> f64 {
        let of = |xi: f64| {
            let sigma = excess / power(xi, n);
            self.log_likelihood(Gpd { sigma, xi })
        };
        highest(of, LEAST_SHAPE, MOST_SHAPE, 30).1
    }

    /// Where the excess lies that one in `n` is above (`n` above 1): where twice the log likelihood is less than `drop`
    /// below its top. An end without bound is infinite.
    #[must_use]
    pub fn level_range(&self, fit: Fit, n: f64, drop: f64) -> Range {
        let estimate = fit.gpd.one_in(n);
        let lost = |ln: f64| 2.0 * (fit.log_likelihood - self.profile_of_level(ln.exp(), n));
        let end = |sign: f64, far: f64| {
            let (mut inside, mut step) = (estimate.ln(), 0.25 * sign);
            while lost(inside + step) <= drop {
                inside += step;
                step *= 1.5;
                if (inside - estimate.ln()).abs() > BEYOND.ln() {
                    return far;
                }
            }
            crossing(lost, drop, inside, inside + step).exp()
        };
        Range { low: end(-1.0, 0.0), high: end(1.0, f64::INFINITY) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// Daily rain above 30 mm at a place in south-west England, 1914 to 1962, in mm: what the gauge held (Coles 2001,
    /// example 1.6).
    const RAIN: [f64; 152] = [
        31.8, 32.5, 31.8, 44.5, 30.5, 43.2, 35.6, 38.1, 32.0, 31.8, 33.0, 39.1, 30.5, 31.8, 32.3, 33.0, 30.5,
        32.5, 48.5, 35.3, 40.6, 30.5, 34.3, 32.8, 30.5, 45.7, 31.8, 33.5, 33.5, 31.8, 34.8, 35.3, 37.8, 76.7,
        32.3, 34.0, 33.8, 36.6, 30.5, 45.7, 86.6, 35.6, 47.8, 47.5, 34.3, 48.5, 30.7, 43.4, 59.4, 35.1, 53.3,
        33.5, 30.5, 30.2, 40.9, 42.7, 83.3, 54.9, 59.2, 31.8, 37.3, 32.5, 34.0, 67.3, 31.2, 30.2, 36.1, 36.8,
        38.4, 31.0, 33.3, 47.0, 32.0, 33.0, 38.1, 30.5, 72.4, 34.3, 37.1, 33.0, 40.9, 39.9, 47.0, 36.3, 30.5,
        30.5, 55.9, 31.8, 51.3, 85.3, 41.9, 30.5, 33.0, 35.6, 55.9, 44.2, 38.1, 34.3, 31.8, 32.0, 31.8, 35.6,
        45.2, 30.5, 39.4, 30.2, 44.5, 31.8, 33.8, 51.6, 35.3, 59.4, 33.5, 35.3, 30.5, 36.8, 47.8, 42.9, 37.6,
        55.4, 35.3, 42.4, 33.0, 33.0, 40.1, 34.8, 38.1, 39.4, 34.0, 35.6, 34.3, 33.5, 31.0, 36.6, 36.3, 38.4,
        38.1, 47.0, 31.0, 30.5, 31.2, 35.6, 48.8, 41.9, 31.7, 31.2, 51.3, 33.5, 37.6, 39.4, 39.4, 45.7,
    ];
    /// The days among which they were.
    const RAIN_DAYS: f64 = 17_531.0;

    /// Coles 2001, example 4.4.1; and the digits that are not printed there, as SciPy's optimisers find them.
    #[test]
    fn the_rain_of_south_west_england_has_the_fit_that_is_published() {
        let exactly = |value: f64, exact: f64| {
            assert!((value / exact - 1.0).abs() < 1e-5, "{value} for {exact}");
        };
        let near = |value: f64, published: f64, last: f64, exact: f64| {
            assert!((value - published).abs() <= 0.5 * last, "{value} for {published}");
            exactly(value, exact);
        };
        let excesses = Excesses::new(RAIN.iter().map(|mm| mm - 30.0).collect()).unwrap();
        let fit = excesses.fit();
        near(fit.gpd.sigma, 7.44, 0.01, 7.440_269);
        near(fit.gpd.xi, 0.184, 0.001, 0.184_499);
        near(fit.log_likelihood, -485.1, 0.1, -485.093_721);
        // The level reached on one day of a hundred years, and its profile.
        let n = 36_500.0 * 152.0 / RAIN_DAYS;
        let level = excesses.level_range(fit, n, 3.841_458_8);
        near(30.0 + fit.gpd.one_in(n), 106.3, 0.1, 106.328_02);
        near(30.0 + level.low, 80.9, 0.1, 80.857_46);
        near(30.0 + level.high, 185.0, 0.1, 184.987_75);
        let shape = excesses.shape_range(fit, 3.841_458_8);
        exactly(shape.low, 0.013_561_6);
        exactly(shape.high, 0.415_439_9);
    }

    fn drawn(gpd: Gpd, n: usize, seed: u64) -> Excesses {
        let mut random = Random::new(seed);
        Excesses::new((0..n).map(|_| gpd.one_in(1.0 / random.unit())).collect()).unwrap()
    }

    #[test]
    fn many_excesses_give_back_what_they_were_drawn_from() {
        for xi in [-0.3, 0.0, 0.2, 0.6] {
            let fit = drawn(Gpd { sigma: 3.0, xi }, 40_000, 5).fit();
            assert!((fit.gpd.xi - xi).abs() < 0.03 && (fit.gpd.sigma - 3.0).abs() < 0.1, "{xi}: {fit:?}");
        }
    }

    #[test]
    fn no_neighbour_is_more_likely_and_the_ranges_hold_the_estimate() {
        for (seed, xi) in [(1, -0.45), (2, -0.1), (3, 0.05), (4, 0.4), (5, 0.9)] {
            let excesses = drawn(Gpd { sigma: 1_000.0, xi }, 120, seed);
            let fit = excesses.fit();
            for (dx, ds) in [(0.01, 1.0), (-0.01, 1.0), (0.0, 1.01), (0.0, 0.99)] {
                let near = Gpd { sigma: fit.gpd.sigma * ds, xi: (fit.gpd.xi + dx).max(LEAST_SHAPE) };
                assert!(excesses.log_likelihood(near) <= fit.log_likelihood + 1e-6, "{fit:?} {near:?}");
            }
            let shape = excesses.shape_range(fit, 3.84);
            assert!(shape.low <= fit.gpd.xi && fit.gpd.xi < shape.high, "{shape:?}");
            let level = excesses.level_range(fit, 5_000.0, 3.84);
            let estimate = fit.gpd.one_in(5_000.0);
            assert!(level.low < estimate && estimate < level.high, "{level:?} {estimate}");
        }
    }

    #[test]
    fn what_does_not_vary_has_no_fit() {
        assert!(Excesses::new(Vec::new()).is_none());
        assert!(Excesses::new(vec![4.0; 90]).is_none());
        assert!(Excesses::new(vec![1.0, f64::INFINITY]).is_none());
        assert!(Excesses::new(vec![0.0, 1.0]).is_none());
    }
}
