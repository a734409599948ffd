//! Detects disturbances that the CPU time of a batch does not show: time stolen by a hypervisor, a move to another CPU,
//! or a changed clock rate of the processor.

use std::hint::black_box;

use tactus_measure::stat::Stat;
use tactus_model::message::Note;

use crate::sys;

/// Time between two checks, in ns: the kernel counts stolen time in hundredths of a second, and reading it takes longer
/// than a batch on a system with many CPUs.
const EVERY_NS: u64 = 20_000_000;
/// The clock may differ by one part in this many: beside other work, single readings were a thirtieth too low.
const CHANGED: u64 = 20;
/// Additions that tell the clock: some microseconds.
const ADDITIONS: u64 = 16_384;
/// How often they are done: a disturbance makes one of them longer, never shorter.
const TRIES: u32 = 5;

/// The state of a CPU at the last check.
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

    /// Checks, if it is time to, whether the batches since the last check were disturbed. `None`: unknown yet.
    pub fn look(&mut self, now: u64) -> Option<bool> {
        if now < self.looked + EVERY_NS {
            return None;
        }
        self.looked = now;
        Some(self.differs(Stat::now().stolen(self.cpu), cycles_per_us()))
    }

    /// Whether something was stolen since the readings before these, or the clock is another.
    fn differs(&mut self, stolen: Option<u64>, clock: u64) -> bool {
        let more = stolen.zip(self.stolen).is_some_and(|(stolen, before)| stolen > before);
        self.stolen = stolen;
        self.clock.has_changed(clock) || more
    }

    /// Whether this process is on its CPU.
    pub fn is_there(&self) -> bool {
        usize::try_from(self.cpu).is_ok_and(|cpu| cpu == rustix::thread::sched_getcpu())
    }

    /// A note on its clock, if that changed.
    pub fn note(&self) -> Option<Note> {
        self.clock.note()
    }
}

/// A processor's clock in MHz, as a chain of additions tells it wherever they are executed: a guest has no cpufreq. Where the
/// processor is emulated it is the pace of the emulator, and no MHz.
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
        let Self { least, most, .. } = self;
        let times = match self.changes {
            0 => return None,
            1 => "once".to_owned(),
            changes => format!("{changes} times"),
        };
        Some(Note::obstacle(
            format!(
                "the processor's speed changed {times} during the measurement, between {least} and {most} \
                 additions in a microsecond: repeats around a change are left out"
            ),
            "if that is this machine's clock, fix it (governor `performance`, no turbo); an emulated \
             processor has its emulator's speed",
        ))
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

    fn watch(stolen: Option<u64>) -> Watch {
        Watch { cpu: u32::MAX, looked: 0, stolen, clock: Clock::of(3_000) }
    }

    #[test]
    fn it_looks_once_in_a_while_and_a_cpu_that_the_kernel_does_not_know_is_never_stolen() {
        let mut watch = Watch::new(u32::MAX, 0);
        // Whatever this machine's is, it is another one.
        watch.clock.now = 0;
        assert_eq!(watch.look(EVERY_NS - 1), None);
        assert_eq!(watch.look(EVERY_NS), Some(true));
        assert_eq!(watch.look(2 * EVERY_NS - 1), None);
        assert_eq!(watch.stolen, None);
        assert!(!watch.differs(None, watch.clock.now), "a steady clock, and nothing that could be stolen");
        assert!(!watch.is_there());
    }

    #[test]
    fn what_was_stolen_since_the_last_look_is_seen_once() {
        let mut watch = watch(Some(5));
        // A counter that goes back has stolen nothing, and one that there was not says nothing yet.
        let read = [(Some(5), false), (Some(7), true), (Some(7), false), (Some(3), false), (Some(4), true)];
        for (stolen, seen) in read.into_iter().chain([(None, false), (Some(9), false), (Some(10), true)]) {
            assert_eq!(watch.differs(stolen, 3_000), seen, "{stolen:?}");
        }
    }

    #[test]
    fn either_of_the_two_is_a_disturbance_and_without_both_there_is_none() {
        assert!(!watch(Some(5)).differs(Some(5), 3_000));
        assert!(watch(Some(5)).differs(Some(6), 3_000));
        assert!(watch(Some(5)).differs(Some(5), 2_000));
        let mut both = watch(Some(5));
        assert!(both.differs(Some(6), 2_000) && !both.differs(Some(6), 2_000), "each is seen once");
    }

    #[test]
    fn a_changing_clock_is_seen_at_once_or_gradually_and_the_error_of_a_reading_is_ignored() {
        // As they were read on a machine with a load of 5, and then as a governor goes down and up again.
        let read = [3238, 3238, 3120, 3225, 3238, 2400, 2410, 2395, 2700, 2800, 3000, 3238];
        let mut clock = Clock::of(3238);
        let changed: Vec<u64> = read.into_iter().filter(|mhz| clock.has_changed(*mhz)).collect();
        assert_eq!(changed, [2400, 2700, 3000, 3238]);
        let note = clock.note().unwrap();
        assert!(
            note.text.contains("changed 4 times") && note.text.contains("between 2400 and 3238 additions"),
            "{note:?}"
        );
        let mut creeping = Clock::of(2000);
        assert_eq!((1990..2200).filter(|mhz| creeping.has_changed(*mhz)).collect::<Vec<_>>(), [2101]);
        assert!(creeping.note().unwrap().text.contains("changed once "));
        assert!(Clock::of(0).note().is_none());
    }
}
