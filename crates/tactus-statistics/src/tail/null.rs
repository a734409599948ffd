//! The distributions of the tests without any effect, as tables that were drawn once. They have many more
//! draws than a report could make, and are the same for all users. `make simulate` draws them again and
//! compares.

use tactus_model::number::float;

use super::null_tables::{ANDERSON_DARLING, CHANCES, KPSS, LJUNG_BOX, Line, SHAPES};

/// The chance of so large a statistic, from a line of quantiles: its logarithm is straight between two, and beyond them,
/// as the tails of both distributions are.
fn chance(statistic: f64, quantiles: &[f64; CHANCES.len()]) -> f64 {
    let at = quantiles.partition_point(|quantile| *quantile < statistic).clamp(1, CHANCES.len() - 1);
    let (low, high) = (quantiles[at - 1], quantiles[at]);
    let (before, after) = (CHANCES[at - 1].ln(), CHANCES[at].ln());
    (before + (statistic - low) / (high - low) * (after - before)).exp().min(1.0)
}

/// The line between two others.
fn between(one: &[f64; CHANCES.len()], other: &[f64; CHANCES.len()], part: f64) -> [f64; CHANCES.len()] {
    std::array::from_fn(|n| one[n] + part.clamp(0.0, 1.0) * (other[n] - one[n]))
}

/// The line for `n` values, between its neighbours by `1/n`: the difference of finite samples is proportional
/// to that.
fn for_size(table: &[Line], n: usize) -> [f64; CHANCES.len()] {
    let n = float(n as u64).max(1.0);
    let at = table.partition_point(|(size, _)| *size < n).clamp(1, table.len() - 1);
    let ((small, one), (large, other)) = (&table[at - 1], &table[at]);
    between(one, other, (1.0 / small - 1.0 / n) / (1.0 / small - 1.0 / large))
}

/// The chance of such a large statistic of Ljung and Box, of ten lags, of permuted normal scores.
#[must_use]
pub fn ljung_box_p(statistic: f64, n: usize) -> f64 {
    chance(statistic, &for_size(&LJUNG_BOX, n))
}

/// The same of that of Kwiatkowski, Phillips, Schmidt and Shin.
#[must_use]
pub fn kpss_p(statistic: f64, n: usize) -> f64 {
    chance(statistic, &for_size(&KPSS, n))
}

/// The chance of so large a statistic of Anderson and Darling of `k` excesses whose fitted shape is `xi`.
#[must_use]
pub fn anderson_darling_p(statistic: f64, k: usize, xi: f64) -> f64 {
    let xi = xi.clamp(SHAPES[0], SHAPES[SHAPES.len() - 1]);
    let at = SHAPES.partition_point(|shape| *shape < xi).clamp(1, SHAPES.len() - 1);
    let of = |at: usize| for_size(&ANDERSON_DARLING[at], k);
    let part = (xi - SHAPES[at - 1]) / (SHAPES[at] - SHAPES[at - 1]);
    chance(statistic, &between(&of(at - 1), &of(at), part))
}

#[cfg(test)]
mod tests {
    use tactus_model::number::whole;

    use super::super::goodness_of_fit::anderson_darling;
    use super::super::gpd::{Excesses, Gpd};
    use super::super::stationarity::{LAGS, kpss, ljung_box, normal_scores};
    use super::*;
    use crate::Random;

    /// Of drawn statistics what is at each chance.
    fn quantiles(mut drawn: Vec<f64>) -> [f64; CHANCES.len()] {
        drawn.sort_by(f64::total_cmp);
        let n = float(drawn.len() as u64);
        CHANCES.map(|chance| drawn[usize::try_from(whole((1.0 - chance) * (n - 1.0))).unwrap()])
    }

    fn shuffle(values: &mut [f64], random: &mut Random) {
        for n in (1..values.len()).rev() {
            let other = usize::try_from(whole((random.unit() * float(n as u64 + 1)).floor())).unwrap();
            values.swap(n, other.min(n));
        }
    }

    fn permuted(n: u32, times: u64, of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        let mut random = Random::new(u64::from(n));
        let mut scores = normal_scores(&(0..n).map(f64::from).collect::<Vec<_>>());
        let draw = |_| {
            shuffle(&mut scores, &mut random);
            of(&scores)
        };
        (0..times).map(draw).collect()
    }

