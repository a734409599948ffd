//! The generalised extreme value distribution of maxima over long blocks, to hold the other method against.
//!
//! S. Coles, "An Introduction to Statistical Modeling of Extreme Values", 2001, chapter 3.

use tactus_model::number::float;

use super::gpd::{LEAST_SHAPE, Range};
use super::maximize::{crossing, simplex};

/// The distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gev {
    /// Location.
    pub mu: f64,
    /// Scale.
    pub sigma: f64,
    /// Shape.
    pub xi: f64,
}

impl Gev {
    /// The value that a block's maximum exceeds with a rate of one in `n` blocks: its distribution is `exp(-1/n)` there.
    #[must_use]
    pub fn once_in(&self, n: f64) -> f64 {
        self.mu + self.sigma * reduced(self.xi, n.ln())
    }

    /// Log likelihood of maxima.
    #[must_use]
    pub fn log_likelihood(&self, maxima: &[f64]) -> f64 {
        let Self { mu, sigma, xi } = *self;
        if sigma <= 0.0 || !(LEAST_SHAPE..5.0).contains(&xi) {
            return f64::NEG_INFINITY;
        }
        let of = |x: &f64| {
            let z = (x - mu) / sigma;
            // -ln of the reduced variate's rate.
            let s = if xi.abs() < 1e-7 {
                z
            } else if 1.0 + xi * z > 0.0 {
                (xi * z).ln_1p() / xi
            } else {
                return f64::NEG_INFINITY;
            };
            -(1.0 + xi) * s - (-s).exp()
        };
        maxima.iter().map(of).sum::<f64>() - float(maxima.len() as u64) * sigma.ln()
    }
}

/// `(e^(xi y) - 1) / xi`, and its limit `y`.
fn reduced(xi: f64, y: f64) -> f64 {
    if xi.abs() < 1e-9 { y } else { (xi * y).exp_m1() / xi }
}

/// A fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The distribution.
    pub gev: Gev,
    /// Its log likelihood.
    pub log_likelihood: f64,
}

