//! Whether excesses look like the distribution that was fitted to them.
//!
//! The statistic of Anderson and Darling gives the tails the most weight. If both parameters are fitted, its
//! distribution depends on the shape (V. Choulakian and M. A. Stephens, "Goodness-of-fit tests for the
//! generalized Pareto distribution", Technometrics 43, 2001). A parametric bootstrap would find it by drawing
//! anew. Apart from the shape it depends only a little, on the number of excesses. So it was drawn once, with
//! many more draws than a bootstrap makes, and is kept as a table ([`super::null`]).

use tactus_model::number::float;

use super::gpd::Gpd;

/// The statistic of excesses in rising order.
#[must_use]
pub fn anderson_darling(rising: &[f64], gpd: Gpd) -> f64 {
    let n = float(rising.len() as u64);
    // At the end of a distribution that has one the hazard is infinite: as far as a number goes.
    let hazards: Vec<f64> = rising.iter().map(|x| gpd.hazard(*x).clamp(1e-300, 700.0)).collect();
    let of = |(i, (up, down)): (u64, (&f64, &f64))| (2.0 * float(i) + 1.0) * ((-(-up).exp_m1()).ln() - down);
    let sum: f64 = (0..).zip(hazards.iter().zip(hazards.iter().rev())).map(of).sum();
    -n - sum / n
}

/// How many of ordered hypotheses, from the first, are rejected where at most this part of those rejected may be true
/// (`ForwardStop`: M. G'Sell and others, Journal of the Royal Statistical Society B 78, 2016; for thresholds B. Bader, J.
/// Yan and X. Zhang, Annals of Applied Statistics 12, 2018).
#[must_use]
pub fn forward_stop(p: &[f64], part: f64) -> usize {
    let (mut sum, mut rejected) = (0.0, 0);
    for (n, p) in (1..).zip(p) {
        sum -= (-p).ln_1p().max(-700.0);
        if sum / float(n) <= part {
            rejected = usize::try_from(n).unwrap_or(rejected);
        }
    }
    rejected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forward_stop_rejects_up_to_the_last_place_where_the_mean_is_small() {
        assert_eq!(forward_stop(&[0.01, 0.02, 0.5, 0.9], 0.1), 2);
        assert_eq!(forward_stop(&[0.2, 0.01, 0.001, 0.9], 0.1), 3, "a later one takes those before with it");
        assert_eq!(forward_stop(&[0.5, 0.6], 0.1), 0);
        assert_eq!(forward_stop(&[0.01], 0.1), 1);
        assert_eq!(forward_stop(&[], 0.1), 0);
    }

    #[test]
    fn even_excesses_have_a_small_statistic_and_others_a_large_one() {
        let gpd = Gpd { sigma: 2.0, xi: 0.1 };
        let even: Vec<f64> = (0..100_u64).map(|n| gpd.one_in(100.0 / (99.5 - float(n)))).collect();
        assert!(anderson_darling(&even, gpd) < 0.1);
        let other = Gpd { sigma: 1.0, xi: 0.5 };
        assert!(anderson_darling(&even, other) > 2.0);
        // Beyond the end of the fitted law: large, and not NaN.
        assert!(anderson_darling(&even, Gpd { sigma: 1.0, xi: -0.4 }) > 10.0);
    }
}
