//! How much of a bundle is read. A bundle may come from anybody: whatever it says, reading it takes no more memory and
//! no more work than these limits allow, and nothing that tactus writes comes near them.

use std::io::{self, Read};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// Longest `manifest.json`, in bytes: the checksums of a hundred thousand files.
pub const MANIFEST: u64 = 16 * MIB;
/// Longest `plan.toml` and `source.toml`: ten thousand scenarios.
pub const PLAN: u64 = 16 * MIB;
/// Longest `result.json`: a thousand series with all of their outliers.
pub const RESULT: u64 = 32 * MIB;
/// Longest file of an environment's facts, or of what the audit says of them.
pub const FACTS: u64 = 32 * MIB;
/// Longest `pending.jsonl`: what a thousand series count until their interval is full.
pub const PENDING: u64 = 128 * MIB;
/// Longest log: events, ticks, windows, histograms, a console. A day of a thousand CPUs has histograms of 5 GB.
pub const LOG: u64 = 16 * GIB;
/// All files together whose checksums are looked at.
pub const CHECKED: u64 = 64 * GIB;

/// How many times longer than its compressed file a table of ticks may be: ours are ten times as long.
pub const UNPACKED: u64 = 100;

/// Remarks of a run that are kept.
pub const NOTES: usize = 65_536;
/// Values that are kept of one row, and groups of CPUs whose use of the cache is.
pub const ITEMS: usize = 4096;
/// Intervals of a histogram log whose lengths are looked at: two years of minutes.
pub const INTERVALS: usize = 1 << 20;
/// Windows of time that are kept of a row: two hours of a hundred series.
pub const WINDOWS: usize = 1 << 23;

/// Memory that all of a bundle may take, in bytes.
const MEMORY: u64 = 2 * GIB;
/// How much more memory a file's contents take than the file.
const PARSED: u64 = 4;

/// The memory that is left for what is still to be read.
pub struct Memory {
    left: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { left: MEMORY }
    }
}

impl Memory {
    /// Takes so many bytes of it.
    ///
    /// # Errors
    /// When there are no more.
    pub fn take(&mut self, bytes: u64) -> io::Result<()> {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        let words =
            || format!("the bundle is too large: to read it takes more than {} GiB of memory", MEMORY / GIB);
        left.map(drop).ok_or_else(|| io::Error::new(io::ErrorKind::OutOfMemory, words()))
    }

    /// Takes what the contents of a file of this length need.
    ///
    /// # Errors
    /// When there is no more.
    pub fn parse(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.take(u64::try_from(bytes.len()).unwrap_or(u64::MAX).saturating_mul(PARSED))
    }

    /// How much is left.
    pub fn left(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX)
    }
}

/// Reads so many bytes; more are an error, not an end.
pub struct Capped<R> {
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
        let words = || format!("it is longer than {} bytes, which none of its kind is", self.most);
        self.left = left.ok_or_else(|| io::Error::new(io::ErrorKind::FileTooLarge, words()))?;
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
    fn memory_that_is_gone_does_not_come_back() {
        let mut memory = Memory::default();
        memory.take(MEMORY - 1).unwrap();
        assert!(memory.parse(b"x").is_err() && memory.take(1).is_err());
    }
}
