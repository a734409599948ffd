//! Limits on the reading of a bundle. A bundle may come from a stranger. Whatever it contains, reading it
//! takes no more memory and work than these limits allow. Bundles that tactus writes stay far below them.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use tactus_system::{Directory, at_most, too_large};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// Longest `manifest.json`, in bytes: the checksums of a hundred thousand files.
pub(crate) const MANIFEST: u64 = 16 * MIB;
/// Longest `plan.toml` and `source.toml`, and longest plan: ten thousand scenarios. What reads TOML takes up to 65 times as
/// much memory.
pub const PLAN: u64 = 4 * MIB;
/// Longest `result.json`: a thousand series with all of their outliers.
pub(crate) const RESULT: u64 = 32 * MIB;
/// Longest file of an environment's facts, in a bundle or by itself, or of its audit.
pub const FACTS: u64 = 32 * MIB;
/// Longest `pending.jsonl`: the counts of a thousand series until their interval is full.
pub(crate) const PENDING: u64 = 128 * MIB;
/// Longest log: events, ticks, windows, histograms, a console. A day of a thousand CPUs has histograms of 5 GB.
pub(crate) const LOG: u64 = 16 * GIB;
/// All files together whose checksums are looked at.
pub(crate) const CHECKED: u64 = 64 * GIB;
/// Those with holes among them.
pub(crate) const SPARSE: u64 = 64 * MIB;

/// Largest ratio of a table of ticks to its compressed file; those that tactus writes have a ratio of ten.
pub(crate) const UNPACKED: u64 = 100;

/// Remarks of a run that are kept.
pub(crate) const NOTES: usize = 65_536;
/// Values that are kept of one row: twice as many as a run takes of any.
pub(crate) const ITEMS: usize = 512;
/// Largest latencies that are kept of one series: as many as a run keeps.
pub(crate) const OUTLIERS: usize = 32;
/// Waits of virtual CPUs that are kept of one row, the longest: as many as a run keeps. Each latency is
/// compared with each of them.
pub(crate) const WAITS: usize = 512;
/// Groups of CPUs whose use of the cache is kept.
pub(crate) const GROUPS: usize = 4096;
/// Intervals of a histogram log whose lengths are looked at: two years of minutes.
pub(crate) const INTERVALS: usize = 1 << 20;
/// Windows of time that are kept of a row: two hours of a hundred series.
pub(crate) const WINDOWS: usize = 1 << 23;

/// How much more memory a document takes than its file.
const PARSED: u64 = 4;
/// Memory of a list or a table, however short it is in the file.
const TABLE: u64 = 256;
/// Memory that a bundle may take, in bytes, however small it is, and what one of its rows may.
const BUNDLE: u64 = 512 * MIB;
const ROW: u64 = 128 * MIB;
/// How much more it may take for each byte that was read of it. A few bytes, packed, can be the counts of a whole
/// histogram; ours take as much memory as their lines.
const PER_BYTE: u64 = 16;
/// Memory that a bundle may take, however large it is.
const MOST: u64 = 4 * GIB;

/// The memory that is left for what is still to be read.
pub(crate) struct Memory {
    allowed: u64,
    taken: u64,
    /// Files that were read, by device and number.
    read: BTreeSet<(u64, u64)>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { allowed: BUNDLE, taken: 0, read: BTreeSet::new() }
    }
}

impl Memory {
    /// Takes this many bytes of it.
    ///
    /// # Errors
    /// When there are no more.
    pub fn take(&mut self, bytes: u64) -> io::Result<()> {
        self.taken = self.taken.saturating_add(bytes);
        if self.taken <= self.allowed {
            return Ok(());
        }
        let words = "the bundle is too large: its contents take more memory than any bundle of its size";
        Err(io::Error::new(io::ErrorKind::OutOfMemory, words))
    }

    /// The bytes of a file of at most `most` bytes, for whose contents there is memory. A file adds to the
    /// allowance only once, however many names it has.
    ///
    /// # Errors
    /// Those of [`Directory::read`], and when there is no more memory.
    pub fn read(&mut self, dir: &Directory, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let file = dir.file(name)?;
        let of = file.metadata()?;
        let bytes = at_most(file, most)?;
        if self.read.insert((of.dev(), of.ino())) {
            self.parse(&bytes)?;
        } else {
            self.take(parsed(&bytes))?;
        }
        Ok(bytes)
    }

    /// Takes what these bytes of a file need, which no other has.
    ///
    /// # Errors
    /// When there is no more.
    pub fn parse(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.allow(by_length(bytes));
        self.take(parsed(bytes))
    }

    /// The memory that a row may take with a log of this many bytes, in bytes.
    pub fn for_row(&mut self, log: u64) -> usize {
        let own = log.saturating_mul(PER_BYTE);
        self.allow(own);
        let left = self.allowed.saturating_sub(self.taken) / 2;
        usize::try_from(left.min(ROW.saturating_add(own))).unwrap_or(usize::MAX)
    }

    /// The memory taken so far, in bytes.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Frees this many bytes.
    pub const fn give_back(&mut self, bytes: u64) {
        self.taken = self.taken.saturating_sub(bytes);
    }

    fn allow(&mut self, bytes: u64) {
        self.allowed = self.allowed.saturating_add(bytes).min(MOST);
    }
}

/// The memory for the contents of a file by its length, in bytes.
fn by_length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX).saturating_mul(PARSED)
}

/// The memory for them with their tables, in bytes.
fn parsed(bytes: &[u8]) -> u64 {
    let tables = bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    by_length(bytes).max(u64::try_from(tables).unwrap_or(u64::MAX).saturating_mul(TABLE))
}

/// Reads at most `most` bytes; more are an error, not an end.
pub(crate) struct Capped<R> {
    from: R,
    most: u64,
    left: u64,
}

impl<R: Read> Capped<R> {
    /// Of `from`, at most `most` bytes.
    pub fn new(from: R, most: u64) -> Self {
        Self { from, most, left: most }
    }
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(into)?;
        let left = self.left.checked_sub(u64::try_from(n).unwrap_or(u64::MAX));
        self.left = left.ok_or_else(|| too_large(self.most))?;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_an_error_and_not_cut() {
        let mut text = String::new();
        assert_eq!(Capped::new(&b"abc"[..], 3).read_to_string(&mut text).unwrap(), 3);
        assert!(Capped::new(&b"abcd"[..], 3).read_to_string(&mut text).is_err());
    }

    #[test]
    fn a_file_of_nothing_but_empty_tables_weighs_what_tables_take() {
        let tables = br#"{"":0},"#.repeat(4 << 20);
        assert!(Memory::default().parse(&tables).is_err(), "28 MB that would take a gigabyte");
        let numbers = b"1234567,".repeat(4 << 20);
        Memory::default().parse(&numbers).unwrap();
    }

    #[test]
    fn memory_that_is_gone_does_not_come_back_and_a_large_bundle_has_more() {
        let mut memory = Memory::default();
        assert_eq!(memory.for_row(0), usize::try_from(ROW).unwrap());
        memory.take(BUNDLE).unwrap();
        memory.parse(b"x").unwrap();
        assert!(memory.take(1).is_err() && memory.for_row(0) == 0);
        assert!(memory.for_row(1 << 20) > 0 && memory.take(1).is_ok());
        assert!(memory.for_row(u64::MAX) > 0 && memory.take(MOST).is_err());
    }
}
