//! The journal of a run: a file that is locked while the run is alive.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use tactus_model::undo::Entry;

use crate::own;

/// An open journal. Every line is on disk before `write` returns.
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Makes a journal that only this user may read, and locks it.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = own::open(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { file, path: path.into() })
    }

    /// Opens and locks the journal of a run that is dead; `None` when the run is alive.
    pub fn of_dead_run(path: &Path) -> io::Result<Option<Self>> {
        let file = own::open(path, OFlags::WRONLY | OFlags::APPEND)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { file, path: path.into() })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an entry down for good, and returns its line.
    pub fn write(&mut self, entry: &Entry) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_locked_as_long_as_its_run_lives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j.jsonl");
        let mut alive = Journal::create(&path).unwrap();
        alive.write(&Entry::Done { id: 1 }).unwrap();
        assert!(Journal::of_dead_run(&path).unwrap().is_none());
        assert!(Journal::create(&path).is_err(), "two runs never share a journal");
        drop(alive);
        assert!(Journal::of_dead_run(&path).unwrap().is_some());
    }
}
