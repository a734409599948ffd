//! Loads that run for one second of every two: the second is chosen at random and reported.

use tactus_model::lot::Lots;

/// When the loads of a job are let run.
#[derive(Clone, Debug)]
pub struct Toggle {
    lots: Lots,
    on: bool,
    next: u64,
    /// When they were let run, CLOCK_MONOTONIC in ns: one entry for each second, even if two seconds follow each other.
    at: Vec<u64>,
}

impl Toggle {
    /// Off until the first whole pair of seconds begins.
    pub const fn new(seed: u64, now: u64) -> Self {
        let lots = Lots::of_load(seed);
        Self { lots, on: false, next: (now / lots.every_ns + 1) * lots.every_ns, at: Vec::new() }
    }

    /// When something is to be done next, CLOCK_MONOTONIC in ns.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Whether they are let run now.
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Switches to the next second, once [`Toggle::next`] has come.
    pub fn turn(&mut self, now: u64) {
        let Lots { every_ns, part_ns, .. } = self.lots;
        let period = now / every_ns;
        self.on = (now % every_ns) / part_ns == self.lots.place(period);
        self.next = (now / part_ns + 1) * part_ns;
        if self.on {
            self.at.push(now);
        }
    }

    /// When they were let run.
    pub fn into_times(self) -> Vec<u64> {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_on_for_one_second_of_every_two_and_the_lot_decides_which() {
        const S: u64 = 1_000_000_000;
        let mut toggle = Toggle::new(5, 7 * S + 3);
        assert_eq!((toggle.next(), toggle.is_on()), (8 * S, false));
        let mut on = Vec::new();
        while toggle.next() < 208 * S {
            toggle.turn(toggle.next() + 40);
            on.push(toggle.is_on());
        }
        assert!(on.chunks_exact(2).all(|pair| pair[0] != pair[1]));
        let first = on.chunks_exact(2).filter(|pair| pair[0]).count();
        assert!((25..75).contains(&first), "{first} of 100");
        assert_eq!(toggle.into_times().len(), 100);
    }
}
