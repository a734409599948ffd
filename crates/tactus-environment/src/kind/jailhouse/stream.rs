//! The console of a cell as a probe's byte stream. It is kept in a file, and cut off when the cell has failed or its
//! kernel has panicked. Where the console can only be read, the writer boots the inmate with the messages for it.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tactus_model::message::{Done, End, FromProbe, ToProbe};
use tactus_model::wire::{Decoder, Encoder, Item};

use super::cells::{self, State};
use super::command::Jailhouse;
use super::inmate::Inmate;
use super::said;

/// How often the state of the cell is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is looked whether the others have begun.
const HELD: Duration = Duration::from_millis(2);
/// How long a console may take to bring all that it held.
const RING: Duration = Duration::from_secs(2);
/// How many lines of the console are kept for last words.
const KEPT: usize = 12;
/// The longest line that is kept together, in bytes: a frame at the end of a kernel's longest.
const LONGEST: usize = 8 * 1024;
/// How many lines may wait to be passed on: those of a job that is prepared and proven are some hundred. Then the
/// console has to wait, and what it does not keep shows as lost frames.
const WAITING: usize = 4096;
/// The first frame of a probe.
const FIRST: &[u8] = br#"{"q":0,"#;

/// The state of a console beside the frames on it.
#[derive(Default)]
pub struct Heard {
    lines: Mutex<VecDeque<String>>,
    /// End of the last tick, in ns since the measurement started.
    reached: AtomicU64,
    /// Whether the cell is being booted, so that its state says nothing.
    booting: AtomicBool,
    /// When it was booted last.
    booted: Mutex<Option<Instant>>,
    /// From where on the inmate's job is not heard yet: it does by itself what the others are told to do
    /// later.
    held: AtomicU8,
    /// Whether a probe speaks: it has said its first frame, and was not stopped since.
    greeted: AtomicBool,
    /// Whether the inmate's kernel has panicked since it was booted: its cell stays "running".
    panicked: AtomicBool,
}

impl Heard {
    /// The last lines that were no frames.
    pub fn last_lines(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect::<Vec<_>>().join("\n")
    }

    /// Whether a probe has said anything.
    pub fn speaks(&self) -> bool {
        self.greeted.load(Ordering::Acquire)
    }

    /// Whether a line was heard in which every character stands twice.
    pub fn is_doubled(&self) -> bool {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().any(|line| tactus_format::lines::is_doubled(line))
    }

    /// The cell is being booted, or was.
    pub fn boots(&self, now: bool) {
        *self.booted.lock().unwrap_or_else(PoisonError::into_inner) = (!now).then(Instant::now);
        self.booting.store(now, Ordering::Release);
    }

    /// Whether its kernel has panicked, and not one before it: what a ring still holds comes within a moment, and
    /// behind it that the cell was started.
    fn is_dead(&self) -> bool {
        let booted = *self.booted.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_panicked() && booted.is_some_and(|booted| booted.elapsed() > RING)
    }

    /// Whether a kernel has panicked, and none has begun since.
    pub fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Acquire)
    }

    fn keep(&self, line: &[u8]) {
        let text: String =
            String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).take(400).collect();
        if let Some(panicked) = said::panicked(&text) {
            self.panicked.store(panicked, Ordering::Release);
        }
        if text.trim().is_empty() || said::lists_registers(&text) {
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(text);
    }
}

/// Where all that is no frame is kept.
type Log = Box<dyn Write + Send>;

/// A line that is passed on.
#[derive(Default)]
pub struct Piece {
    /// The line; empty: the console has ended.
    bytes: Vec<u8>,
    /// The stages that end with it.
    ends: u8,
}

/// No part of a job; nothing is held.
const NOTHING: u8 = 0;
/// The preparation of a job; it is heard to here.
const PREPARATION: u8 = 1;
/// The control of a job; it is heard to here.
const CONTROL: u8 = 2;

/// Reads a console in a thread. Lines that are not frames are kept. Nothing is passed on before the first frame of a
/// probe, since a ring still holds what an earlier one said.
pub fn listen(
    mut from: Box<dyn Read + Send>,
    mut log: Option<Log>,
    heard: &Arc<Heard>,
) -> (SyncSender<Piece>, Receiver<Piece>) {
    let (sender, receiver) = sync_channel(WAITING);
    let (to, heard) = (sender.clone(), Arc::clone(heard));
    std::thread::spawn(move || {
        let mut sorter = Sorter::default();
        let mut buffer = [0; 4096];
        loop {
            let length = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            for piece in sorter.take(&buffer[..length], &heard, log.as_mut()) {
                if to.send(piece).is_err() {
                    return;
                }
            }
        }
        // An empty piece is the end: the other sender keeps the channel open.
        let _ = to.send(Piece::default());
    });
    (sender, receiver)
}

/// Tells frames from all else.
#[derive(Default)]
struct Sorter {
    line: Vec<u8>,
    decoder: Decoder,
}

