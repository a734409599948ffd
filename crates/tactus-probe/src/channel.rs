//! The byte stream to the host side: messages in, messages out.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tactus_measure::card::pci::DEVICES;
use tactus_measure::clock_page;
use tactus_model::message::{ClockAnswer, FromProbe, Note, ToProbe};
use tactus_model::wire::{Decoder, Encoder, Item};

use crate::rpc::RpcServer;
use crate::sys;

/// Limit of the notes about lines that are not a message: a noisy channel must not fill itself.
const MOST_COMPLAINTS: u32 = 20;
/// On a narrow channel: how often something is written, in ns, and the most bytes at once.
const PACE_NS: u64 = 20_000_000;
const MOST_AT_ONCE: usize = 2048;
/// Characters of such a line that are shown.
const SHOWN: usize = 120;

/// Why the conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The host side said so.
    Quit,
    /// The stream ended.
    Ended,
    /// Somebody else has taken the line.
    Greeted,
}

/// The input of a channel.
#[derive(Debug)]
pub enum Incoming {
    /// A message.
    Message(ToProbe),
    /// Nothing until the time was over.
    Nothing,
    /// The stream has ended.
    Ended,
}

/// The stream.
pub struct Channel {
    from: File,
    to: File,
    decoder: Decoder,
    encoder: Encoder,
    waiting: VecDeque<ToProbe>,
    complaints: u32,
    /// Limit of the bytes a second, if every frame is a record of the kernel's log.
    records: Option<u32>,
    narrow: Option<Narrow>,
    /// When anything was last heard, CLOCK_MONOTONIC in ns.
    heard: u64,
    /// How long nothing may be heard while a job runs, in ns: where the stream has no end to be noticed.
    patience: u64,
    /// When the last measurement began, CLOCK_MONOTONIC in ns.
    began: u64,
    rpc: RpcServer,
}

/// The data that a channel of few bytes a second still has to send. The measurement does not wait for it.
struct Narrow {
    per_second: u64,
    outbox: VecDeque<u8>,
    written: u64,
}

impl Channel {
    /// A stream of two descriptors.
    pub fn new(from: OwnedFd, to: OwnedFd) -> Self {
        Self {
            from: File::from(from),
            to: File::from(to),
            decoder: Decoder::new(),
            encoder: Encoder::new(),
            waiting: VecDeque::new(),
            complaints: 0,
            records: None,
            narrow: None,
            heard: sys::now(),
            patience: u64::MAX,
            began: 0,
            rpc: RpcServer::default(),
        }
    }

    /// Ends jobs after this long without a message, in ns.
    pub const fn expect_signs_of_life(&mut self, patience: u64) {
        self.patience = patience;
    }

    /// Records the beginning of a measurement.
    pub const fn begins(&mut self, began: u64) {
        self.began = began;
    }

    /// Limits the output to this many bytes a second from now on.
    pub fn narrow(&mut self, per_second: u64) {
        let outbox = self.narrow.take().map(|narrow| narrow.outbox).unwrap_or_default();
        self.narrow = Some(Narrow { per_second, outbox, written: sys::now() });
    }

    /// Whether it carries few bytes a second.
    pub const fn is_narrow(&self) -> bool {
        self.narrow.is_some()
    }

    /// Whether something waits to be written: more would only wait behind it.
    pub fn is_busy(&self) -> bool {
        self.narrow.as_ref().is_some_and(|narrow| !narrow.outbox.is_empty())
    }

    /// Whether the other end seems to be gone.
    pub fn is_deserted(&self) -> bool {
        sys::now().saturating_sub(self.heard) > self.patience
    }

    /// Begins again with frame 0: the new listener did not hear the earlier messages.
    pub fn begin_anew(&mut self) -> io::Result<()> {
        self.encoder = Encoder::new();
        if let Some(narrow) = &mut self.narrow {
            narrow.outbox.clear();
        }
        // Half a frame may stand there.
        self.write(b"\n")
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.narrow {
            Some(narrow) => narrow.outbox.extend(bytes),
            None => return self.to.write_all(bytes),
        }
        Ok(())
    }

    /// Writes the waiting bytes that are due.
    fn pump(&mut self) -> io::Result<()> {
        let Some(narrow) = &mut self.narrow else { return Ok(()) };
        let now = sys::now();
        let due = narrow.per_second.saturating_mul(now.saturating_sub(narrow.written)) / 1_000_000_000;
        // Time in which nothing was to be said is not made up for.
        let due = usize::try_from(due).unwrap_or(MOST_AT_ONCE).min(MOST_AT_ONCE).min(narrow.outbox.len());
        if narrow.outbox.is_empty() {
            narrow.written = now;
            return Ok(());
        }
        let limit = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut descriptors = [PollFd::from_borrowed_fd(self.to.as_fd(), PollFlags::OUT)];
        if due == 0 || !matches!(poll(&mut descriptors, Some(&limit)), Ok(1..)) {
            return Ok(());
        }
        narrow.written = now;
        let bytes = &narrow.outbox.make_contiguous()[..due];
        self.to.write_all(bytes)?;
        narrow.outbox.drain(..due);
        Ok(())
    }

