//! Caps output of any length from another program: its beginning and its end are kept.

use std::collections::VecDeque;
use std::io::{self, Write};

/// Bytes of the beginning: all that a kernel says with every driver's debug messages on.
const BEGINNING: usize = 4 << 20;
/// Bytes of the end: a panic with the traces of some CPUs.
const END: usize = 256 << 10;

/// Writes the beginning as it comes, keeps the end, and writes that, with a word on what is left out between them, when
/// it is dropped.
pub struct Capped<W: Write> {
    to: W,
    left: usize,
    end: VecDeque<u8>,
    cut: u64,
}

impl<W: Write> Capped<W> {
    /// Nothing was written yet.
    pub const fn new(to: W) -> Self {
        Self { to, left: BEGINNING, end: VecDeque::new(), cut: 0 }
    }
}

impl<W: Write> Write for Capped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left > 0 {
            let written = self.to.write(&bytes[..bytes.len().min(self.left)])?;
            self.left -= written;
            return Ok(written);
        }
        self.end.extend(bytes);
        let beyond = self.end.len().saturating_sub(END);
        self.end.drain(..beyond);
        self.cut = self.cut.saturating_add(u64::try_from(beyond).unwrap_or(u64::MAX));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl<W: Write> Drop for Capped<W> {
    fn drop(&mut self) {
        let word = match self.cut {
            0 => String::new(),
            cut => format!("\n[... {cut} bytes are left out ...]\n"),
        };
        let end = self.end.make_contiguous();
        // The end is only a help: an error in writing it is ignored.
        let _ = self.to.write_all(word.as_bytes()).and_then(|()| self.to.write_all(end));
        let _ = self.to.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept_and_what_is_left_out_is_counted() {
        let mut kept = Vec::new();
        let mut capped = Capped::new(&mut kept);
        capped.write_all(b"the beginning\n").unwrap();
        for _ in 0..10_000 {
            capped.write_all(&[b'x'; 4096]).unwrap();
        }
        capped.write_all(b"\nKernel panic").unwrap();
        drop(capped);
        let text = String::from_utf8(kept).unwrap();
        assert!(text.starts_with("the beginning\n") && text.ends_with("\nKernel panic"));
        assert!(text.len() < BEGINNING + END + 100, "{}", text.len());
        let written = 14 + 10_000 * 4096 + 13;
        let cut = written - BEGINNING - END;
        assert!(text.contains(&format!("[... {cut} bytes are left out ...]")), "{cut}");
    }

    #[test]
    fn what_is_short_is_written_as_it_comes_and_nothing_is_added() {
        let mut kept = Vec::new();
        Capped::new(&mut kept).write_all(b"all of it\n").unwrap();
        assert_eq!(kept, b"all of it\n");
    }
}
