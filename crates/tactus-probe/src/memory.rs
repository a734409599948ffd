//! The memory of a session while it measures: locked, without huge pages, and large enough that between two ticks
//! nothing is mapped or unmapped beside the measuring threads. These changes hold only for the measurement, and not for
//! programs that the session starts.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};
use tactus_model::message::Note;

use crate::sys::heap::HEAP;

/// Memory that is free when a measurement begins, in bytes: a tick of the fullest histogram, three times over
/// (counts, their list, their text).
const RESERVE: usize = 4 << 20;
/// The same for each series: its messages that wait for a narrow channel.
const RESERVE_OF_SERIES: usize = 32 << 10;
/// The word that tells a process which is started meanwhile to allow itself huge pages again.
pub const ALLOW: &str = "thp";

/// Whether this process has disabled huge pages for itself, which its children inherit.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// All memory is locked and without huge pages until this is dropped.
pub struct Memory {
    /// The heap's size when the measurement began.
    taken: u64,
}

impl Memory {
    /// Locks the present memory and, if allowed, future memory.
    pub fn lock(notes: &mut Vec<Note>) -> Self {
        // The kernel's own page moving would show as faults of the measuring threads.
        if !transparent_huge_pages_are_disabled().unwrap_or(true)
            && disable_transparent_huge_pages(true).is_ok()
        {
            FORBIDDEN.store(true, Ordering::Relaxed);
            notes.push(Note::side_effect(
                "the probe's process has no transparent huge pages while it measures; loads and other \
                 processes keep theirs",
            ));
        }
        let limited = rustix::process::getrlimit(rustix::process::Resource::Memlock).current.is_some();
        // Under a limit, memory that is allocated later must not fail for being locked.
        let both = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE;
        let flags = if limited && !may_lock() { MlockAllFlags::CURRENT } else { both };
        if let Err(error) = mlockall(flags) {
            notes.push(Note::obstacle(
                format!("memory could not be locked (mlockall: {error}): page faults may be measured"),
                "run as root or with CAP_IPC_LOCK (containers: --cap-add=IPC_LOCK), or raise the memlock limit",
            ));
        }
        Self { taken: HEAP.taken() }
    }

    /// Reserves enough memory for the ticks of this many series. After this, no allocation lasts.
    pub fn reserve(&mut self, series: usize) {
        // The heap keeps freed memory.
        drop(std::hint::black_box(vec![1u8; RESERVE + series * RESERVE_OF_SERIES]));
        self.taken = HEAP.taken();
    }

    /// The note for the report if that was not enough.
    pub fn grown(&self) -> Option<Note> {
        let more = HEAP.taken() - self.taken;
        (more > 0).then(|| {
            Note::info(format!(
                "the probe had to allocate {} KiB more memory while it measured; it freed none, so that no \
                 CPU was interrupted for it",
                more / 1024
            ))
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = munlockall();
        if FORBIDDEN.swap(false, Ordering::Relaxed) {
            let _ = disable_transparent_huge_pages(false);
        }
    }
}

/// Whether a child must enable huge pages again: they are off for the measurement alone. If they were already disabled
/// before, they stay so.
pub fn are_huge_pages_forbidden() -> bool {
    FORBIDDEN.load(Ordering::Relaxed)
}

/// Enables huge pages again, in a child started meanwhile.
pub fn allow_huge_pages() {
    let _ = disable_transparent_huge_pages(false);
}

/// Whether CAP_IPC_LOCK is effective.
fn may_lock() -> bool {
    const CAP_IPC_LOCK: u64 = 14;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let caps = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or("0");
    u64::from_str_radix(caps.trim(), 16).is_ok_and(|caps| caps >> CAP_IPC_LOCK & 1 == 1)
}
