//! The console of a guest: it is kept, and quoted when the guest ends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tactus_system::last_lines;

use crate::support::{Capped, cannot};
use crate::{ConsoleFile, StartError};

/// How many of the last lines are quoted.
const LINES: usize = 12;
/// How often it is looked whether the machine has connected.
const LOOK: Duration = Duration::from_millis(2);
/// How long the rest of a console is awaited when its machine has ended.
const REST: Duration = Duration::from_secs(1);

/// The console of a guest. All of it is read, however much the guest writes; its beginning and its end are kept.
/// Dropping it leaves the rest unread.
pub struct Console {
    reader: JoinHandle<()>,
    over: Arc<AtomicBool>,
    kept: File,
}

impl Console {
    /// Keeps what comes from the first that connects.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn keep(listener: UnixListener, file: &ConsoleFile) -> Result<Self, StartError> {
        let kept = file.anew().map_err(|error| cannot(&file.to_string(), error))?;
        let to = kept.try_clone().map_err(|error| cannot(&file.to_string(), error))?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let reader = std::thread::spawn(move || {
            let mut to = Capped::new(to);
            let mut stream = loop {
                match listener.accept() {
                    Ok((stream, _)) => break stream,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(LOOK);
            };
            // A console is a help: one that breaks, or cannot be kept, ends nothing.
            let _ = stream.set_nonblocking(false);
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                if to.write_all(&buffer[..read]).is_err() || ends.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        Ok(Self { reader, over, kept })
    }

    /// The reason that it gives for the end of its machine, and its last lines, after a word on the machine.
    pub fn last_words(&self) -> String {
        match last_words(&read(&self.kept)) {
            Some(lines) => format!("; the last lines of its console:\n{lines}"),
            None => "; its console is empty".to_owned(),
        }
    }

    /// Waits a moment for the rest of it, of a machine that has ended.
    pub fn await_rest(&self) {
        let until = Instant::now() + REST;
        while !self.reader.is_finished() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The kept output, from the beginning; the position of the next write stays.
fn read(kept: &File) -> Vec<u8> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(read @ 1..) = kept.read_at(&mut piece, u64::try_from(bytes.len()).unwrap_or(u64::MAX)) {
        bytes.extend_from_slice(&piece[..read]);
    }
    bytes
}

/// The reason that the console gives, and its last lines.
fn last_words(console: &[u8]) -> Option<String> {
    let text = clean(console);
    let panic = text.lines().find(|line| line.contains("Kernel panic")).map(|line| line.trim().to_owned());
    let tail = last_lines(&text, LINES);
    match panic {
        Some(panic) if !tail.contains(&panic) => Some(format!("{panic}\n[...]\n{tail}")),
        _ if tail.is_empty() => None,
        _ => Some(tail),
    }
}

/// The text without carriage returns and terminal sequences.
fn clean(console: &[u8]) -> String {
    let text = String::from_utf8_lossy(console);
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => {
                if chars.next_if_eq(&'[').is_some() {
                    while chars.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
                }
            }
            '\n' => clean.push(c),
            c if c.is_control() => {}
            c => clean.push(c),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_panic_is_quoted_even_when_a_long_trace_follows() {
        let trace: String = (0..40).map(|n| format!("[    1.{n}]  call_{n}+0x1/0x2\r\n")).collect();
        let console = format!(
            "booting\r\n[    1.2] Kernel panic - not syncing: VFS\r\n{trace}\x1b[0m---[ end ]---\r\n"
        );
        let words = last_words(console.as_bytes()).unwrap();
        assert!(words.starts_with("[    1.2] Kernel panic - not syncing: VFS\n[...]\n"), "{words}");
        assert!(words.ends_with("---[ end ]---"), "{words}");
        assert_eq!(last_words(b"\r\n\x1b[2J"), None);
    }

    proptest! {
        #[test]
        fn no_console_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let words = last_words(&bytes).unwrap_or_default();
            prop_assert!(!words.contains('\r') && !words.contains('\x1b'));
        }
    }
}
