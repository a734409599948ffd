//! Marks the cycles of a program, so that `tactus` can measure them: when each was due, when it began, when it ended.
//!
//! ```no_run
//! # fn work() {}
//! use tactus_application::{Application, sleep_until};
//! # fn main() -> std::io::Result<()> {
//! let period_ns = 1_000_000;
//! let mut application = Application::open("/dev/shm/control", period_ns)?;
//! let mut due = tactus_application::now();
//! loop {
//!     sleep_until(due);
//!     application.start(due);
//!     work();
//!     application.end();
//!     due += period_ns;
//! }
//! # }
//! ```
//!
//! Between two calls nothing waits, allocates or calls the system: a cycle costs two readings of the clock and a few
//! stores to memory that is already there. A reader cannot hold the program up: a full ring is overwritten, and the
//! reader counts the cycles it missed. `include/tactus.h` is the same for C and C++.
//!
//! The library touches one file: the one whose path the program gives it.
#![expect(clippy::disallowed_methods, reason = "it is a part of other people's programs: there is no door")]

pub mod layout;
mod sys;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

pub use sys::{now, sleep_until};

use layout::{CAPACITY, LEAST_CAPACITY, MOST_CAPACITY, RING_OFFSET, Record};
use sys::Mapping;

/// A program that marks its cycles. One thread may: it is neither cloned nor shared.
#[derive(Debug)]
pub struct Application {
    mapping: Mapping,
    written: u64,
    due: u64,
    start: u64,
    /// The file that is removed at the end, and by which it is known again.
    own: Option<(PathBuf, u64, u64)>,
}

impl Application {
    /// Makes the file at `path` anew and opens it, for cycles that are due every `period_ns` (0: they have no
    /// period). A reader finds the whole file or none; a file left by another program is replaced.
    ///
    /// # Errors
    /// Those of the file, above all `ENOSPC` when no memory is left for it.
    pub fn open(path: impl AsRef<Path>, period_ns: u64) -> io::Result<Self> {
        let path = path.as_ref();
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = File::options().read(true).write(true).create_new(true).mode(0o644).open(&beside)?;
        let opened = Self::within(&file, period_ns, CAPACITY).and_then(|mut opened| {
            let found = file.metadata()?;
            fs::rename(&beside, path)?;
            opened.own = Some((path.to_owned(), found.dev(), found.ino()));
            Ok(opened)
        });
        if opened.is_err() {
            let _ = fs::remove_file(&beside);
        }
        opened
    }

    /// The same in a file that is open already and empty, with a ring of `capacity` records, which is made a power of two
    /// from 64 to 1048576. The file is left to the caller.
    ///
    /// # Errors
    /// Those of its memory.
    pub fn within(file: &File, period_ns: u64, capacity: u64) -> io::Result<Self> {
        let capacity = capacity.clamp(LEAST_CAPACITY, MOST_CAPACITY).next_power_of_two();
        let records = usize::try_from(capacity).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let bytes = RING_OFFSET + records * size_of::<Record>();
        // Taken now: memory that is lacking would end the program in the middle of a cycle.
        match fallocate(file, FallocateFlags::empty(), 0, bytes as u64) {
            Err(Errno::OPNOTSUPP) => file.set_len(bytes as u64)?,
            other => other?,
        }
        let mapping = Mapping::new(file, capacity, bytes, period_ns)?;
        Ok(Self { mapping, written: 0, due: 0, start: 0, own: None })
    }

    /// A cycle begins that was due at `due`, CLOCK_MONOTONIC in ns; 0: it has no due time.
    #[inline]
    pub fn start(&mut self, due: u64) {
        self.due = due;
        self.start = now();
    }

    /// The cycle that began last ends.
    #[inline]
    pub fn end(&mut self) {
        self.mark(self.due, self.start, now());
    }

    /// Marks a whole cycle; times are CLOCK_MONOTONIC in ns, and `due` may be 0.
    #[inline]
    pub fn mark(&mut self, due: u64, start: u64, end: u64) {
        self.mapping.write(self.written, due, start, end);
        self.written += 1;
    }
}

impl Drop for Application {
    /// Says that nothing more comes, and removes the file where it is still this program's.
    fn drop(&mut self) {
        self.mapping.close();
        let Some((path, dev, ino)) = &self.own else { return };
        if fs::symlink_metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (*dev, *ino)) {
            let _ = fs::remove_file(path);
        }
    }
}
