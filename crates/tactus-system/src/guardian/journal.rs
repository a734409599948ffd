//! The journal of a run: a file that is locked while the run is alive.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the door: the journal is begun before there is anything behind it"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use tactus_model::undo::Entry;

/// An open journal. Every line is on disk before `write` returns.
pub struct Journal {
    file: File,
}

impl Journal {
    /// Makes a journal that nobody else may read, and locks it.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { file })
    }

    /// Opens and locks the journal of a run that is dead; `None` when the run is alive.
    pub fn of_dead_run(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().append(true).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
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
