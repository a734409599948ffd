//! Where the bytes of a line come from, and how they are told apart.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use tactus_format::lines::{self, Format};

/// The longest line that is looked at, in bytes; a longer one cannot be a reading.
pub const LONGEST_LINE: usize = 4096;

/// How many pieces of at most 4 KB may wait to be looked at: 1 MB. Then who sends has to wait.
const WAITING: usize = 256;

/// More than any line can have held when the measurement began, in bytes.
const LONGEST_PAST: usize = 4 << 20;

/// Bytes as they arrive.
pub struct Source {
    arriving: Receiver<Vec<u8>>,
    waiting: VecDeque<u8>,
}

/// The kind of data on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// A probe's frames.
    Frames,
    /// Lines of another instrument.
    Lines(Format),
}

impl Source {
    /// Begins to read.
    pub fn new(mut reader: Box<dyn Read + Send>) -> Self {
        let (sender, arriving) = sync_channel(WAITING);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 4096];
            loop {
                match reader.read(&mut buffer) {
                    Ok(read @ 1..) if sender.send(buffer[..read].to_vec()).is_ok() => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    _ => return,
                }
            }
        });
        Self { arriving, waiting: VecDeque::new() }
    }

    /// Takes what arrives within a time; nothing when nothing did, an error when the line has ended.
    pub fn next(&mut self, patience: Duration) -> Result<Option<Vec<u8>>, RecvTimeoutError> {
        if !self.waiting.is_empty() {
            return Ok(Some(self.waiting.drain(..).collect()));
        }
        match self.arriving.recv_timeout(patience) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives bytes back: they come first again.
    pub fn put_back(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().rev() {
            self.waiting.push_front(*byte);
        }
    }

    /// Takes the whole lines that arrive within `time` and returns them: they may be older than this call. If the
    /// stream ends meanwhile it is a recording, and everything is put back.
    pub fn skip_older(&mut self, time: Duration) -> Vec<u8> {
        let until = Instant::now() + time;
        let mut older: Vec<u8> = Vec::new();
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            match self.next(left) {
                Ok(Some(bytes)) => older.extend(bytes),
                Ok(None) => break,
                Err(_) => {
                    self.put_back(&older);
                    return Vec::new();
                }
            }
            // No console is that fast: a recording that is still being read.
            if older.len() > LONGEST_PAST {
                self.put_back(&older);
                return Vec::new();
            }
        }
        // A line whose end is still to come is not over.
        let end = older.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = older.split_off(end);
        self.put_back(&rest);
        older
    }

    /// The kind of data on the line, by the first line that shows it; the lines until then are put back. An error:
    /// the lines that came instead.
    pub fn tell(&mut self, patience: Duration) -> Result<Carries, String> {
        let until = Instant::now() + patience;
        let mut heard: Vec<u8> = Vec::new();
        loop {
            let (whole, rest) = cut(&heard);
            if let Some(carries) = whole.iter().find_map(|line| carries(line)) {
                self.put_back(&heard);
                return Ok(carries);
            }
            // Only the end of what has been looked at can still become a line.
            let rest = rest.to_owned();
            // A line that never stops talking is waited for no longer than a silent one.
            let left = until.checked_duration_since(Instant::now());
            match left.map(|left| self.next(left)) {
                Some(Ok(Some(bytes))) => {
                    let from = heard.len().saturating_sub(16 * LONGEST_LINE);
                    heard.drain(..from);
                    heard.extend(bytes);
                }
                None | Some(Ok(None) | Err(_)) => {
                    let said = String::from_utf8_lossy(&heard).into_owned();
                    return Err(if said.trim().is_empty() {
                        rest
                    } else {
                        tactus_system::last_lines(&said, 3)
                    });
                }
            }
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.waiting.is_empty() {
            let Ok(bytes) = self.arriving.recv() else { return Ok(0) };
            self.waiting.extend(bytes);
        }
        self.waiting.read(buffer)
    }
}

