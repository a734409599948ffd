//! The header of a shared file, which another program wrote. Pure.

use std::mem::offset_of;

use tactus_application::layout::{
    CLOCK_MONOTONIC, CLOSED, Header, LEAST_CAPACITY, MAGIC, MOST_CAPACITY, RING_OFFSET, Record, VERSION,
};

/// Bytes of a header.
pub const BYTES: usize = size_of::<Header>();
/// Bytes of a record.
pub const RECORD: usize = size_of::<Record>();

/// The constant part of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Records of the ring.
    pub capacity: u64,
    /// When it was opened, CLOCK_MONOTONIC in ns.
    pub session: u64,
    /// Time between two due times, in ns; 0: not said.
    pub period_ns: u64,
    /// The process that marks, as it knows itself.
    pub process: u32,
    /// Its name.
    pub name: String,
}

impl Shape {
    /// Reads the header of a file of this length, in bytes.
    ///
    /// # Errors
    /// The reason why it is not a valid header.
    pub fn read(bytes: &[u8; BYTES], length: u64) -> Result<Self, String> {
        let number = |at| u64_at(bytes, at);
        let small = |at| u32_at(bytes, at);
        if number(offset_of!(Header, magic)) != MAGIC {
            return Err("does not begin like the file of an application".into());
        }
        let version = small(offset_of!(Header, version));
        let record = small(offset_of!(Header, record_bytes));
        if version != VERSION || usize::try_from(record) != Ok(RECORD) {
            return Err(format!(
                "is of version {version}, with {record} bytes per cycle: this tactus reads version {VERSION}"
            ));
        }
        if small(offset_of!(Header, clock)) != CLOCK_MONOTONIC {
            return Err("has times of another clock than CLOCK_MONOTONIC".into());
        }
        let capacity = number(offset_of!(Header, capacity));
        if !(LEAST_CAPACITY..=MOST_CAPACITY).contains(&capacity) || !capacity.is_power_of_two() {
            return Err(format!("claims a ring of {capacity} cycles"));
        }
        let least = RING_OFFSET as u64 + capacity * RECORD as u64;
        if length < least {
            return Err(format!("has {length} bytes, but a ring of {capacity} cycles needs {least}"));
        }
        let at = offset_of!(Header, name);
        let name = &bytes[at..at + tactus_application::layout::NAME_BYTES];
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Self {
            capacity,
            session: number(offset_of!(Header, session)),
            period_ns: number(offset_of!(Header, period_ns)),
            process: small(offset_of!(Header, process)),
            name: String::from_utf8_lossy(name).chars().filter(|c| !c.is_control()).collect(),
        })
    }
}

/// How many records were written, ever, by a header.
pub fn written(bytes: &[u8; BYTES]) -> u64 {
    u64_at(bytes, offset_of!(Header, written))
}

/// Whether its owner has closed it.
pub fn is_closed(bytes: &[u8; BYTES]) -> bool {
    u32_at(bytes, offset_of!(Header, state)) == CLOSED
}

/// A number of a record or a header; 0 where the bytes end before.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|part| part.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// The same of a small one.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|part| part.try_into().ok()).map_or(0, u32::from_ne_bytes)
}
