//! What a run must take back, written down before it is done.
//!
//! A run appends [`Entry`] lines to a journal file and sends the same lines to its guardian. An
//! action's `undo` is written before the action; `done` after it was taken back. Whoever finds an
//! entry that is not done (the guardian when the run's pipe closes, the next command after a power
//! cut) undoes it, newest first.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Name of the environment variable that marks every process of a run.
pub const MARKER: &str = "TACTUS_RUN";

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Entry {
    /// This is about to be needed.
    Undo {
        /// Number within the journal.
        id: u64,
        /// How to take it back.
        how: Undo,
    },
    /// This has been taken back.
    Done {
        /// Number within the journal.
        id: u64,
    },
}

/// How something is taken back. Each is harmless when there is nothing to undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// Kill every process whose environment has [`MARKER`] with this value.
    KillMarked(String),
    /// Run a command; its outcome is ignored.
    Run(Vec<String>),
    /// Remove a file or a whole directory of ours.
    Remove(PathBuf),
    /// Remove an empty directory (a cgroup).
    RemoveEmpty(PathBuf),
    /// Detach a mount.
    Unmount(PathBuf),
    /// Write a former value back.
    Write {
        /// The file.
        path: PathBuf,
        /// What it said.
        value: String,
    },
}

/// The entries that are not done, newest first. Lines that cannot be read (a cut last line) are
/// passed over.
#[must_use]
pub fn outstanding(journal: &str) -> Vec<(u64, Undo)> {
    let mut open: Vec<(u64, Undo)> = Vec::new();
    for line in journal.lines() {
        match serde_json::from_str(line) {
            Ok(Entry::Undo { id, how }) => open.push((id, how)),
            Ok(Entry::Done { id }) => open.retain(|(other, _)| *other != id),
            Err(_) => {}
        }
    }
    open.reverse();
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_done_is_undone_newest_first_even_after_a_cut() {
        let journal = concat!(
            r#"{"undo":{"id":0,"how":{"remove":"/tmp/a"}}}"#,
            "\n",
            r#"{"undo":{"id":1,"how":{"unmount":"/tmp/b"}}}"#,
            "\n",
            r#"{"undo":{"id":2,"how":{"remove":"/tmp/c"}}}"#,
            "\n",
            r#"{"done":{"id":1}}"#,
            "\n",
            r#"{"undo":{"id":3,"ho"#,
        );
        assert_eq!(
            outstanding(journal),
            [(2, Undo::Remove("/tmp/c".into())), (0, Undo::Remove("/tmp/a".into()))]
        );
    }
}
