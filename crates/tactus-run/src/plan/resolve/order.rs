//! The order in which scenarios are measured: that of the plan, and by lot where they are repeated.

use tactus_model::random::SplitMix64;

/// A scenario by its place in the plan, and which run of it, of how many.
type Turn = (usize, Option<(u32, u32)>);

/// The turns of scenarios of which so many runs are made each. Repeated ones are measured in rounds, each with one
/// run of every scenario that has any left, in an order drawn by lot: what drifts or comes and goes then falls on
/// all of them alike. The rounds stand where the first repeated scenario stands in the plan.
pub fn of(repeats: &[u32], seed: u64) -> Vec<Turn> {
    let mut lot = Lot::new(seed);
    let mut turns = Vec::new();
    let mut drawn = false;
    for (at, repeat) in repeats.iter().enumerate() {
        if *repeat <= 1 {
            turns.push((at, None));
        } else if !drawn {
            drawn = true;
            for run in 1..=repeats.iter().copied().max().unwrap_or(1) {
                let has_run = |at: &usize| repeats[*at] > 1 && repeats[*at] >= run;
                let mut round: Vec<usize> = (0..repeats.len()).filter(has_run).collect();
                lot.shuffle(&mut round);
                turns.extend(round.into_iter().map(|at| (at, Some((run, repeats[at])))));
            }
        }
    }
    turns
}

/// Draws lots.
pub struct Lot(SplitMix64);

impl Lot {
    /// Begins with a seed.
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// One of two.
    pub fn draw(&mut self) -> bool {
        self.0.draw() & 1 == 1
    }

    /// Any order, each as likely as another (Fisher and Yates; the bias of the product is below n / 2^64).
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let product = u128::from(self.0.draw()) * u128::try_from(last + 1).unwrap_or(1);
            items.swap(last, usize::try_from(product >> 64).unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_where_nothing_is_repeated() {
        assert_eq!(of(&[1, 1, 1], 7), [(0, None), (1, None), (2, None)]);
    }

    #[test]
    fn each_round_has_every_repeated_scenario_once_in_an_order_of_its_own() {
        let turns = of(&[1, 8, 8, 1, 8], 7);
        assert_eq!((turns[0], turns[25]), ((0, None), (3, None)));
        let rounds: Vec<Vec<usize>> =
            turns[1..25].chunks(3).map(|r| r.iter().map(|t| t.0).collect()).collect();
        for (round, run) in turns[1..25].chunks(3).zip(1..) {
            let mut all: Vec<usize> = round.iter().map(|turn| turn.0).collect();
            all.sort_unstable();
            assert_eq!(all, [1, 2, 4]);
            assert!(round.iter().all(|turn| turn.1 == Some((run, 8))));
        }
        assert!(rounds.iter().any(|round| *round != rounds[0]));
        assert_eq!(turns, of(&[1, 8, 8, 1, 8], 7), "the seed decides");
        assert_ne!(turns, of(&[1, 8, 8, 1, 8], 8));
    }

    #[test]
    fn every_order_of_a_round_is_as_likely_as_another() {
        let mut seen = std::collections::BTreeMap::new();
        for seed in 0..6_000 {
            let order: Vec<usize> = of(&[2, 2, 2], seed)[..3].iter().map(|turn| turn.0).collect();
            *seen.entry(order).or_insert(0) += 1;
        }
        // 1000 each; four standard deviations are 115.
        assert!(seen.len() == 6 && seen.values().all(|n| (885..1115).contains(n)), "{seen:?}");
    }
}
