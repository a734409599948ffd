//! Lines of a file, with their numbers; and decimal numbers.

use std::io::{BufRead, BufReader, Read};

use super::ImportError;

/// The longest line that is read, in bytes: cyclictest numbers every overflow of a thread in one line.
const LONGEST: u64 = 16 << 20;

/// Lines that say nothing (comments, empty ones, those that no reader knows): a little packed file has hundreds of millions
/// of them, and one that an instrument wrote some dozen.
pub(super) const MOST_IDLE: u64 = 1 << 16;

/// How much is read at once, in bytes.
const READ_AT_ONCE: usize = 256 << 10;

/// The note on a file without a unit.
pub(super) const NO_UNIT: &str =
    "the file does not contain its unit: its values are taken as microseconds (`--unit ns` if they are not)";

/// Lines of a file.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// Number of the last line, from 1.
    pub number: u64,
    /// Comments and empty lines so far.
    idle: u64,
    /// Whether the last line is given once more.
    again: bool,
    /// A line that is given before it.
    first: Option<Vec<u8>>,
    /// The last line, while the other one is given.
    held: Vec<u8>,
}

impl<R: Read> Lines<R> {
    /// Begins.
    pub fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(READ_AT_ONCE, input),
            line: Vec::new(),
            number: 0,
            idle: 0,
            again: false,
            first: None,
            held: Vec::new(),
        }
    }

    /// Gives the last line once more: it begins the next run.
    pub fn again(&mut self) {
        self.again = true;
    }

    /// The same, with an earlier line before it.
    pub fn again_after(&mut self, first: String) {
        (self.again, self.first) = (true, Some(first.into_bytes()));
    }

    /// Whether the last line has yet to be given once more.
    pub const fn has_again(&self) -> bool {
        self.again
    }

    /// The next line without its end.
    pub fn next(&mut self) -> Result<Option<&str>, ImportError> {
        match self.next_bytes()?.is_some() {
            true => self.text().map(Some),
            false => Ok(None),
        }
    }

    /// The next line without its end, whatever its bytes are.
    pub fn next_bytes(&mut self) -> Result<Option<&[u8]>, ImportError> {
        if self.again {
            match self.first.take() {
                Some(first) => self.held = std::mem::replace(&mut self.line, first),
                None => {
                    self.again = false;
                    if !self.held.is_empty() {
                        self.line = std::mem::take(&mut self.held);
                    }
                }
            }
            return Ok(Some(&self.line));
        }
        self.line.clear();
        let at = self.number + 1;
        let wrong = |what: String| ImportError::line(at, what);
        let mut input = self.input.by_ref().take(LONGEST);
        let read = input.read_until(b'\n', &mut self.line).map_err(|error| wrong(error.to_string()))?;
        if read == 0 {
            return Ok(None);
        }
        self.number = at;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if u64::try_from(read).is_ok_and(|read| read == LONGEST) {
            return Err(wrong(format!("it is longer than {LONGEST} bytes")));
        }
        if matches!(self.line.first(), None | Some(b'#' | b'\r')) {
            self.idle += 1;
            if self.idle > MOST_IDLE {
                return Err(wrong(too_idle()));
            }
        }
        Ok(Some(&self.line))
    }

    /// The last line as text.
    pub fn text(&self) -> Result<&str, ImportError> {
        if self.line.contains(&0) {
            return Err(self.error("a byte of it is 0: this is not text, or text in UTF-16"));
        }
        let text = std::str::from_utf8(&self.line)
            .map_err(|error| self.error(format!("byte {} of it is not UTF-8", error.valid_up_to())))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Ok(text.trim_end_matches(['\n', '\r']))
    }

    /// An error in the last line.
    pub fn error(&self, what: impl Into<String>) -> ImportError {
        ImportError::line(self.number, what)
    }
}

/// The error for a file in which nearly no line is a reading.
pub(super) fn too_idle() -> String {
    format!("more than {MOST_IDLE} lines of it contain no data: no instrument writes such a file")
}

/// A line, short enough to be said.
pub(super) fn short(line: &str) -> String {
    line.trim().chars().take(60).flat_map(char::escape_debug).collect()
}

/// A decimal number in units of `unit_ns`, in ns; a fraction of a ns is cut off.
pub(super) fn decimal(text: &str, unit_ns: u64) -> Option<u64> {
    let (before, behind) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if before.is_empty() || !digits(before) || !digits(behind) || behind.len() > 18 {
        return None;
    }
    let ones = before.parse::<u64>().ok()?.checked_mul(unit_ns)?;
    if behind.is_empty() {
        return Some(ones);
    }
    let scale = 10_u128.pow(u32::try_from(behind.len()).ok()?);
    let part = behind.parse::<u128>().ok()? * u128::from(unit_ns) / scale;
    ones.checked_add(u64::try_from(part).ok()?)
}
