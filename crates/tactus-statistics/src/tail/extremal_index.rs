//! Whether exceedances come in clusters: the extremal index.
//!
//! By the times between exceedances (C. A. T. Ferro and J. Segers, "Inference for clusters of extreme values", Journal
//! of the Royal Statistical Society B 65, 2003): 1 where they come alone, 1/2 where they come in pairs.

use tactus_model::number::float;

/// The extremal index of exceedances at these places, in order; 1 for fewer than three.
#[must_use]
pub fn extremal_index(places: &[usize]) -> f64 {
    let times: Vec<f64> = places.windows(2).map(|pair| float((pair[1] - pair[0]) as u64)).collect();
    if times.len() < 2 {
        return 1.0;
    }
    let n = float(times.len() as u64);
    let sum = |of: &dyn Fn(f64) -> f64| times.iter().map(|time| of(*time)).sum::<f64>();
    let (above, below) = if times.iter().all(|time| *time <= 2.0) {
        (sum(&|t| t).powi(2), sum(&|t| t * t))
    } else {
        (sum(&|t| t - 1.0).powi(2), sum(&|t| (t - 1.0) * (t - 2.0)))
    };
    if below <= 0.0 { 1.0 } else { (2.0 * above / (n * below)).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn single_exceedances_have_one_pairs_half_of_it() {
        let mut random = Random::new(8);
        let alone: Vec<usize> = (0..60_000).filter(|_| random.unit() < 0.05).collect();
        assert!(extremal_index(&alone) > 0.95, "{}", extremal_index(&alone));
        // Each of them is followed by another one at once.
        let pairs: Vec<usize> = alone.iter().flat_map(|at| [2 * at, 2 * at + 1]).collect();
        assert!((extremal_index(&pairs) - 0.5).abs() < 0.05, "{}", extremal_index(&pairs));
        assert!((extremal_index(&[4]) - 1.0).abs() < 1e-12 && (extremal_index(&[]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_formula_is_that_of_the_paper() {
        // Times 1, 4, 10: sums of T - 1 and (T - 1)(T - 2) are 12 and 0 + 6 + 72.
        assert!((extremal_index(&[0, 1, 5, 15]) - 2.0 * 144.0 / (3.0 * 78.0)).abs() > 0.0);
        assert!((extremal_index(&[0, 1, 5, 15]) - 1.0).abs() < 1e-12, "never above one");
        // Times 1, 1, 1, 21: 20 squared, twice, over 4 times 20 * 19.
        assert!((extremal_index(&[0, 1, 2, 3, 24]) - 800.0 / (4.0 * 380.0)).abs() < 1e-12);
        // Times 1, 2: none above two.
        assert!((extremal_index(&[0, 1, 3]) - 1.0).abs() < 1e-12);
    }
}
