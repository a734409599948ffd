//! Whether a property and an outcome go together more than chance has it.

use tactus_model::number::float;

/// Logarithms of factorials, up to `n`.
fn ln_factorials(n: usize) -> Vec<f64> {
    let mut all = vec![0.0; n + 1];
    for k in 1..=n {
        all[k] = all[k - 1] + float(k as u64).ln();
    }
    all
}

/// The chance that at least `hit` of `with` machines are among the `hits` of all `all`, if the property has
/// nothing to do with the outcome. This is Fisher's exact test, one-sided (R. A. Fisher, "The Design of
/// Experiments", 1935; the tail of the hypergeometric distribution).
#[must_use]
pub fn fisher(hit: usize, with: usize, hits: usize, all: usize) -> f64 {
    if hit > with || hit > hits || with > all || hits > all {
        return 1.0;
    }
    let ln = ln_factorials(all);
    let choose = |n: usize, k: usize| ln[n] - ln[k] - ln[n - k];
    let possible = choose(all, with);
    let chance = |k: usize| (choose(hits, k) + choose(all - hits, with - k) - possible).exp();
    let least = (with + hits).saturating_sub(all).max(hit);
    let sum: f64 = (least..=with.min(hits)).map(chance).sum();
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chances_are_those_of_the_textbook() {
        // The lady tasting tea: all four of four among eight, 1 in 70; three or more, 17 in 70.
        assert!((fisher(4, 4, 4, 8) - 1.0 / 70.0).abs() < 1e-12);
        assert!((fisher(3, 4, 4, 8) - 17.0 / 70.0).abs() < 1e-12);
        // Counted with whole numbers (Python's math.comb).
        assert!((fisher(12, 17, 15, 50) - 1.556_801_296e-5).abs() < 1e-12, "{}", fisher(12, 17, 15, 50));
        assert!((fisher(0, 5, 3, 9) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn tables_that_cannot_be_say_nothing() {
        for (hit, with, hits, all) in [(5, 4, 9, 10), (1, 20, 3, 10), (2, 3, 1, 10), (0, 0, 0, 0)] {
            assert!((fisher(hit, with, hits, all) - 1.0).abs() < 1e-12);
        }
    }
}
