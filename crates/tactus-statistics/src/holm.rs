//! Many tests in one report: all results hold together.

/// The error of a whole report: with 95 % it contains no false effect.
pub const ERROR: f64 = 0.05;

/// Adjusts the p-values of one family of tests for their number. A test is significant at an error if its
/// adjusted value is not above it, and all significant tests hold together (S. Holm, "A simple sequentially
/// rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979). Tests may depend on each
/// other in any way.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 0.0_f64;
    for (done, at) in order.into_iter().enumerate() {
        let left = u32::try_from(p.len() - done).unwrap_or(u32::MAX);
        least = least.max(p[at] * f64::from(left)).min(1.0);
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_textbook_family_is_adjusted_step_by_step() {
        // R, p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm"): 0.03 0.06 0.06 0.02.
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, wanted) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - wanted).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert!((holm(&[0.7, 0.8])[1] - 1.0).abs() < 1e-12);
    }
}
