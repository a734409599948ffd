//! The operations of a system that undoing needs, and those of its errors that mean that nothing is left to revert.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

/// The operations that undoing needs from its system.
pub trait Actions {
    /// Removes a file or a whole directory, as [`remove`] does.
    ///
    /// # Errors
    /// Those of the file system. Here and below, `NotFound` says that there is nothing to revert.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory if it is empty.
    ///
    /// # Errors
    /// Those of rmdir(2).
    fn remove_empty(&self, path: &Path) -> io::Result<()>;
    /// Detaches a mount.
    ///
    /// # Errors
    /// Those of umount(2).
    fn unmount(&self, path: &Path) -> io::Result<()>;
    /// Writes a file that exists; makes none.
    ///
    /// # Errors
    /// Those of the file system.
    fn write(&self, path: &Path, value: &[u8]) -> io::Result<()>;
    /// Runs a command without the mark of a run, to its end or for at most `limit`; how it ends does not
    /// matter.
    ///
    /// # Errors
    /// When it cannot be started, or `TimedOut` when it was killed.
    fn run(&self, words: &[String], limit: Duration) -> io::Result<()>;
    /// Checks that only root and this user can have made the file, and can change it.
    ///
    /// # Errors
    /// Those of the file system; `PermissionDenied` when another user could.
    fn is_believed(&self, path: &Path) -> io::Result<()>;
    /// The system's processes, without this one.
    ///
    /// # Errors
    /// When they are not known.
    fn processes(&self) -> io::Result<Vec<u32>>;
    /// The bytes of a file; of one of another process the beginning ([`process_files::read`](crate::process_files::read)).
    ///
    /// # Errors
    /// Those of the file system.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The beginning of a file, up to `most` bytes.
    ///
    /// # Errors
    /// Those of the file system.
    fn beginning(&self, path: &Path, most: u64) -> io::Result<Vec<u8>>;
    /// Holds the process that has this number now.
    ///
    /// # Errors
    /// When no process has this number.
    fn hold(&self, pid: u32) -> io::Result<Box<dyn Held + '_>>;
    /// The time since a fixed moment.
    fn now(&self) -> Duration;
    /// Waits.
    fn pause(&self, time: Duration);
}

/// A process that was found. Actions on it never reach a later process with the same number.
pub trait Held {
    /// Kills it, without waiting for its end.
    ///
    /// # Errors
    /// Those of kill(2), and when it has ended.
    fn kill(&self) -> io::Result<()>;
}

/// A missing file need not be reverted.
pub(super) fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// A path that is not a mount, or no longer one, need not be detached.
pub(super) fn no_mount(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        result => gone(result),
    }
}
