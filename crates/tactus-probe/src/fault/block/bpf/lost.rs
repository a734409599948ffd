//! Blocks that are due and do not come. The trial saw every program run; a kernel that hands on no sample while a CPU
//! idles may begin with that later. Such a CPU is kept from idling from then on.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use tactus_measure::channel::{self, Received, Receiver, Sender};
use tactus_model::CpuSet;

use super::awake::Awake;
use super::record::Record;
use crate::sys;

/// How many of [`OF`] that were due may be missing: one whose CPU was held up comes late or is left out.
const MISSING: u64 = 1;
/// How many are looked at together.
const OF: u64 = 8;

/// A thread that checks the blocks, one by one, until it is told to end.
pub struct Lookout {
    over: Sender<()>,
    thread: JoinHandle<CpuSet>,
}

impl Lookout {
    /// Starts it for blocks that are due every `every` ns and are over `late` ns later.
    ///
    /// # Errors
    /// When the system refuses the thread.
    pub fn start(records: Vec<(u32, Record)>, every: u64, late: u64) -> io::Result<Self> {
        let (over, is_over) = channel::channel();
        let look = move || look(records, every, late, &is_over);
        let thread = std::thread::Builder::new().name("lookout".into()).spawn(look)?;
        Ok(Self { over, thread })
    }

    /// Ends it. Returns the CPUs that it had to keep from idling.
    pub fn end(self) -> CpuSet {
        drop(self.over);
        self.thread.join().unwrap_or_default()
    }
}

fn look(records: Vec<(u32, Record)>, every: u64, late: u64, over: &Receiver<()>) -> CpuSet {
    let (mut awake, mut kept) = (Vec::new(), CpuSet::default());
    let began = sys::now();
    let mut left: Vec<_> = records.into_iter().map(|(cpu, record)| (cpu, record, Since::default())).collect();
    while !left.is_empty() && over.receive_within(Duration::from_nanos(every)) == Received::Nothing {
        let due = sys::now().saturating_sub(began).saturating_sub(late) / every;
        left.retain_mut(|(cpu, record, since)| {
            if !since.are_missing(record.count(), due) {
                return true;
            }
            // If this fails, the count of the blocks shows the missing ones.
            if let Ok(thread) = Awake::start(*cpu) {
                awake.push(thread);
                kept.insert(*cpu);
            }
            false
        });
    }
    // The threads that keep CPUs awake do so until the end.
    let _ = over.receive();
    kept
}

/// The numbers of blocks that had come and that were due when the current group of blocks began.
#[derive(Clone, Copy, Default)]
struct Since {
    times: u64,
    due: u64,
}

impl Since {
    /// Whether too many blocks are missing, given the numbers that have come and that are due.
    const fn are_missing(&mut self, times: u64, due: u64) -> bool {
        let missing = (due - self.due).saturating_sub(times.saturating_sub(self.times));
        if due - self.due >= OF {
            *self = Self { times, due };
        }
        missing > MISSING
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::awake::tests::thread;
    use super::super::record::{COUNT, WORDS};
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn one_block_that_is_missing_now_and_then_is_not_lost_and_two_at_a_time_are() {
        let mut since = Since::default();
        assert!(!since.are_missing(0, 0) && !since.are_missing(0, 1) && !since.are_missing(1, 2));
        assert!(since.are_missing(1, 3), "two of three");
        let mut now_and_then = Since::default();
        for round in 0..10 {
            for due in 0..=OF {
                let times = round * (OF - 1) + due.min(OF - 1);
                assert!(!now_and_then.are_missing(times, round * OF + due), "one of eight");
            }
        }
        let mut good_for_long = Since::default();
        for due in 0..1_000 {
            assert!(!good_for_long.are_missing(due, due));
        }
        assert!(good_for_long.are_missing(999, 1_001));
    }

    #[test]
    fn a_cpu_whose_blocks_stop_is_kept_from_idling_and_one_whose_blocks_come_is_not() {
        let cpus = sys::affinity().unwrap();
        let cpu = cpus.first().unwrap();
        let name = format!("awake-{cpu}");
        let words: &'static [AtomicU64] = (0..WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();

        let lookout = Lookout::start(vec![(cpu, Record::new(words))], 5 * MS, MS).unwrap();
        for _ in 0..60 {
            words[COUNT].fetch_add(1_000, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(lookout.end(), CpuSet::default());

        let lookout = Lookout::start(vec![(cpu, Record::new(words))], 5 * MS, MS).unwrap();
        words[COUNT].store(0, Ordering::Relaxed);
        assert!((0..5_000).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            thread(&name).is_some()
        }));
        assert_eq!(lookout.end(), CpuSet::one(cpu));
    }
}