/// The distribution that makes maxima most likely; `None` if they are all equal.
#[must_use]
pub fn fit(maxima: &[f64]) -> Option<Fit> {
    let n = float(maxima.len() as u64);
    let mean = maxima.iter().sum::<f64>() / n;
    let spread = (maxima.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    if !(spread > 0.0 && spread.is_finite()) {
        return None;
    }
    // Gumbel's moments to begin with, in units of the spread.
    let sigma = 0.78 * spread;
    let of = |at: &[f64; 3]| {
        Gev { mu: mean + at[0] * spread, sigma: at[1].exp() * sigma, xi: at[2] }.log_likelihood(maxima)
    };
    let starts = [[-0.45, 0.0, 0.1], [-0.4, -0.4, -0.1], [-0.5, -0.7, 0.4]];
    let best = starts.map(|start| simplex(of, start, [0.2, 0.2, 0.1]));
    let (at, log_likelihood) = best.into_iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let gev = Gev { mu: mean + at[0] * spread, sigma: at[1].exp() * sigma, xi: at[2] };
    log_likelihood.is_finite().then_some(Fit { gev, log_likelihood })
}

/// Where the value lies that is exceeded once in blocks whose distribution there is `exp(-1/n)`: where twice the log
/// likelihood is less than `drop` below its top.
#[must_use]
pub fn level_range(maxima: &[f64], fit: Fit, n: f64, drop: f64) -> Range {
    let (estimate, sigma) = (fit.gev.once_in(n), fit.gev.sigma);
    let lost = |level: f64| {
        let of = |at: &[f64; 2]| {
            let sigma = at[0].exp() * sigma;
            let mu = level - sigma * reduced(at[1], n.ln());
            Gev { mu, sigma, xi: at[1] }.log_likelihood(maxima)
        };
        // A small shape beside that of the fit: with a level far above it the top lies there.
        let best = [fit.gev.xi, fit.gev.xi + 0.3].map(|xi| simplex(of, [0.0, xi], [0.1, 0.05]).1);
        2.0 * (fit.log_likelihood - best[0].max(best[1]))
    };
    let end = |sign: f64| {
        let (mut inside, mut step) = (0.0, 0.5 * sigma);
        while lost(estimate + sign * (inside + step)) <= drop {
            inside += step;
            step *= 1.6;
            if step > 1e9 * sigma {
                return sign * f64::INFINITY;
            }
        }
        estimate + sign * crossing(|by| lost(estimate + sign * by), drop, inside, inside + step)
    };
    Range { low: end(-1.0), high: end(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Annual maximum sea levels at Port Pirie, South Australia, 1923 to 1987, in metres: what the tide gauge read.
    const PORT_PIRIE: [f64; 65] = [
        4.03, 3.83, 3.65, 3.88, 4.01, 4.08, 4.18, 3.80, 4.36, 3.96, 3.98, 4.69, 3.85, 3.96, 3.85, 3.93, 3.75,
        3.63, 3.57, 4.25, 3.97, 4.05, 4.24, 4.22, 3.73, 4.37, 4.06, 3.71, 3.96, 4.06, 4.55, 3.79, 3.89, 4.11,
        3.85, 3.86, 3.86, 4.21, 4.01, 4.11, 4.24, 3.96, 4.21, 3.74, 3.85, 3.88, 3.66, 4.11, 3.71, 4.18, 3.90,
        3.78, 3.91, 3.72, 4.00, 3.66, 3.62, 4.33, 4.55, 3.75, 4.08, 3.90, 3.88, 3.94, 4.33,
    ];

    /// The standard errors that the curvature of the likelihood gives: for the known answer alone, bounds never use them.
    fn standard_errors(maxima: &[f64], at: Gev) -> [f64; 3] {
        let h = 1e-4;
        let of = |d: [f64; 3]| {
            Gev { mu: at.mu + d[0], sigma: at.sigma + d[1], xi: at.xi + d[2] }.log_likelihood(maxima)
        };
        let unit = |n: usize, by: f64| {
            let mut d = [0.0; 3];
            d[n] = by;
            d
        };
        let second = |i: usize, j: usize| {
            let add = |a: f64, b: f64| {
                let (mut d, e) = (unit(i, a), unit(j, b));
                d.iter_mut().zip(e).for_each(|(own, more)| *own += more);
                of(d)
            };
            -(add(h, h) - add(h, -h) - add(-h, h) + add(-h, -h)) / (4.0 * h * h)
        };
        let m: Vec<Vec<f64>> = (0..3).map(|i| (0..3).map(|j| second(i, j)).collect()).collect();
        let minor = |r: usize, c: usize| {
            let of: Vec<f64> = (0..3)
                .filter(|i| *i != r)
                .flat_map(|i| (0..3).filter(move |j| *j != c).map(move |j| (i, j)))
                .map(|(i, j)| m[i][j])
                .collect();
            of[0] * of[3] - of[1] * of[2]
        };
        let whole = m[0][0] * minor(0, 0) - m[0][1] * minor(0, 1) + m[0][2] * minor(0, 2);
        [0, 1, 2].map(|n| (minor(n, n) / whole).sqrt())
    }

    /// Coles 2001, section 3.4.1.
    #[test]
    fn the_sea_levels_of_port_pirie_have_the_fit_that_is_published() {
        let found = fit(&PORT_PIRIE).unwrap();
        let near = |value: f64, published: f64, last: f64| {
            assert!(
                (value - published).abs() <= (0.01 * published.abs()).max(last),
                "{value} for {published}"
            );
        };
        near(found.gev.mu, 3.87, 0.005);
        near(found.gev.sigma, 0.198, 0.0005);
        near(found.gev.xi, -0.050, 0.0005);
        near(found.log_likelihood, 4.339, 0.0005);
        for (own, published) in
            standard_errors(&PORT_PIRIE, found.gev).into_iter().zip([0.0279, 0.0202, 0.0983])
        {
            near(own, published, 0.00005);
        }
        // A level that a year exceeds with a probability of 1 in 100: exp(-1/n) is 0.99.
        let n = -1.0 / 0.99_f64.ln();
        near(found.gev.once_in(n), 4.69, 0.005);
        let range = level_range(&PORT_PIRIE, found, n, 3.841_458_8);
        near(range.low, 4.49, 0.005);
        near(range.high, 5.26, 0.005);
    }

    #[test]
    fn what_does_not_vary_has_no_fit() {
        assert_eq!(fit(&[3.0; 40]), None);
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[1.0, f64::NAN]), None);
    }
}