    /// The same into the kernel's log, as records that reach every console, limited to this many bytes a second: the
    /// reader of a small ring must be able to follow.
    pub fn into_log(mut self, bytes_per_second: u32) -> Self {
        self.records = Some(bytes_per_second.max(1));
        self
    }

    /// Says something.
    ///
    /// # Errors
    /// When the stream is broken.
    pub fn say(&mut self, message: &FromProbe) -> io::Result<()> {
        let bytes = self.encoder.encode(message)?;
        let Some(rate) = self.records else { return self.write(&bytes) };
        for frame in bytes.split_inclusive(|byte| *byte == b'\n') {
            // The highest level: it is shown where all others are silenced.
            self.to.write_all(&[b"<0>", frame].concat())?;
            let length = u64::try_from(frame.len()).unwrap_or(0);
            std::thread::sleep(Duration::from_nanos(length * 1_000_000_000 / u64::from(rate)));
        }
        Ok(())
    }

    /// Says a note.
    ///
    /// # Errors
    /// When the stream is broken.
    pub fn note(&mut self, note: Note) -> io::Result<()> {
        self.say(&FromProbe::Note(note))
    }

    /// The next message, waiting at most `patience_ns` (`None`: until there is one). It also carries out the host
    /// side's calls to this system meanwhile.
    ///
    /// # Errors
    /// When the stream is broken.
    pub fn next(&mut self, patience_ns: Option<u64>) -> io::Result<Incoming> {
        let until = patience_ns.map(|patience| sys::now().saturating_add(patience));
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(Incoming::Message(message));
            }
            self.pump()?;
            // Garbage and children must not delay a caller that waits for a time rather than a message.
            let left = until.map(|until| until.saturating_sub(sys::now()));
            let busy = self.is_busy() && left != Some(0);
            let limit = if busy { Some(left.unwrap_or(PACE_NS).min(PACE_NS)) } else { left };
            let (ready, interrupted) = self.wait(limit)?;
            self.turn()?;
            if ready {
                self.heard = sys::now();
                let mut buffer = [0; 4096];
                let length = match self.from.read(&mut buffer) {
                    Ok(0) => return Ok(Incoming::Ended),
                    Ok(length) => length,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                for item in self.decoder.feed(&buffer[..length]) {
                    self.take(item)?;
                }
            } else if interrupted && !busy {
                return Ok(Incoming::Nothing);
            }
            if left == Some(0) && self.waiting.is_empty() {
                return Ok(Incoming::Nothing);
            }
        }
    }

    /// Waits until something can be read, a child wants attention, or the time is over. Returns whether
    /// there is something to read, and whether a signal came.
    fn wait(&self, patience_ns: Option<u64>) -> io::Result<(bool, bool)> {
        let limit = patience_ns.into_iter().chain(self.rpc.patience()).min().map(|ns| Timespec {
            tv_sec: (ns / 1_000_000_000).cast_signed(),
            tv_nsec: (ns % 1_000_000_000).cast_signed(),
        });
        let mut descriptors = vec![PollFd::from_borrowed_fd(self.from.as_fd(), PollFlags::IN)];
        self.rpc.descriptors(&mut descriptors);
        match poll(&mut descriptors, limit.as_ref()) {
            Ok(_) => Ok((!descriptors[0].revents().is_empty(), false)),
            Err(rustix::io::Errno::INTR) => Ok((false, true)),
            Err(error) => Err(error.into()),
        }
    }

    fn turn(&mut self) -> io::Result<()> {
        let mut said = Vec::new();
        self.rpc.turn(&mut said);
        said.iter().try_for_each(|message| self.say(message))
    }

    /// Reaps children without a waiting parent: PID 1 inherits them all, and so does a probe that has started programs.
    /// Must not run while a job has workers.
    ///
    /// # Errors
    /// When the stream is broken.
    pub fn reap(&mut self) -> io::Result<()> {
        let mut said = Vec::new();
        self.rpc.reap(&mut said);
        said.iter().try_for_each(|message| self.say(message))
    }

    fn take(&mut self, item: Item<ToProbe>) -> io::Result<()> {
        let what = match item {
            Item::Message(ToProbe::Call(call)) => {
                return self.rpc.serve(call).map_or(Ok(()), |answer| self.say(&FromProbe::Answer(answer)));
            }
            Item::Message(ToProbe::Clock(question)) => {
                let (n, heard_ns, began_ns) = (question.n, self.heard, self.began);
                // Without such a page there is no other way to answer, and this message is the whole answer.
                if question.page {
                    let _ = clock_page::show(Path::new(DEVICES));
                }
                return self.say(&FromProbe::Clock(ClockAnswer {
                    n,
                    heard_ns,
                    said_ns: sys::now(),
                    began_ns,
                }));
            }
            Item::Message(message) => {
                self.waiting.push_back(message);
                return Ok(());
            }
            Item::Lost(count) => format!("{count} frames to the probe were lost"),
            Item::Foreign(line) => format!("a line to the probe is not a frame: {}", shown(&line)),
            Item::Unknown(text) => format!("a message to the probe was not understood: {}", shown(&text)),
        };
        self.complaints += 1;
        if self.complaints > MOST_COMPLAINTS {
            return Ok(());
        }
        self.note(Note::obstacle(what, "use a probe and a tactus of the same version"))
    }
}

fn shown(text: &str) -> String {
    let short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() { short + "..." } else { short }
}
