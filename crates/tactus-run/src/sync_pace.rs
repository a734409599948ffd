//! How often what was recorded is made to last through a power cut. Pure.

/// When a row's log was last brought to the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncPace {
    tick_ns: u64,
    /// Number of the tick that began then, and the time, in ms since the epoch.
    last: (u64, i64),
}

impl SyncPace {
    /// Of ticks of this length.
    pub const fn new(tick_ns: u64) -> Self {
        // Nothing of tick 0 is there before it.
        Self { tick_ns, last: (0, i64::MIN) }
    }

    /// Whether to write to disk now that a series has reported its n-th tick. It is due once for all series of a
    /// tick, when the next one begins, so that a power cut loses one tick. Ticks that come early wait for each other.
    pub fn is_due(&mut self, n: u64, at_ms: i64) -> bool {
        let half = i64::try_from(self.tick_ns / 2_000_000).unwrap_or(i64::MAX);
        let due = self.last.0 != n && at_ms.saturating_sub(self.last.1) >= half;
        if due {
            self.last = (n, at_ms);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_kept_when_the_next_one_begins_and_a_flood_of_them_no_more_often() {
        let mut pace = SyncPace::new(1_000_000_000);
        let mut due = 0;
        // Ten seconds of eight series that come late by up to 300 ms.
        for n in 0..10u64 {
            for series in 0..8 {
                let late = i64::try_from(n * 37 % 4 * 100 + series).unwrap();
                due += u32::from(pace.is_due(n, i64::try_from(n).unwrap() * 1_000 + late));
            }
        }
        assert_eq!(due, 9, "all but the first");
        let flood = (10..100_000).filter(|n| pace.is_due(*n, 20_000 + i64::try_from(n / 100).unwrap()));
        assert_eq!(flood.count(), 2, "a second of them");
    }
}
