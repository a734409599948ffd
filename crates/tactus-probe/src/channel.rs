//! The byte stream to the host side: messages in, messages out.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tactus_model::message::{FromProbe, Note, ToProbe};
use tactus_model::wire::{Decoder, Encoder, Item};

/// The most notes about lines that are no message: a noisy channel must not fill itself.
const MOST_COMPLAINTS: u32 = 20;
/// Characters of such a line that are shown.
const SHOWN: usize = 120;

/// What came in.
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
    /// Where every frame is a record of the kernel's log: how many bytes of them a second.
    records: Option<u32>,
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
        }
    }

    /// The same into the kernel's log, as records that reach every console, and no more than so many
    /// bytes a second: whoever reads a small ring must be able to follow.
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
        let Some(rate) = self.records else { return self.to.write_all(&bytes) };
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

    /// The next message, waiting at most `patience_ns` (`None`: until there is one).
    ///
    /// # Errors
    /// When the stream is broken.
    pub fn next(&mut self, patience_ns: Option<u64>) -> io::Result<Incoming> {
        if let Some(message) = self.waiting.pop_front() {
            return Ok(Incoming::Message(message));
        }
        let mut limit = patience_ns;
        loop {
            if !self.readable(limit)? {
                return Ok(Incoming::Nothing);
            }
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
            if let Some(message) = self.waiting.pop_front() {
                return Ok(Incoming::Message(message));
            }
            // Whoever waits for a time, not for a message, is not kept from it by garbage.
            limit = patience_ns.map(|_| 0);
        }
    }

    fn readable(&self, patience_ns: Option<u64>) -> io::Result<bool> {
        let limit = patience_ns.map(|ns| Timespec {
            tv_sec: (ns / 1_000_000_000).cast_signed(),
            tv_nsec: (ns % 1_000_000_000).cast_signed(),
        });
        let mut descriptors = [PollFd::from_borrowed_fd(self.from.as_fd(), PollFlags::IN)];
        match poll(&mut descriptors, limit.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn take(&mut self, item: Item<ToProbe>) -> io::Result<()> {
        let what = match item {
            Item::Message(message) => {
                self.waiting.push_back(message);
                return Ok(());
            }
            Item::Lost(count) => format!("{count} frames to the probe were lost"),
            Item::Foreign(line) => format!("a line to the probe is no frame: {}", shown(&line)),
            Item::Unknown(text) => format!("a message to the probe is not understood: {}", shown(&text)),
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
