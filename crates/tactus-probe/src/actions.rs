//! The operations that undoing needs from the probe's system.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, geteuid, kill_process, pidfd_send_signal};
use tactus_model::process_files;
use tactus_model::undo::{self, Actions, Files, MARKER, Owned, is_believed, remove};

use crate::sys;

/// Time between two looks at a command.
const POLL: Duration = Duration::from_millis(10);

/// The system that this process is on.
pub struct LocalSystem;

impl Files for LocalSystem {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn mountinfo(&self) -> io::Result<Vec<u8>> {
        fs::read("/proc/self/mountinfo")
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        Ok(fs::symlink_metadata(path)?.is_dir())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn unmount(&self, path: &Path) -> io::Result<()> {
        Ok(unmount(path, UnmountFlags::DETACH)?)
    }
}

impl Actions for LocalSystem {
    fn remove(&self, path: &Path) -> io::Result<()> {
        remove(path, self)
    }

    fn remove_empty(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn unmount(&self, path: &Path) -> io::Result<()> {
        Files::unmount(self, path)
    }

    fn write(&self, path: &Path, value: &[u8]) -> io::Result<()> {
        OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value)
    }

    fn run(&self, words: &[String], limit: Duration) -> io::Result<()> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut child = Command::new(program)
            .args(arguments)
            .env_remove(MARKER)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let until = self.now() + limit;
        while child.try_wait()?.is_none() {
            if self.now() >= until {
                let _ = child.kill();
                let _ = child.wait();
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.pause(POLL);
        }
        Ok(())
    }

    fn is_believed(&self, path: &Path) -> io::Result<()> {
        is_believed(&fs::canonicalize(path)?, geteuid().as_raw(), |step| {
            let found = fs::symlink_metadata(step)?;
            Ok(Owned { user: found.uid(), mode: found.mode(), links: found.nlink() })
        })
    }

    fn processes(&self) -> io::Result<Vec<u32>> {
        let me = std::process::id();
        let pids =
            fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Ok(pids.filter(|pid| *pid != me).collect())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        process_files::read(path)
    }

    fn beginning(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        process_files::beginning(path, most)
    }

    fn hold(&self, pid: u32) -> io::Result<Box<dyn undo::Held + '_>> {
        let number = Pid::from_raw(pid.cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Box::new(Held { number, directory: fs::File::open(format!("/proc/{pid}"))? }))
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(sys::now())
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// A process, held by its directory in `/proc`. The files below that directory never belong to a later process with the
/// same number.
struct Held {
    number: Pid,
    directory: fs::File,
}

impl undo::Held for Held {
    fn kill(&self) -> io::Result<()> {
        match pidfd_send_signal(&self.directory, Signal::KILL) {
            Ok(()) => Ok(()),
            Err(Errno::SRCH) => Err(Errno::SRCH.into()),
            // Before Linux 5.1, or where a filter refuses it: the process is looked at once more, and its number meant at
            // once.
            Err(_) => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                openat(&self.directory, "stat", flags, Mode::empty())?;
                Ok(kill_process(self.number, Signal::KILL)?)
            }
        }
    }
}

#[cfg(test)]
const fn here() -> LocalSystem {
    LocalSystem
}

#[cfg(test)]
#[path = "../../tactus-model/tests/undo/mod.rs"]
mod on_this_machine;