/// The lines of a stretch of bytes, and what stands behind the last one's end.
fn cut(bytes: &[u8]) -> (Vec<String>, String) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let rest = lines.pop().unwrap_or_default();
    (lines, rest)
}

fn carries(line: &str) -> Option<Carries> {
    let line = line.trim_end();
    if line.contains(r#"{"q":"#) && line.ends_with("\"}") {
        return Some(Carries::Frames);
    }
    lines::recognize(line).map(Carries::Lines)
}

/// Puts lines together from bytes, however they are cut. A line that is too long is left out.
#[derive(Debug, Default)]
pub struct Splitter {
    line: Vec<u8>,
    overlong: bool,
}

impl Splitter {
    /// The lines that bytes complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for byte in bytes {
            if *byte == b'\n' {
                if !std::mem::take(&mut self.overlong) {
                    lines.push(String::from_utf8_lossy(&self.line).into_owned());
                }
                self.line.clear();
            } else if self.line.len() < LONGEST_LINE {
                self.line.push(*byte);
            } else {
                self.overlong = true;
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn source(text: &str) -> Source {
        Source::new(Box::new(Cursor::new(text.as_bytes().to_vec())))
    }

    #[test]
    fn what_a_line_carries_is_told_and_nothing_of_it_is_lost() {
        let demo = "Starting kernel\r\nTimer fired, jitter:   5 ns, min:   5 ns, max:   5 ns\r\nmore";
        let frame = "[    0.1] boot\n{\"q\":0,\"m\":{\"t\":\"ready\"},\"c\":\"89abcdef\"}\n";
        for (text, expected) in [(demo, Carries::Lines(Format::Demo)), (frame, Carries::Frames)] {
            let mut source = source(text);
            assert_eq!(source.tell(Duration::from_secs(5)), Ok(expected));
            let mut again = String::new();
            source.read_to_string(&mut again).unwrap();
            assert_eq!(again, text);
        }
        let other = source("hello\nworld\n").tell(Duration::from_secs(5));
        assert_eq!(other, Err("hello\nworld".into()));
    }

    #[test]
    fn a_line_that_never_stops_talking_is_waited_for_no_longer_than_a_silent_one() {
        let mut endless = Source::new(Box::new(io::repeat(b'y')));
        let words = endless.tell(Duration::from_millis(100)).unwrap_err();
        assert!(words.starts_with("yyy"), "{words}");
    }

    #[test]
    fn what_waits_at_the_beginning_is_older_and_a_recording_that_ends_is_not() {
        let mut recording = source("one\ntwo\n");
        assert!(recording.skip_older(Duration::from_secs(60)).is_empty());
        let mut again = String::new();
        recording.read_to_string(&mut again).unwrap();
        assert_eq!(again, "one\ntwo\n");

        let (mut to, from) = std::os::unix::net::UnixStream::pair().unwrap();
        io::Write::write_all(&mut to, b"old\nolder\nbegun ").unwrap();
        let mut open = Source::new(Box::new(from));
        assert_eq!(open.skip_older(Duration::from_millis(300)), b"old\nolder\n");
        io::Write::write_all(&mut to, b"and ended\n").unwrap();
        drop(to);
        let mut fresh = String::new();
        open.read_to_string(&mut fresh).unwrap();
        assert_eq!(fresh, "begun and ended\n");
    }

    proptest! {
        #[test]
        fn lines_come_whole_however_the_bytes_are_cut(text in "[a-z\n]{0,200}", at in 0usize..200) {
            let (first, second) = text.as_bytes().split_at(at.min(text.len()));
            let mut splitter = Splitter::default();
            let mut lines = splitter.feed(first);
            lines.extend(splitter.feed(second));
            let mut expected: Vec<&str> = text.split('\n').collect();
            expected.pop();
            prop_assert_eq!(lines, expected);
        }
    }
}
