//! Blocks that are due and do not come. The trial saw every program run; a kernel that hands on no sample while a CPU
//! idles may begin with that later. Such a CPU is kept from idling from then on.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tactus_model::CpuSet;

use super::awake::Awake;
use super::record::Record;
use crate::sys;

/// How many blocks must have been due before one can say that they do not come.
const LEAST_DUE: u64 = 2;

/// A thread that looks, block by block, until it is told to end.
pub struct Lookout {
    over: Sender<()>,
    thread: JoinHandle<CpuSet>,
}

impl Lookout {
    /// Starts it beside blocks that are due every `every` ns and take `length` ns.
    ///
    /// # Errors
    /// When the system refuses the thread.
    pub fn start(records: Vec<(u32, Record)>, every: u64, length: u64) -> io::Result<Self> {
        let (over, is_over) = channel();
        let look = move || look(records, every, length, &is_over);
        let thread = std::thread::Builder::new().name("lookout".into()).spawn(look)?;
        Ok(Self { over, thread })
    }

    /// Ends it. Returns the CPUs that it had to keep from idling.
    pub fn end(self) -> CpuSet {
        drop(self.over);
        self.thread.join().unwrap_or_default()
    }
}

fn look(mut left: Vec<(u32, Record)>, every: u64, length: u64, over: &Receiver<()>) -> CpuSet {
    let (mut awake, mut kept) = (Vec::new(), CpuSet::default());
    let began = sys::now();
    while !left.is_empty() && over.recv_timeout(Duration::from_nanos(every)) == Err(RecvTimeoutError::Timeout)
    {
        let due = sys::now().saturating_sub(began).saturating_sub(length) / every;
        left.retain(|(cpu, record)| {
            if !lost(record.count(), due) {
                return true;
            }
            // Where it is refused, the count of the blocks says what was not made.
            if let Ok(thread) = Awake::start(*cpu) {
                awake.push(thread);
                kept.insert(*cpu);
            }
            false
        });
    }
    // Those that keep awake do so until the end.
    let _ = over.recv();
    kept
}

/// Whether so many blocks are those of a CPU to which samples are lost: fewer than half of those due. Others may keep
/// the CPU from taking some.
const fn lost(times: u64, due: u64) -> bool {
    due >= LEAST_DUE && times < due / 2
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::awake::tests::thread;
    use super::super::record::{COUNT, WORDS};
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_block_that_is_late_is_not_lost_and_half_of_them_may_be() {
        assert!(!lost(0, 0) && !lost(0, 1), "none was due long enough");
        assert!(lost(0, 2) && lost(4, 10));
        assert!(!lost(1, 2) && !lost(5, 10));
    }

    #[test]
    fn a_cpu_whose_blocks_stop_is_kept_from_idling_and_one_whose_blocks_come_is_not() {
        let cpus = sys::affinity().unwrap();
        let cpu = cpus.first().unwrap();
        let record = |times: u64| {
            let words: &'static [AtomicU64] =
                (0..WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
            words[COUNT].store(times, Ordering::Relaxed);
            Record::new(words)
        };
        let name = format!("awake-{cpu}");
        let lookout = Lookout::start(vec![(cpu, record(0))], 5 * MS, MS).unwrap();
        assert!((0..5_000).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            thread(&name).is_some()
        }));
        assert_eq!(lookout.end(), CpuSet::one(cpu));

        let lookout = Lookout::start(vec![(cpu, record(u64::MAX))], 5 * MS, MS).unwrap();
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(lookout.end(), CpuSet::default());
    }
}
