//! Whether something came between that the CPU time of a batch does not show: a hypervisor that kept the CPU from this
//! system, a move to another CPU, or another clock of the processor.

use std::hint::black_box;

use tactus_measure::stat::Stat;
use tactus_model::message::Note;

use crate::sys;

/// How often it is looked, in ns: the kernel counts what was stolen in hundredths of a second, and reading that takes
/// longer than a batch where there are many CPUs.
const EVERY_NS: u64 = 20_000_000;
/// A part of the clock by which it may differ: beside other work single readings were a thirtieth too low.
const CHANGED: u64 = 20;
/// Additions that tell the clock: some microseconds.
const ADDITIONS: u64 = 16_384;
/// How often they are done: what comes in between makes one of them longer, and none shorter.
const TRIES: u32 = 5;

/// What is known of a CPU.
pub struct Watch {
    cpu: u32,
    looked: u64,
    stolen: Option<u64>,
    clock: Clock,
}

impl Watch {
    pub fn new(cpu: u32, now: u64) -> Self {
        let clock = Clock::of(cycles_per_us());
        Self { cpu, looked: now, stolen: Stat::now().stolen(cpu), clock }
    }

    /// Looks, if it is time to: whether what was measured since the last look was disturbed. None: it is not known yet.
    pub fn look(&mut self, now: u64) -> Option<bool> {
        if now < self.looked + EVERY_NS {
            return None;
        }
        let stolen = Stat::now().stolen(self.cpu);
        let more = stolen.zip(self.stolen).map_or(0, |(stolen, before)| stolen.saturating_sub(before));
        (self.looked, self.stolen) = (now, stolen);
        Some(self.clock.has_changed(cycles_per_us()) || more > 0)
    }

    /// Whether this process is on its CPU.
    pub fn is_there(&self) -> bool {
        usize::try_from(self.cpu).is_ok_and(|cpu| cpu == rustix::thread::sched_getcpu())
    }

    /// What its clock did, if anything.
    pub fn note(&self) -> Option<Note> {
        self.clock.note()
    }
}

/// A processor's clock in MHz, as a chain of additions tells it wherever they are executed: a guest has no cpufreq.
struct Clock {
    now: u64,
    least: u64,
    most: u64,
    changes: u64,
}

impl Clock {
    const fn of(now: u64) -> Self {
        Self { now, least: now, most: now, changes: 0 }
    }

    /// Whether it is another one than it was, little by little or at once.
    fn has_changed(&mut self, now: u64) -> bool {
        let changed = now.abs_diff(self.now) > self.now / CHANGED;
        if changed {
            self.now = now;
            self.changes += 1;
            (self.least, self.most) = (self.least.min(now), self.most.max(now));
        }
        changed
    }

    fn note(&self) -> Option<Note> {
        let Self { least, most, changes, .. } = self;
        (*changes > 0).then(|| {
            Note::obstacle(
                format!(
                    "the processor's clock changed {changes} times while it was measured, between {least} and {most} MHz: \
                     repeats around a change are left out"
                ),
                "hold the frequency (governor `performance`, no turbo), where it is this machine's to hold",
            )
        })
    }
}

/// Cycles in a thousand ns, at the moment: MHz.
pub fn cycles_per_us() -> u64 {
    let mut least = u64::MAX;
    for _ in 0..TRIES {
        let begin = sys::now();
        black_box(sys::additions(ADDITIONS));
        least = least.min(sys::now() - begin);
    }
    ADDITIONS * 1_000 / least.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_once_in_a_while_and_a_cpu_that_the_kernel_does_not_know_is_never_stolen() {
        let mut watch = Watch::new(u32::MAX, 0);
        // Whatever this machine's does.
        watch.clock.now = 0;
        assert_eq!(watch.look(EVERY_NS - 1), None);
        assert!(watch.look(EVERY_NS).is_some());
        assert_eq!(watch.look(EVERY_NS), None);
        assert_eq!(watch.stolen, None);
        assert!(!watch.is_there());
    }

    #[test]
    fn what_was_stolen_since_the_last_look_is_seen_once() {
        let steady = || Clock::of(cycles_per_us());
        let mut watch = Watch { cpu: 0, looked: 0, stolen: Some(0), clock: steady() };
        let stolen = Stat::now().stolen(0).is_some_and(|stolen| stolen > 0);
        let mut look = |now, before: Option<u64>| {
            watch.stolen = before.or(watch.stolen);
            let changes = watch.clock.changes;
            watch.look(now).map(|disturbed| disturbed && watch.clock.changes == changes)
        };
        assert_eq!(look(EVERY_NS, None), Some(stolen));
        assert_eq!(
            look(2 * EVERY_NS, Some(u64::MAX)),
            Some(false),
            "a counter that goes back has stolen nothing"
        );
    }

    #[test]
    fn a_clock_that_changes_is_seen_at_once_or_little_by_little_and_what_a_reading_misses_is_none() {
        // As they were read on a machine with a load of 5, and then as a governor goes down and up again.
        let read = [3238, 3238, 3120, 3225, 3238, 2400, 2410, 2395, 2700, 2800, 3000, 3238];
        let mut clock = Clock::of(3238);
        let changed: Vec<u64> = read.into_iter().filter(|mhz| clock.has_changed(*mhz)).collect();
        assert_eq!(changed, [2400, 2700, 3000, 3238]);
        let note = clock.note().unwrap();
        assert!(
            note.text.contains("changed 4 times") && note.text.contains("between 2400 and 3238 MHz"),
            "{note:?}"
        );
        let mut creeping = Clock::of(2000);
        assert_eq!((1990..2200).filter(|mhz| creeping.has_changed(*mhz)).collect::<Vec<_>>(), [2101]);
        assert!(Clock::of(0).note().is_none());
    }
}
