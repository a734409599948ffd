//! The mapping of the file, and the clock.
#![expect(unsafe_code, reason = "memory that another process reads, which no safe crate offers")]

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::fs::File;
use std::io;

use rustix::mm::{MapFlags, ProtFlags, mlock, mmap, munmap};
use rustix::thread::{ClockId, clock_nanosleep_absolute, sched_getcpu};
use rustix::time::{ClockId as Clock, Timespec, clock_gettime};

use crate::layout::{CLOCK_MONOTONIC, CLOSED, Header, MAGIC, NAME_BYTES, OPEN, RING_OFFSET, Record, VERSION};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// CLOCK_MONOTONIC, in ns.
#[inline]
#[must_use]
pub fn now() -> u64 {
    let time = clock_gettime(Clock::Monotonic);
    time.tv_sec.cast_unsigned() * SECOND + time.tv_nsec.cast_unsigned()
}

/// Sleeps until CLOCK_MONOTONIC says `due`, in ns.
pub fn sleep_until(due: u64) {
    let time = Timespec { tv_sec: (due / SECOND).cast_signed(), tv_nsec: (due % SECOND).cast_signed() };
    while clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
}

/// The file in memory.
#[derive(Debug)]
pub struct Mapping {
    at: *mut c_void,
    bytes: usize,
    mask: u64,
}

// SAFETY: it is memory that is there as long as the value is, and nothing in it belongs to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a file of `bytes`, all zero, and writes its header. All of it is touched, and locked where that is allowed: no
    /// cycle waits for a page.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new(file: &File, capacity: u64, bytes: usize, period_ns: u64) -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping touches no other memory.
        let at = unsafe { mmap(core::ptr::null_mut(), bytes, protection, flags, file, 0)? };
        let mapping = Self { at, bytes, mask: capacity - 1 };
        // SAFETY: the mapping has `bytes` bytes, and no reader knows of it yet.
        unsafe {
            core::ptr::write_bytes(at.cast::<u8>(), 0, bytes);
            let _ = mlock(at, bytes);
        }
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            record_bytes: u32::try_from(size_of::<Record>()).unwrap_or(0),
            capacity,
            session: now(),
            clock: CLOCK_MONOTONIC,
            process: std::process::id(),
            period_ns,
            reserved: [0; 2],
            name: name(),
            reserved_too: [0; 4],
            written: AtomicU64::new(0),
            state: AtomicU32::new(OPEN),
            reserved_at_last: 0,
        };
        // SAFETY: a page is aligned for it and larger than it, and there is no borrow of it yet.
        unsafe { at.cast::<Header>().write(header) };
        Ok(mapping)
    }

    /// Writes a record; `number` are before it.
    #[inline]
    pub fn write(&self, number: u64, due: u64, start: u64, end: u64) {
        #[expect(clippy::cast_possible_truncation, reason = "the mask keeps 20 bits at most")]
        let place = RING_OFFSET + (number & self.mask) as usize * size_of::<Record>();
        // SAFETY: the mask keeps it within the ring, which lies within the mapping, and records are aligned. Others only
        // read, from other processes.
        let record = unsafe { &*self.at.cast::<u8>().add(place).cast::<Record>() };
        record.number.store(0, Ordering::Relaxed);
        // A reader that sees any of the stores below also sees that the record is invalid.
        fence(Ordering::Release);
        record.due.store(due, Ordering::Relaxed);
        record.start.store(start, Ordering::Relaxed);
        record.end.store(end, Ordering::Relaxed);
        record.cpu.store(u32::try_from(sched_getcpu()).unwrap_or(u32::MAX), Ordering::Relaxed);
        record.number.store(number + 1, Ordering::Release);
        self.header().written.store(number + 1, Ordering::Release);
    }

    /// Says that nothing more comes.
    pub fn close(&self) {
        self.header().state.store(CLOSED, Ordering::Release);
    }

    fn header(&self) -> &Header {
        // SAFETY: it was written when the mapping was made, and only its atomic fields change since.
        unsafe { &*self.at.cast::<Header>() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and there is no borrow of it any more.
        let _ = unsafe { munmap(self.at, self.bytes) };
    }
}

/// The name of this program.
fn name() -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    let said = std::env::args_os().next().unwrap_or_default();
    let said = std::path::Path::new(&said).file_name().unwrap_or_default().as_encoded_bytes();
    // The last byte stays zero.
    name.iter_mut().take(NAME_BYTES - 1).zip(said).for_each(|(to, from)| *to = *from);
    name
}