impl Sorter {
    /// Takes in bytes and returns those that are to be passed on: whole lines.
    fn take(&mut self, bytes: &[u8], heard: &Heard, mut log: Option<&mut Log>) -> Vec<Piece> {
        let mut passed = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if !piece.ends_with(b"\n") && self.line.len() < LONGEST {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let (mut frame, mut ends) = (false, NOTHING);
            for item in self.decoder.feed::<FromProbe>(&line) {
                frame |= matches!(item, Item::Message(_) | Item::Lost(_));
                match item {
                    Item::Message(FromProbe::Tick(tick)) => {
                        heard.reached.store(tick.at_ns, Ordering::Release);
                    }
                    Item::Message(FromProbe::Ready) => ends = PREPARATION,
                    Item::Message(FromProbe::Proven(_)) => ends = CONTROL,
                    _ => {}
                }
            }
            // A part of a message is a frame and yields nothing yet.
            frame |= line.windows(5).any(|window| window == br#"{"q":"#);
            if !frame {
                heard.keep(&line);
                if let Some(log) = &mut log {
                    // A log that cannot be written must not end a measurement.
                    let _ = log.write_all(&line);
                }
            }
            if line.windows(FIRST.len()).any(|window| window == FIRST) {
                heard.greeted.store(true, Ordering::Release);
            }
            if heard.speaks() {
                passed.push(Piece { bytes: line, ends });
            }
        }
        passed
    }
}

/// The reader of the stream. It ends when the console does, or the cell no longer runs.
pub struct Watched {
    pub pieces: Receiver<Piece>,
    pub rest: VecDeque<u8>,
    pub heard: Arc<Heard>,
    pub cell: String,
    pub jailhouse: Jailhouse,
    pub looked: Instant,
    /// The stages that the last piece passed on has ended.
    pub ended: u8,
}

impl Watched {
    fn over(&mut self) -> bool {
        if self.looked.elapsed() < LOOK || self.heard.booting.load(Ordering::Acquire) {
            return false;
        }
        self.looked = Instant::now();
        if self.heard.is_dead() {
            return true;
        }
        match cells::named(&self.cell, &*self.jailhouse.system) {
            Some(cell) => !cell.state.runs() || !cell.failed.is_empty(),
            None => true,
        }
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            let held = self.heard.held.load(Ordering::Acquire);
            if held != NOTHING && self.ended >= held {
                std::thread::sleep(HELD);
                if self.over() {
                    return Ok(0);
                }
                continue;
            }
            match self.pieces.recv_timeout(LOOK) {
                Ok(piece) if piece.bytes.is_empty() => return Ok(0),
                Ok(piece) => {
                    self.ended = piece.ends;
                    self.rest.extend(piece.bytes);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
            // First pass on the output from before its end.
            if self.rest.is_empty() && self.over() {
                return Ok(0);
            }
        }
        self.rest.read(buffer)
    }
}

/// The writer for an inmate that cannot receive. A job boots the inmate with that job, and it begins by itself; to
/// stop it is to shut its cell down.
pub struct Mailbox {
    pub decoder: Decoder,
    pub inmate: Inmate,
    pub cell: String,
    pub jailhouse: Jailhouse,
    pub heard: Arc<Heard>,
    pub into: SyncSender<Piece>,
}

impl Mailbox {
    fn boot(&self, job: &ToProbe) -> io::Result<()> {
        let mut encoder = Encoder::new();
        let mut said = encoder.encode(job)?;
        said.extend(encoder.encode(&ToProbe::Prove)?);
        said.extend(encoder.encode(&ToProbe::Go)?);
        self.heard.reached.store(0, Ordering::Release);
        // It prepares before the others are told to: its output is held back until they are.
        self.heard.held.store(PREPARATION, Ordering::Release);
        self.heard.boots(true);
        let booted = self.inmate.boot(&said);
        self.heard.boots(false);
        booted.map_err(|error| {
            let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            io::Error::other(format!("the inmate could not be booted with its job: {}{hint}", error.reason))
        })
    }

