//! Many tests in one search: the share of the finds that may be false.

use tactus_model::number::float;

/// The share of false finds that a search is content with.
pub const FALSE_FINDS: f64 = 0.1;

/// The p-values of one search, each as large as the smallest share of false finds at which it is among the finds
/// (Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57,
/// 1995). It holds for tests that do not depend on each other, or that err together.
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*other].total_cmp(&p[*one]));
    let all = float(p.len() as u64);
    let (mut adjusted, mut most) = (vec![1.0; p.len()], 1.0_f64);
    for (above, at) in order.into_iter().enumerate() {
        most = most.min(p[at] * all / (all - float(above as u64)));
        adjusted[at] = most;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_textbook_family_is_adjusted_from_the_largest_down() {
        // R, p.adjust(c(0.01, 0.04, 0.03, 0.005), "BH"): 0.02 0.04 0.04 0.02.
        let adjusted = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]);
        for (found, wanted) in adjusted.iter().zip([0.02, 0.04, 0.04, 0.02]) {
            assert!((found - wanted).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(benjamini_hochberg(&[]), Vec::<f64>::new());
        assert!(benjamini_hochberg(&[0.9, 0.95]).iter().all(|q| *q <= 1.0));
    }
}