    fn fitted(k: u32, xi: f64, times: u64) -> Vec<f64> {
        let mut random = Random::new(u64::from(k) + whole(100.0 * (xi + 1.0)));
        let draw = |_| {
            let one = Gpd { sigma: 1.0, xi };
            let excesses = Excesses::new((0..k).map(|_| one.one_in(1.0 / random.unit())).collect()).unwrap();
            let fit = excesses.fit();
            anderson_darling(&excesses.rising(), fit.gpd)
        };
        (0..times).map(draw).collect()
    }

    /// The largest relative difference of two lines, up to a chance.
    fn apart(one: &[f64; CHANCES.len()], other: &[f64; CHANCES.len()], up_to: f64) -> f64 {
        let part = |n: usize| (one[n] / other[n] - 1.0).abs();
        (0..CHANCES.len()).filter(|n| CHANCES[*n] >= up_to).map(part).fold(0.0, f64::max)
    }

    /// The published critical values of the level statistic at 10, 5, 2.5 and 1 % (Kwiatkowski and others, 1992, table 1) are
    /// those of long series.
    #[test]
    fn the_published_critical_values_have_the_chances_that_they_are_published_for() {
        for (critical, chance) in [(0.347, 0.10), (0.463, 0.05), (0.574, 0.025), (0.739, 0.01)] {
            let found = kpss_p(critical, 4_800);
            assert!((found / chance - 1.0).abs() < 0.06, "{critical}: {found} for {chance}");
        }
        // Chi-squared with ten degrees of freedom, of long series too.
        for (critical, chance) in [(9.342, 0.5), (15.987, 0.10), (18.307, 0.05), (23.209, 0.01)] {
            let found = ljung_box_p(critical, 4_800);
            assert!((found / chance - 1.0).abs() < 0.06, "{critical}: {found} for {chance}");
        }
    }

    #[test]
    fn chances_fall_with_the_statistic_and_lie_between_nought_and_one() {
        for xi in [-0.9, -0.5, -0.05, 0.0, 0.33, 1.0, 3.0] {
            for k in [50, 73, 100, 399, 5_000] {
                let all: Vec<f64> =
                    (0..60_u32).map(|n| anderson_darling_p(0.05 * f64::from(n), k, xi)).collect();
                assert!(
                    all.windows(2).all(|pair| pair[1] <= pair[0]) && all[0] <= 1.0 && all[59] > 0.0,
                    "{all:?}"
                );
            }
        }
    }

    #[test]
    #[ignore = "long: make simulate"]
    fn simulation_of_the_tables() {
        let times: u64 = std::env::var("TABLES").ok().and_then(|times| times.parse().ok()).unwrap_or(20_000);
        let show = |of: &[f64; CHANCES.len()]| of.map(|value| format!("{value:.4}")).join(", ");
        for (name, table) in [("LJUNG_BOX", &LJUNG_BOX[..]), ("KPSS", &KPSS[..])] {
            println!("{name}: {times} permutations");
            for n in [300, 600, 1_200, 4_800] {
                let statistic =
                    |values: &[f64]| if name == "KPSS" { kpss(values) } else { ljung_box(values, LAGS) };
                let drawn = quantiles(permuted(n, times * 300 / u64::from(n).min(1_200), statistic));
                println!("    ({n}.0, [{}]),", show(&drawn));
                let found = apart(&drawn, &for_size(table, usize::try_from(n).unwrap()), 0.0125);
                assert!(std::env::var_os("TABLES").is_some() || found < 0.06, "{name}, {n}: {found}");
            }
        }
        for xi in [-0.5, -0.4, -0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.4, 0.7, 1.0] {
            println!("ANDERSON_DARLING, {xi}: {times} draws\n    [");
            for k in [50, 100, 400] {
                let drawn = quantiles(fitted(k, xi, times));
                println!("        ({k}.0, [{}]),", show(&drawn));
                let at = SHAPES.iter().position(|shape| (shape - xi).abs() < 1e-9).unwrap_or(0);
                let found =
                    apart(&drawn, &for_size(&ANDERSON_DARLING[at], usize::try_from(k).unwrap()), 0.01);
                assert!(std::env::var_os("TABLES").is_some() || found < 0.06, "{xi}, {k}: {found}");
            }
            println!("    ],");
        }
    }
}