    fn stop(&self) -> io::Result<()> {
        self.heard.held.store(NOTHING, Ordering::Release);
        let running = cells::named(&self.cell, &*self.jailhouse.system);
        if !running.is_some_and(|cell| cell.state != State::ShutDown) {
            return Ok(());
        }
        self.heard.boots(true);
        if let Err(refused) = self.jailhouse.run(&["cell", "shutdown", &self.cell]) {
            self.heard.boots(false);
            return Err(io::Error::other(refused.said));
        }
        // The rest of its console's output would otherwise be taken for output after its end.
        self.heard.greeted.store(false, Ordering::Release);
        let measured_ns = self.heard.reached.load(Ordering::Acquire);
        let done = Done { end: End::Stopped, reason: None, measured_ns, load_rounds: Vec::new(), jump_ns: 0 };
        let words = Encoder::new().encode(&FromProbe::Done(done))?;
        // If the reader has gone, it does not wait for this. If the queue is full, this is lost, and the stream ends
        // with its cell.
        let _ = self.into.try_send(Piece { bytes: words, ends: NOTHING });
        Ok(())
    }
}

impl Write for Mailbox {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for item in self.decoder.feed(bytes) {
            match item {
                Item::Message(job @ ToProbe::Job(_)) => self.boot(&job)?,
                Item::Message(ToProbe::Prove) => self.heard.held.store(CONTROL, Ordering::Release),
                Item::Message(ToProbe::Go) => self.heard.held.store(NOTHING, Ordering::Release),
                Item::Message(ToProbe::Stop) => self.stop()?,
                _ => {}
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tactus_model::message::Note;

    use super::*;

    const UART: &str = include_str!("../../../tests/fixtures/jailhouse/uart-linux-inmate.txt");

    fn note(text: &str) -> FromProbe {
        FromProbe::Note(Note::info(text))
    }

    fn read(bytes: &[u8]) -> Vec<Item<FromProbe>> {
        let mut decoder = Decoder::new();
        let mut items = decoder.feed(bytes);
        items.extend(decoder.finish());
        items
    }

    fn joined(pieces: Vec<Piece>) -> Vec<u8> {
        pieces.into_iter().flat_map(|piece| piece.bytes).collect()
    }

    #[test]
    fn what_a_ring_still_holds_of_an_earlier_probe_is_passed_over() {
        let mut earlier = Encoder::new();
        earlier.encode(&note("lost")).unwrap();
        let mut bytes = earlier.encode(&note("stale")).unwrap();
        bytes.extend(b"<missed 312 bytes of console log>\r\nStarted cell \"demo\"\r\n");
        bytes.extend(Encoder::new().encode(&note("fresh")).unwrap());
        let heard = Heard::default();
        let passed = Sorter::default().take(&bytes, &heard, None);
        assert_eq!(read(&joined(passed)), [Item::Message(note("fresh"))]);
        assert_eq!(heard.last_lines(), "<missed 312 bytes of console log>\nStarted cell \"demo\"");
    }

    #[test]
    fn a_crash_keeps_its_cause_among_the_last_lines() {
        let uart = include_str!("../../../tests/fixtures/jailhouse/uart-hypervisor-and-inmates.txt");
        let end = uart.find("Cell \"inmate-demo\" can be loaded\nStarted cell \"inmate-demo\"\nInitializing the GIC...\nInitializing the timer...\nTimer fired, jitter: 301935").unwrap();
        let heard = Heard::default();
        Sorter::default().take(&uart.as_bytes()[..end], &heard, None);
        let lines = heard.last_lines();
        for cause in ["Unhandled data read at 0x50000000(4)", "FATAL: unhandled trap", "Parking CPU 1"] {
            assert!(lines.contains(cause), "{lines}");
        }
    }

    #[test]
    fn a_kernel_that_panicked_is_known_until_the_next_begins() {
        let heard = Heard::default();
        let mut sorter = Sorter::default();
        let mut says = |line: &str| {
            sorter.take(format!("{line}\r\n").as_bytes(), &heard, None);
            heard.has_panicked()
        };
        assert!(!says("Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b"));
        assert!(says(
            "---[ end Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b ]---"
        ));
        assert!(!says("Started cell \"linux-demo\""));
    }

    #[test]
    fn frames_are_found_on_a_uart_that_everybody_writes_to() {
        let mut encoder = Encoder::new();
        let mut bytes = Vec::new();
        let long = "x".repeat(900);
        for (number, line) in UART.lines().enumerate() {
            bytes.extend(format!("{line}\r\n").into_bytes());
            if number % 100 == 0 {
                bytes.extend(encoder.encode(&note(&format!("{number}"))).unwrap());
                bytes.extend(encoder.encode(&note(&long)).unwrap());
            }
        }
        let heard = Heard::default();
        let mut sorter = Sorter::default();
        let passed = bytes.chunks(61).flat_map(|piece| sorter.take(piece, &heard, None)).collect();
        let items = read(&joined(passed));
        let messages = items.iter().filter(|item| matches!(item, Item::Message(_))).count();
        assert_eq!(messages, 2 * UART.lines().count().div_ceil(100));
        assert!(!items.iter().any(|item| matches!(item, Item::Lost(_))), "nothing was lost");
        assert!(heard.last_lines().ends_with("reboot: Power down"));
    }

    proptest! {
        #[test]
        fn no_console_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), cut in 1usize..50) {
            let heard = Heard::default();
            let mut sorter = Sorter::default();
            for piece in bytes.chunks(cut) {
                sorter.take(piece, &heard, None);
            }
            let clean = heard.last_lines().chars().all(|c| c == '\n' || !c.is_control());
            prop_assert!(clean);
        }
    }
}
