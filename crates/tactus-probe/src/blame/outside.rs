//! The time during which the thread of a virtual CPU had its CPU and was out of its guest. KVM and the program that
//! runs the machine work then. A guest that halts sleeps and has no CPU meanwhile; that time does not count.

use tactus_model::trace::EventKind;

use super::record::Record;

/// The longest time outside of those that ended with an entry into the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Out {
    /// When it entered, CLOCK_MONOTONIC in ns.
    pub until: u64,
    /// How long it had its CPU before that, in ns.
    pub ns: u64,
}

/// A thread, and its state.
#[derive(Clone, Debug)]
pub struct Outside {
    thread: u64,
    /// Since when it is outside, and how long it had no CPU since.
    left: Option<(u64, u64)>,
    /// Since when it has no CPU.
    off: Option<u64>,
    /// When others last left the CPU: the last of them to the thread.
    came: u64,
}

impl Outside {
    /// Nothing is known of it yet.
    pub const fn new(thread: u64) -> Self {
        Self { thread, left: None, off: None, came: 0 }
    }

    /// Takes in the next records of its CPU. `whole`: none is missing before them.
    pub fn take(&mut self, records: &[Record], whole: bool) -> Option<Out> {
        if !whole {
            *self = Self::new(self.thread);
        }
        let mut longest: Option<Out> = None;
        for record in records {
            let (kind, own) = (record.kind(), record.thread() == self.thread);
            match kind {
                Some(EventKind::GuestLeft) if own => (self.left, self.off) = (Some((record.at, 0)), None),
                Some(EventKind::GuestEntered) if own => {
                    self.comes();
                    let Some((left, off)) = self.left.take() else { continue };
                    let ns = record.at.saturating_sub(left).saturating_sub(off);
                    if longest.is_none_or(|longest| ns > longest.ns) {
                        longest = Some(Out { until: record.at, ns });
                    }
                }
                Some(kind) if kind.is_switch() && own => {
                    self.comes();
                    self.off = Some(record.at);
                }
                Some(kind) if kind.is_switch() => self.came = record.at,
                _ => {}
            }
        }
        longest
    }

    /// It has the CPU again, since another thread last left it.
    fn comes(&mut self) {
        if let (Some(off), Some((_, all))) = (self.off.take(), &mut self.left) {
            *all += self.came.saturating_sub(off);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EventKind::{GuestEntered, GuestLeft, Preempted, Sleeps, SoftBegins};
    use super::*;

    fn records(all: &[(u64, EventKind, u64)]) -> Vec<Record> {
        all.iter().map(|(at, kind, number)| Record::new(*at, *kind, *number, [0; 2])).collect()
    }

    fn longest(all: &[(u64, EventKind, u64)]) -> Option<Out> {
        Outside::new(7).take(&records(all), true)
    }

    #[test]
    fn the_time_from_an_exit_to_the_next_entry_is_outside() {
        let all = [
            (100, GuestLeft, 7),
            (130, GuestEntered, 7),
            (200, GuestLeft, 7),
            (210, SoftBegins, 3),
            (900, GuestEntered, 7),
            (950, GuestLeft, 7),
            (960, GuestEntered, 7),
        ];
        assert_eq!(longest(&all), Some(Out { until: 900, ns: 700 }));
        assert_eq!(Outside::new(8).take(&records(&all), true), None, "another one's");
    }

    #[test]
    fn who_halts_or_is_preempted_outside_has_no_cpu_meanwhile() {
        // It halts at 120; the CPU idles until 800 and goes to it.
        let halts = [(100, GuestLeft, 7), (120, Sleeps, 7), (800, Preempted, 0), (850, GuestEntered, 7)];
        assert_eq!(longest(&halts), Some(Out { until: 850, ns: 70 }));
        // Twice: 8 has the CPU from 120 to 300, 9 from 400 to 500.
        let kept = [
            (100, GuestLeft, 7),
            (120, Preempted, 7),
            (300, Preempted, 8),
            (400, Preempted, 7),
            (450, Preempted, 8),
            (500, Preempted, 9),
            (600, GuestEntered, 7),
        ];
        assert_eq!(longest(&kept), Some(Out { until: 600, ns: 500 - 280 }));
    }

    #[test]
    fn what_began_in_one_look_is_known_in_the_next_and_nothing_of_what_was_written_over() {
        let mut own = Outside::new(7);
        assert_eq!(own.take(&records(&[(100, GuestLeft, 7)]), true), None);
        let entered = records(&[(400, GuestEntered, 7)]);
        assert_eq!(own.clone().take(&entered, false), None);
        assert_eq!(own.take(&entered, true), Some(Out { until: 400, ns: 300 }));
        assert_eq!(own.take(&entered, true), None, "an entry without an exit: some kernels tell of no exit");
    }

    #[test]
    fn nonsense_is_no_panic() {
        let _ = longest(&[
            (u64::MAX, GuestLeft, 7),
            (0, GuestEntered, 7),
            (5, Preempted, 7),
            (1, GuestEntered, 7),
        ]);
    }
}
