//! The shared file as its reader sees it. It is opened with care. It is read by calls that fail if the file becomes
//! shorter: a mapping would end the probe with SIGBUS.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};

use rustix::fs::{FileType, Mode, OFlags, fstat, fstatfs, open};
use tactus_application::layout::RING_OFFSET;

use super::cycles::{Asked, Cycles};
use super::header::{self, BYTES, RECORD, Shape};
use crate::reading::Marked;
use crate::sys;

/// Records that are read at once.
const AT_ONCE: u64 = 1 << 10;
/// No program marks faster than this, in ns a cycle: the clock alone takes longer.
const FASTEST_NS: u64 = 10;
/// File systems that share no memory, or that may block a reader for ever (statfs(2)).
const FAR: [(u64, &str); 5] = [
    (0x6573_5546, "FUSE"),
    (0x6969, "NFS"),
    (0x0102_1997, "9p"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
];

/// A file that an application marks its cycles in.
#[derive(Debug)]
pub struct Source {
    file: File,
    shape: Shape,
    /// Records that were written when it was looked at last, and when that was.
    seen: (u64, u64),
}

/// The result of a look at the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Records that are new.
    pub new: u64,
    /// Its owner has closed it.
    pub closed: bool,
}

impl Source {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// The reason why the file is not usable.
    pub fn open(path: &str) -> Result<Self, String> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Opening a device may have effects: the type of the file is checked first.
        let found = open(path, flags, Mode::empty()).map_err(|error| match error {
            rustix::io::Errno::NOENT => "is not there".to_owned(),
            other => format!("cannot be examined: {other}"),
        })?;
        let stat = fstat(&found).map_err(|error| format!("cannot be examined: {error}"))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err("is a link, which is not followed".into()),
            _ => return Err("is not a file".into()),
        }
        let own = std::os::fd::AsRawFd::as_raw_fd(&found);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = open(format!("/proc/self/fd/{own}"), flags, Mode::empty())
            .map_err(|error| format!("cannot be read: {error}"))?;
        let kind = fstatfs(&file).map_or(0, |found| u64::try_from(found.f_type).unwrap_or(0) & 0xffff_ffff);
        if let Some((_, name)) = FAR.iter().find(|(far, _)| *far == kind) {
            return Err(format!("is on a file system ({name}) that cannot share memory"));
        }
        Self::of(File::from(file))
    }

    /// The same of a file that is open.
    ///
    /// # Errors
    /// The reason why the file is not usable.
    pub fn of(file: File) -> Result<Self, String> {
        let length = file.metadata().map_err(|error| format!("cannot be examined: {error}"))?.len();
        let header = read_header(&file)?;
        let shape = Shape::read(&header, length)?;
        Ok(Self { file, shape, seen: (header::written(&header), sys::now()) })
    }

    /// The contents of its header.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Cycles from now on, whose due times lie in this span.
    ///
    /// # Errors
    /// As of [`Self::read`].
    pub fn begin(&mut self, asked: Asked, span: (u64, u64)) -> Result<Cycles, String> {
        let (written, _) = self.look()?;
        Ok(Cycles::after(written, asked, span))
    }

    /// Reads new records.
    ///
    /// # Errors
    /// The reason why the file can no longer be read.
    pub fn read(&mut self, cycles: &mut Cycles, each: &mut dyn FnMut(Marked)) -> Result<Seen, String> {
        let (written, closed) = self.look()?;
        let new = written.saturating_add(1).saturating_sub(cycles.next());
        let capacity = self.shape.capacity;
        // A reader that fell behind continues in the middle of the ring, away from the writer's position.
        if new > capacity {
            cycles.skip_to(written - capacity / 2 + 1, each);
        }
        let mut bytes = [0; 8 * RECORD];
        let mut room = Vec::new();
        while cycles.next() <= written {
            let place = (cycles.next() - 1) % capacity;
            let count = (written + 1 - cycles.next()).min(capacity - place).min(AT_ONCE);
            let length = usize::try_from(count).unwrap_or(0) * RECORD;
            let part = if length <= bytes.len() {
                &mut bytes[..length]
            } else {
                room.resize(length, 0);
                &mut room[..]
            };
            let at = RING_OFFSET as u64 + place * RECORD as u64;
            self.file.read_exact_at(part, at).map_err(|error| became_shorter(&error))?;
            // The records were read before the number that is read next.
            fence(Ordering::Acquire);
            let (after, _) = self.look()?;
            // The record that is written next may be half there.
            let whole_from = after.saturating_add(2).saturating_sub(capacity);
            cycles.take(part, whole_from, sys::now(), each);
        }
        Ok(Seen { new, closed })
    }

    /// How many records were written, and whether no more will be.
    fn look(&mut self) -> Result<(u64, bool), String> {
        let header = read_header(&self.file)?;
        fence(Ordering::Acquire);
        let (written, now) = (header::written(&header), sys::now());
        let (before, then) = self.seen;
        if written < before {
            return Err(format!("counts {written} cycles, but had {before}"));
        }
        let most = (now - then) / FASTEST_NS + self.shape.capacity;
        if written - before > most {
            return Err(format!(
                "counts {} cycles more than {} ns before, which no program can mark in that time",
                written - before,
                now - then
            ));
        }
        self.seen = (written, now);
        Ok((written, header::is_closed(&header)))
    }
}

fn read_header(file: &File) -> Result<[u8; BYTES], String> {
    let mut header = [0; BYTES];
    file.read_exact_at(&mut header, 0).map_err(|error| became_shorter(&error))?;
    Ok(header)
}

fn became_shorter(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "ends before its ring does".into(),
        _ => format!("cannot be read: {error}"),
    }
}
