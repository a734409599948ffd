//! Lines of a file: one of JSON as it is written, and all as they are read, one at a time. A file of any
//! length takes no more memory than its longest line may have.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use serde::Serialize;
use tactus_system::Directory;

use super::limits::{self, Capped};

/// The longest line that is read, in bytes; lines that tactus writes are far shorter.
const LONGEST: usize = 8 * 1024 * 1024;

/// Bytes of an overlong line that are skipped before the search for the next line stops. A sparse file may
/// have no line at all, and any length.
const ENDLESS: usize = 8 * LONGEST;

/// A value as a line.
pub fn json_line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// The lines of a file or stream.
pub struct Lines<R> {
    from: R,
    line: Vec<u8>,
}

/// A line, or what is there instead of one.
pub enum Line<'a> {
    /// A line without its end.
    Whole(&'a [u8]),
    /// The last one, whose end is missing: its writer may not have come further.
    Cut(&'a [u8]),
    /// A line that is too long to be one.
    TooLong,
}

impl Lines<BufReader<Capped<File>>> {
    /// The lines of a file.
    pub fn open(dir: &Directory, name: &str) -> io::Result<Self> {
        let from = Capped::new(dir.file(name)?, limits::LOG);
        Ok(Self::of(BufReader::with_capacity(64 * 1024, from)))
    }
}

impl<R: BufRead> Lines<R> {
    /// The lines of a stream.
    pub fn of(from: R) -> Self {
        Self { from, line: Vec::new() }
    }

    /// The next line that is not empty; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            self.line.clear();
            let most = u64::try_from(LONGEST).unwrap_or(u64::MAX);
            if self.from.by_ref().take(most).read_until(b'\n', &mut self.line)? == 0 {
                return Ok(None);
            }
            if self.line.last() != Some(&b'\n') {
                if self.line.len() < LONGEST {
                    return Ok(Some(Line::Cut(&self.line)));
                }
                self.skip()?;
                return Ok(Some(Line::TooLong));
            }
            if !self.line.trim_ascii().is_empty() {
                self.line.pop();
                return Ok(Some(Line::Whole(&self.line)));
            }
        }
    }

    /// To the end of the line.
    fn skip(&mut self) -> io::Result<()> {
        let mut passed = 0;
        loop {
            if passed > ENDLESS {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it has a line without an end"));
            }
            let some = self.from.fill_buf()?;
            let (taken, ended) = match some.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (some.len(), some.is_empty()),
            };
            self.from.consume(taken);
            passed += taken;
            if ended {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_to_be_a_line_is_passed_over() {
        let text = [b"one\n\n".to_vec(), vec![b'x'; LONGEST + 70_000], b"\ntwo\nthr".to_vec()].concat();
        let mut lines = Lines::of(text.as_slice());
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Line::Cut(bytes) => format!("cut {}", String::from_utf8_lossy(bytes)),
                Line::TooLong => "too long".into(),
            });
        }
        assert_eq!(found, ["one", "too long", "two", "cut thr"]);
    }

    #[test]
    fn a_line_that_never_ends_is_given_up() {
        let mut lines = Lines::of(BufReader::new(io::repeat(0)));
        assert_eq!(lines.next().map(drop).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
