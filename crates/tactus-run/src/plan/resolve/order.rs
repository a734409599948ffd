//! The order in which scenarios are measured: that of the plan, and random where they are repeated.

use std::collections::BTreeMap;

use tactus_model::random::SplitMix64;

/// A scenario by its place in the plan, which run of it, of how many, and which slice of that run, of how many.
pub type Turn = (usize, Option<(u32, u32)>, Option<(u32, u32)>);

/// In how many parts a scenario is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The number of runs of it.
    pub repeats: u32,
    /// The number of slices of each run.
    pub slices: u32,
    /// Scenarios of the same place are measured in rounds together.
    pub place: usize,
}

impl Parts {
    /// The number of all of them.
    pub const fn all(self) -> u32 {
        self.repeats.saturating_mul(self.slices)
    }

    /// The n-th of all, from 0.
    fn turn(self, at: usize, n: u32) -> Turn {
        let Self { repeats, slices, .. } = self;
        let run = (repeats > 1).then(|| (n / slices + 1, repeats));
        (at, run, (slices > 1).then(|| (n % slices + 1, slices)))
    }
}

/// The turns of scenarios, each measured in one or more parts. Scenarios of several parts are measured in rounds,
/// each with one part of every scenario that has any left, in random order. A drift or a passing disturbance then
/// falls on all of them alike. The rounds of a place stand where the first of its scenarios stands in the plan.
pub fn of(parts: &[Parts], seed: u64) -> Vec<Turn> {
    let mut lot = Lot::new(seed);
    let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, own) in parts.iter().enumerate().filter(|(_, own)| own.all() > 1) {
        places.entry(own.place).or_default().push(at);
    }
    let mut turns = Vec::new();
    for (at, own) in parts.iter().enumerate() {
        if own.all() <= 1 {
            turns.push((at, None, None));
        } else if let Some(here) = places.remove(&own.place) {
            for n in 0..here.iter().map(|at| parts[*at].all()).max().unwrap_or(1) {
                let mut round: Vec<usize> = here.iter().copied().filter(|at| parts[*at].all() > n).collect();
                lot.shuffle(&mut round);
                turns.extend(round.into_iter().map(|at| parts[at].turn(at, n)));
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

    fn runs(repeats: &[u32], seed: u64) -> Vec<(usize, Option<(u32, u32)>)> {
        let parts: Vec<Parts> =
            repeats.iter().map(|repeats| Parts { repeats: *repeats, slices: 1, place: 0 }).collect();
        of(&parts, seed).into_iter().map(|(at, run, _)| (at, run)).collect()
    }

    #[test]
    fn slices_of_a_run_come_before_those_of_the_next_one_and_every_round_has_one_of_each() {
        let parts = [Parts { repeats: 2, slices: 3, place: 0 }, Parts { repeats: 1, slices: 6, place: 0 }];
        let turns = of(&parts, 3);
        let own =
            |which: usize| turns.iter().filter(move |turn| turn.0 == which).map(|turn| (turn.1, turn.2));
        let wanted =
            [1, 2].into_iter().flat_map(|run| (1..=3).map(move |slice| (Some((run, 2)), Some((slice, 3)))));
        assert!(own(0).eq(wanted));
        assert!(own(1).eq((1..=6).map(|slice| (None, Some((slice, 6))))));
        assert!(turns.chunks(2).all(|round| round[0].0 != round[1].0), "{turns:?}");
    }

    #[test]
    fn each_place_has_its_own_rounds_one_after_the_other() {
        let part = |slices, place| Parts { repeats: 1, slices, place };
        let turns = of(&[part(4, 0), part(1, 0), part(4, 2), part(4, 0), part(4, 2)], 9);
        let places: Vec<usize> = turns.iter().map(|turn| turn.0).collect();
        assert_eq!(places.len(), 17);
        assert!(places[..8].chunks(2).all(|round| round.contains(&0) && round.contains(&3)), "{places:?}");
        assert_eq!(places[8], 1, "measured at one go");
        assert!(places[9..].chunks(2).all(|round| round.contains(&2) && round.contains(&4)), "{places:?}");
    }

    #[test]
    fn nothing_is_drawn_where_nothing_is_repeated() {
        assert_eq!(runs(&[1, 1, 1], 7), [(0, None), (1, None), (2, None)]);
    }

    #[test]
    fn each_round_has_every_repeated_scenario_once_in_a_new_order() {
        let turns = runs(&[1, 8, 8, 1, 8], 7);
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
        assert_eq!(turns, runs(&[1, 8, 8, 1, 8], 7), "the seed decides");
        assert_ne!(turns, runs(&[1, 8, 8, 1, 8], 8));
    }

    #[test]
    fn every_order_of_a_round_is_as_likely_as_another() {
        let mut seen = BTreeMap::new();
        for seed in 0..6_000 {
            let order: Vec<usize> = runs(&[2, 2, 2], seed)[..3].iter().map(|turn| turn.0).collect();
            *seen.entry(order).or_insert(0) += 1;
        }
        // 1000 each; four standard deviations are 115.
        assert!(seen.len() == 6 && seen.values().all(|n| (885..1115).contains(n)), "{seen:?}");
    }
}
