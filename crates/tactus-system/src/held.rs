//! A process that is killed by a handle, never by its number alone.
#![expect(clippy::disallowed_methods, reason = "this is the door")]

use std::fs::File;
use std::io;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, pidfd_send_signal};
use tactus_model::undo;

use super::log::{self, HERE};

/// A process, held by its directory in `/proc`. The files below that directory never belong to a later process with the
/// same number.
pub struct Held {
    number: Pid,
    directory: File,
}

impl Held {
    /// The process that has this number now.
    ///
    /// # Errors
    /// When no process has this number.
    pub fn of(number: Pid) -> io::Result<Self> {
        let directory = File::open(format!("/proc/{}", number.as_raw_nonzero()))?;
        Ok(Self { number, directory })
    }
}

impl undo::Held for Held {
    fn kill(&self) -> io::Result<()> {
        let killed = match pidfd_send_signal(&self.directory, Signal::KILL) {
            Ok(()) => Ok(()),
            Err(Errno::SRCH) => Err(Errno::SRCH),
            // Before Linux 5.1, or where a filter refuses it: the process is looked at once more, and its number meant at
            // once.
            Err(_) => openat(&self.directory, "stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .and_then(|_| kill_process(self.number, Signal::KILL)),
        };
        let what = format_args!("killed process {}", self.number.as_raw_nonzero());
        log::changed(HERE, what, killed.map_err(io::Error::from))
    }
}
