//! Layout of the shared file. `include/tactus.h` contains the same layout, and a test compares the two;
//! docs/design/application.md gives the reasons.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The first eight bytes of a file.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"tactus\x1a\n");
/// The version of the layout.
pub const VERSION: u32 = 1;
/// Where the ring begins, in bytes.
pub const RING_OFFSET: usize = 4096;
/// Records of a ring whose owner says nothing: 16 s at 1 kHz.
pub const CAPACITY: u64 = 1 << 14;
/// The fewest records of a ring.
pub const LEAST_CAPACITY: u64 = 1 << 6;
/// The most.
pub const MOST_CAPACITY: u64 = 1 << 20;
/// The clock of all times: CLOCK_MONOTONIC, in ns.
pub const CLOCK_MONOTONIC: u32 = 1;
/// Bytes of a name.
pub const NAME_BYTES: usize = 32;
/// The owner marks.
pub const OPEN: u32 = 1;
/// The owner has closed: nothing more comes.
pub const CLOSED: u32 = 2;
/// No CPU is known.
pub const NO_CPU: u32 = u32::MAX;

/// The beginning of a file. The fields before `written` never change.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// Bytes of a [`Record`].
    pub record_bytes: u32,
    /// Records of the ring, a power of two.
    pub capacity: u64,
    /// When the owner opened it, by the clock, in ns.
    pub session: u64,
    /// [`CLOCK_MONOTONIC`].
    pub clock: u32,
    /// The owner's process, as it knows itself.
    pub process: u32,
    /// Time between two due times, in ns; 0: not said.
    pub period_ns: u64,
    /// Zero.
    pub reserved: [u64; 2],
    /// Name of the owner, in UTF-8, padded with zeros.
    pub name: [u8; NAME_BYTES],
    /// Zero.
    pub reserved_too: [u64; 4],
    /// Records that are written, ever: the next lies at this number modulo the capacity.
    pub written: AtomicU64,
    /// [`OPEN`] or [`CLOSED`].
    pub state: AtomicU32,
    /// Zero.
    pub reserved_at_last: u32,
}

/// A cycle. All times are CLOCK_MONOTONIC, in ns.
#[derive(Debug)]
#[repr(C)]
pub struct Record {
    /// Its number, from 1; 0 while it is being written.
    pub number: AtomicU64,
    /// When it was due; 0: it has no due time.
    pub due: AtomicU64,
    /// When it began.
    pub start: AtomicU64,
    /// When it ended.
    pub end: AtomicU64,
    /// The CPU on which it ended; [`NO_CPU`]: not known.
    pub cpu: AtomicU32,
    /// Zero.
    pub reserved: AtomicU32,
}
