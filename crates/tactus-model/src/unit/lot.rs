//! The times of a disturbance: once in every period of the clock, in a randomly chosen one of the period's equal parts.
//!
//! This makes "is it seen when it is made?" an experiment. If no disturbance reaches an environment, the measured
//! values there do not depend on the chosen part, and each part was equally likely. No assumption about the noise is
//! needed (R. A. Fisher, "The Design of Experiments", 1935, chapter II).

use super::random::SplitMix64;

/// Parts of the period of a fault.
pub const PARTS: u64 = 10;
/// A load is on for one second of every two, in ns.
pub const LOAD_ON_NS: u64 = 1_000_000_000;
/// The shortest window of time whose maximum is reported, in ns. A fault more frequent than every ten windows has none.
pub const SHORTEST_WINDOW_NS: u64 = 20_000_000;
/// Limit of the moments, and of the seconds of windows, that are kept of a row: two hours of one a second. An effect in
/// at most one of two thousand injections is not seen with more of them in any practical time.
pub const MOST_MOMENTS: usize = 7200;

/// The draws: the seed determines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lots {
    /// The period, in ns. Periods begin at its multiples on the clock of the drawing process.
    pub every_ns: u64,
    /// A part of the period, in ns.
    pub part_ns: u64,
    /// How many of its parts, from the first one on, are drawn from.
    pub places: u64,
    /// The seed of the draws.
    pub seed: u64,
}

impl Lots {
    /// For a fault of this length: it ends before its period does.
    #[must_use]
    pub fn of_fault(length_ns: u64, every_ns: u64, seed: u64) -> Self {
        let part_ns = (every_ns / PARTS).max(1);
        let places = (PARTS + 1).saturating_sub(length_ns.div_ceil(part_ns).max(1)).max(1);
        Self { every_ns: every_ns.max(1), part_ns, places, seed }
    }

    /// For a load: which second of every two it is on in.
    #[must_use]
    pub const fn of_load(seed: u64) -> Self {
        Self { every_ns: 2 * LOAD_ON_NS, part_ns: LOAD_ON_NS, places: 2, seed }
    }

    /// In which part of a period it is made.
    #[must_use]
    pub const fn place(&self, period: u64) -> u64 {
        SplitMix64::at(self.seed, period) % self.places
    }

    /// When it is made in a period, on the clock, in ns.
    #[must_use]
    pub const fn due(&self, period: u64) -> u64 {
        self.begin(period, self.place(period))
    }

    /// When it would be made in a period, had this part been drawn.
    #[must_use]
    pub const fn begin(&self, period: u64, place: u64) -> u64 {
        // A little into the part: a wake-up that comes late belongs to it all the same.
        let into = period.saturating_mul(self.every_ns).saturating_add(place * self.part_ns);
        into.saturating_add(self.part_ns / 20)
    }

    /// The first moment not before `now`.
    #[must_use]
    pub const fn next(&self, now: u64) -> u64 {
        let period = now / self.every_ns;
        let due = self.due(period);
        if due >= now { due } else { self.due(period + 1) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_part_is_drawn_as_often_as_any_other() {
        for (length, places) in [(4_000_000, 10), (100_000_000, 10), (100_000_001, 9), (400_000_000, 7)] {
            let lots = Lots::of_fault(length, 1_000_000_000, 7);
            assert_eq!(lots.places, places, "{length}");
            let mut drawn = vec![0_u64; usize::try_from(places).unwrap()];
            let most = 10_000 * places;
            (0..most).for_each(|period| drawn[usize::try_from(lots.place(period)).unwrap()] += 1);
            // Five standard deviations of a binomial distribution are 500 or less.
            assert!(drawn.iter().all(|count| count.abs_diff(10_000) < 500), "{drawn:?}");
        }
        let load = Lots::of_load(3);
        assert!((0..1000).any(|period| load.place(period) == 1) && load.places == 2);
    }

    proptest! {
        #[test]
        fn a_fault_lies_in_its_own_period_and_the_next_moment_is_never_behind(
            length in 1_000..900_000_000_u64, every in 1_000_000_000..5_000_000_000_u64, seed: u64, now in 0..u64::MAX / 4,
        ) {
            let lots = Lots::of_fault(length, every, seed);
            let due = lots.next(now);
            prop_assert!(due >= now && due - now < 2 * every);
            let period = due / every;
            prop_assert_eq!(lots.due(period), due);
            prop_assert!(due + length <= (period + 1) * every + lots.part_ns / 20 + lots.part_ns);
        }
    }
}
