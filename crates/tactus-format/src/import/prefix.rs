//! Prefixes that a log puts before every line of a file. They are the time and unit of journald, the
//! timestamps of `kubectl logs --timestamps`, docker and CI, a container's name, and the `>` of a quote. They
//! are removed before the format is recognised.

use std::io::{BufRead, BufReader, Read};

/// The prefix of each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefix {
    /// `2024-03-05T10:11:12.131415Z `, as kubectl, docker and CI write it.
    Time,
    /// `2024-03-05T10:11:12+0000 host unit[123]: `, or `Mar 05 10:11:12 host unit[123]: `.
    Journal,
    /// `[pod/name/container] ` or `[2024-03-05T10:11:12.131Z] `.
    Bracket,
    /// `name-1  | `
    Compose,
    /// `> `
    Quote,
    /// Four blanks, as code in Markdown. Instruments also indent their lines.
    Indent,
}

/// The longest part of a line that is held, in bytes.
const LONGEST: u64 = 16 << 20;

impl Prefix {
    /// Prefixes that no instrument writes itself.
    const CERTAIN: [Self; 5] = [Self::Journal, Self::Time, Self::Bracket, Self::Compose, Self::Quote];

    /// The prefix of every line in a file that begins so.
    pub fn of(beginning: &[u8]) -> Option<Self> {
        Self::CERTAIN.into_iter().find(|prefix| prefix.fits(beginning))
    }

    /// Whether it stands before every whole line.
    pub fn fits(self, beginning: &[u8]) -> bool {
        let mut lines: Vec<&[u8]> = beginning.split(|byte| *byte == b'\n').collect();
        // The last one may be cut.
        if lines.len() > 1 {
            lines.pop();
        }
        let mut lines = lines.into_iter().filter(|line| !is_idle(line)).peekable();
        lines.peek().is_some() && lines.all(|line| self.strip(line).is_some())
    }

    /// The line without it.
    fn strip(self, line: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Time => {
                let (time, rest) = word(line)?;
                // Files of containerd and CRI-O name the stream, and whether the line is whole.
                let streams: [&[u8]; 4] = [b"stdout F ", b"stderr F ", b"stdout F", b"stderr F"];
                let stream = streams.into_iter().find_map(|stream| rest.strip_prefix(stream));
                is_time(time).then_some(stream.unwrap_or(rest))
            }
            Self::Journal => {
                let (first, rest) = word(line)?;
                let rest = if is_time(first) {
                    rest
                } else {
                    // `Mar 05 10:11:12`
                    let (day, rest) = word(rest.trim_ascii_start())?;
                    let (clock, rest) = word(rest)?;
                    let sound = first.len() == 3
                        && first[0].is_ascii_uppercase()
                        && day.iter().all(u8::is_ascii_digit)
                        && is_clock(clock);
                    sound.then_some(rest)?
                };
                let (host, rest) = word(rest)?;
                let at = rest
                    .windows(2)
                    .position(|two| two == b": ")
                    .or(rest.ends_with(b":").then(|| rest.len() - 1))?;
                let unit = &rest[..at];
                let name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(byte);
                let unit_name = unit.split(|byte| *byte == b'[').next().unwrap_or_default();
                let sound =
                    [unit_name, host].into_iter().all(|word| !word.is_empty() && word.iter().all(name));
                sound.then(|| rest.get(at + 2..).unwrap_or_default())
            }
            Self::Bracket => {
                let rest = line.strip_prefix(b"[")?;
                let at = rest.iter().position(|byte| *byte == b']')?;
                let inner = &rest[..at];
                let sound = is_time(inner) || (inner.contains(&b'/') && !inner.contains(&b' '));
                let rest = &rest[at + 1..];
                sound.then(|| rest.strip_prefix(b" ").unwrap_or(rest))
            }
            Self::Compose => {
                let at = line.iter().position(|byte| *byte == b'|')?;
                let name = line[..at].trim_ascii_end();
                let sound = !name.is_empty()
                    && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
                    && name.iter().any(u8::is_ascii_lowercase)
                    && line[..at].ends_with(b" ");
                let rest = &line[at + 1..];
                sound.then(|| rest.strip_prefix(b" ").unwrap_or(rest))
            }
            Self::Quote => {
                let rest = line.strip_prefix(b">")?;
                Some(rest.strip_prefix(b" ").unwrap_or(rest))
            }
            Self::Indent => line.strip_prefix(b"    ").or_else(|| line.strip_prefix(b"\t")),
        }
    }

    /// The same bytes without it.
    pub fn off<'a>(self, input: impl Read + 'a) -> Box<dyn Read + 'a> {
        Box::new(Off { prefix: self, input: BufReader::new(input), line: Vec::new(), given: 0, begins: true })
    }
}

/// Lines that a log adds, and empty ones.
fn is_idle(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.starts_with(b"-- ")
}

/// The first word and what stands behind the blank after it.
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.iter().position(|byte| *byte == b' ') {
        Some(at) => Some((&line[..at], &line[at + 1..])),
        None => (!line.is_empty()).then_some((line, &[])),
    }
}

/// `2024-03-05T10:11:12`, with whatever says a fraction and a zone behind it.
fn is_time(word: &[u8]) -> bool {
    word.len() >= 19
        && word.len() <= 40
        && word[..4].iter().all(u8::is_ascii_digit)
        && word[4] == b'-'
        && word[7] == b'-'
        && word[10] == b'T'
        && is_clock(&word[11..19])
        && word[19..].iter().all(|byte| byte.is_ascii_digit() || b".,:+-Z".contains(byte))
}

fn is_clock(word: &[u8]) -> bool {
    let digit = |at: usize| word.get(at).is_some_and(u8::is_ascii_digit);
    word.len() >= 8 && word[2] == b':' && word[5] == b':' && [0, 1, 3, 4, 6, 7].into_iter().all(digit)
}

struct Off<R> {
    prefix: Prefix,
    input: BufReader<R>,
    line: Vec<u8>,
    given: usize,
    /// Whether the next bytes begin a line.
    begins: bool,
}

impl<R: Read> Read for Off<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        while self.given == self.line.len() {
            self.line.clear();
            self.given = 0;
            if self.input.by_ref().take(LONGEST).read_until(b'\n', &mut self.line)? == 0 {
                return Ok(0);
            }
            if std::mem::replace(&mut self.begins, self.line.ends_with(b"\n")) {
                let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
                self.given = self.prefix.strip(line).map_or(0, |rest| {
                    // The carriage return at its end may be missing.
                    let end = line
                        .strip_suffix(b"\r")
                        .filter(|_| !rest.ends_with(b"\r"))
                        .map_or(line.len(), <[u8]>::len);
                    end - rest.len()
                });
            }
        }
        let rest = &self.line[self.given..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}
