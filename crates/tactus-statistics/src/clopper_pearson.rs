//! How often something may happen that was never seen.

use tactus_model::number::float;

/// The largest share of all trials in which something may happen that happened in none of `count`, at 95 %: exact,
/// `1 - 0.05^(1 / count)` (C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the
/// case of the binomial", Biometrika 26, 1934).
#[must_use]
pub fn at_most(count: usize) -> f64 {
    if count == 0 { 1.0 } else { 1.0 - 0.05_f64.powf(1.0 / float(count as u64)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_nine_injections_bound_the_share_by_a_tenth() {
        assert!(at_most(28) > 0.1 && at_most(29) < 0.1);
        assert!((at_most(8) - 0.312).abs() < 0.001 && (at_most(600) - 0.005).abs() < 0.001);
        assert!(at_most(0) >= 1.0);
    }
}
