//! How large an effect must be for a number of pairs to show it: said before anything is measured.

use statrs::distribution::{ContinuousCDF, Normal};

use super::autocorrelation::size;
use super::random::Random;
use super::signed_rank::paired_p;

/// How many experiments are drawn.
const DRAWN: usize = 1_000;
/// In how many of 100 the effect is to be shown.
const POWER: usize = 80;
/// With more pairs than this the normal approximation is good enough.
const FEW: usize = 30;
/// An effect of more standard deviations needs no test.
const MOST: f64 = 20.0;

/// The smallest effect that this many pairs show at this error in 80 of 100 experiments, in standard
/// deviations of a pair's difference; `None` if they cannot show any. Differences are normal. Drawn with a
/// fixed seed.
#[must_use]
pub fn detectable(pairs: usize, error: f64) -> Option<f64> {
    if pairs > FEW {
        // The signed-rank test needs pi / 3 times the values of the t test.
        let normal = Normal::standard();
        let needed = normal.inverse_cdf(1.0 - error / 2.0) + normal.inverse_cdf(0.8);
        return Some(needed * (std::f64::consts::PI / 3.0 / size(pairs)).sqrt());
    }
    let mut random = Random::new(0x7461_6374_7573);
    let mut least: Vec<f64> = Vec::with_capacity(DRAWN);
    for _ in 0..DRAWN {
        let noise: Vec<f64> = (0..pairs).map(|_| random.normal()).collect();
        let shown = |effect: f64| {
            let moved: Vec<f64> = noise.iter().map(|one| one + effect).collect();
            paired_p(&moved) <= error
        };
        if !shown(MOST) {
            return None;
        }
        // The larger the effect, the smaller the p-value; below the noise's own it may be shown as negative.
        let (mut low, mut high) = (0.0, MOST);
        for _ in 0..12 {
            let middle = f64::midpoint(low, high);
            if shown(middle) { high = middle } else { low = middle }
        }
        least.push(high);
    }
    least.sort_by(f64::total_cmp);
    least.get(DRAWN * POWER / 100).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_pairs_show_two_standard_deviations_and_not_one() {
        // Three quantities of one setting: at one standard deviation the power is 27 %, at two 87 %.
        let found = detectable(10, 0.05 / 3.0).unwrap();
        assert!(found > 1.2 && found < 2.0, "{found}");
        assert!(detectable(20, 0.05 / 3.0).unwrap() < found);
        let [counted, approximated] = [30, 31].map(|pairs| detectable(pairs, 0.05 / 3.0).unwrap());
        assert!((counted / approximated - 1.0).abs() < 0.15, "{counted} {approximated}");
        assert_eq!(detectable(6, 0.05 / 3.0), None);
    }
}
