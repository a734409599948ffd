//! One writer at a time in a directory, by a lock on a file in it. The kernel releases the lock when its holder ends.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, Mode, fchmod, flock};
use rustix::io::Errno;

use crate::Directory;

/// Held while a directory is written to.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock on the file of this name, which is made if needed; `None` if the lock is taken.
    ///
    /// # Errors
    /// When the file cannot be opened, or the file system has no locks.
    pub fn take(dir: &Directory, name: &str) -> io::Result<Option<Self>> {
        let file = dir.append(name)?;
        // A user who may read the file could lock it and keep all others out.
        fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_learns_that_there_is_one_and_the_lock_ends_with_its_holder() {
        let there = tempfile::tempdir().unwrap();
        let dir = Directory::open(there.path()).unwrap();
        let first = FileLock::take(&dir, ".lock").unwrap().unwrap();
        assert!(FileLock::take(&dir, ".lock").unwrap().is_none());
        drop(first);
        let mode = rustix::fs::stat(there.path().join(".lock")).unwrap().st_mode;
        assert_eq!(mode & 0o777, 0o600, "who cannot open it cannot lock it");
        assert!(FileLock::take(&dir, ".lock").unwrap().is_some());
    }
}
