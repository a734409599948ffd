//! Packed files: recognised by their first bytes, and unpacked as a stream. Memory and length of the unpacked
//! data are limited.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::ImportError;

/// Memory that a packed file may ask for, in bytes: `xz -9` asks for 65 MB, `zstd --ultra -22` for 128 MiB.
const MOST_MEMORY: u64 = 130 << 20;

/// Length of an unpacked file that is never suspicious, in bytes, and the largest ratio to its packed length
/// beyond that. A histogram of zeros of 512 CPUs has a ratio of 200.
const SLACK: u64 = 256 << 20;
const MOST_RATIO: u64 = 500;

/// Number of first bytes that tell it.
pub(super) const TELLING: usize = 6;

/// The packing of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Xz,
    Zstd,
    /// Another one: the command that unpacks it.
    Unread(&'static str),
}

impl Packing {
    /// The packing of a file with this beginning; `None` if it is not packed.
    pub fn of(first: &[u8]) -> Option<Self> {
        Some(match first {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Unread("bzip2 -dc"),
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Unread("lz4 -dc"),
            [b'L', b'Z', b'I', b'P', ..] => Self::Unread("lzip -dc"),
            [b'P', b'K', 3, 4, ..] => Self::Unread("unzip -p"),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c] => Self::Unread("7z x -so"),
            _ => return None,
        })
    }

    /// The unpacked bytes of `input`.
    pub fn unpack<'a>(self, input: impl Read + 'a) -> Result<Box<dyn Read + 'a>, ImportError> {
        let taken = Rc::new(Cell::new(0));
        let input = BufReader::with_capacity(64 << 10, Counted { from: input, taken: Rc::clone(&taken) });
        let from: Box<dyn Read + 'a> = match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(input)),
            Self::Xz => {
                let stream = Stream::new_stream_decoder(MOST_MEMORY, CONCATENATED);
                let stream = stream.map_err(|error| ImportError::whole(error.to_string()))?;
                Box::new(XzDecoder::new_stream(input, stream))
            }
            Self::Zstd => Box::new(Zstd::new(input)),
            Self::Unread(command) => {
                let error = ImportError::whole("it is packed in a way that tactus does not read");
                return Err(error.hint(format!("{command} FILE | tactus convert -")));
            }
        };
        Ok(Box::new(Bounded { from, taken, made: 0 }))
    }
}

/// Counts what is taken of a packed file.
struct Counted<R> {
    from: R,
    taken: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.taken.set(self.taken.get().saturating_add(u64::try_from(read).unwrap_or(u64::MAX)));
        Ok(read)
    }
}

/// Gives up what becomes longer than any measurement.
struct Bounded<R> {
    from: R,
    taken: Rc<Cell<u64>>,
    made: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into).map_err(|error| {
            io::Error::new(error.kind(), format!("from here on it cannot be unpacked: {error}"))
        })?;
        self.made = self.made.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        let most = SLACK.saturating_add(self.taken.get().saturating_mul(MOST_RATIO));
        if self.made > most {
            let words = format!(
                "it is {} bytes long here, unpacked from {}: no measurement compresses that well",
                self.made,
                self.taken.get()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        Ok(read)
    }
}

/// Frames of zstd one after the other, each with its checksum; skippable frames are skipped.
struct Zstd<R> {
    from: R,
    decoder: FrameDecoder,
    /// Whether a frame has begun and not ended.
    open: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(from: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MOST_MEMORY);
        Self { from, decoder, open: false }
    }

    /// Begins the next frame; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.from.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.from) {
                Ok(()) => {
                    self.open = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut self.from.by_ref().take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
        }
        Ok(false)
    }

    fn end(&mut self) -> io::Result<()> {
        self.open = false;
        let (written, found) =
            (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
        match written.is_some() && written != found {
            true => Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum differs")),
            false => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.open && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let decoded =
                    self.decoder.decode_blocks(&mut self.from, BlockDecodingStrategy::UptoBlocks(1));
                decoded.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            }
            let read = self.decoder.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            self.end()?;
        }
    }
}

#[cfg(test)]
mod tests;
