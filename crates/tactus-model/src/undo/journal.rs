//! The journal of a run: the changes that must be undone, and those that have been.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Tool;

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
    /// This has been undone.
    Done {
        /// Number within the journal.
        id: u64,
    },
}

/// How a change is undone. Each is harmless when there is nothing to undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// Kill every process whose environment has [`MARKER`] with this value.
    KillMarked(String),
    /// Let a program undo its change; its result is ignored.
    Tool(Tool),
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
        /// The former value.
        value: String,
    },
    /// All of this in this order, where a file is there that this run alone makes; else nothing was changed.
    Where {
        /// The file.
        there: PathBuf,
        /// The undos to run then.
        then: Vec<Undo>,
    },
}

/// Names the action of the undo: `removing /x`.
impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KillMarked(marker) => write!(f, "ending the processes of run {marker}"),
            Self::Tool(tool) => tool.fmt(f),
            Self::Remove(path) => write!(f, "removing {}", path.display()),
            Self::RemoveEmpty(path) => write!(f, "removing the empty directory {}", path.display()),
            Self::Unmount(path) => write!(f, "detaching the mount {}", path.display()),
            Self::Write { path, value } => write!(f, "writing `{}` back to {}", value.trim(), path.display()),
            Self::Where { there, .. } => write!(f, "reverting what {} shows", there.display()),
        }
    }
}

/// The entries that are not done, in the order in which they are undone. Lines that cannot be read (a
/// cut last line) are passed over; one that stands there twice counts once.
#[must_use]
pub fn outstanding(journal: &str) -> Vec<(u64, Undo)> {
    let mut open: Vec<(u64, Undo)> = Vec::new();
    for line in journal.lines() {
        match serde_json::from_str(line) {
            Ok(Entry::Undo { id, how }) => {
                if !open.iter().any(|(other, _)| *other == id) {
                    open.push((id, how));
                }
            }
            Ok(Entry::Done { id }) => open.retain(|(other, _)| *other != id),
            Err(_) => {}
        }
    }
    in_order(open)
}

/// Whole lines of a journal that this release cannot read and that are not marked as done: an earlier or a later
/// release wrote them.
#[must_use]
pub fn unknown(journal: &str) -> Vec<&str> {
    let whole = journal.rfind('\n').map_or("", |end| &journal[..end]);
    let number = |line: &str, verb: &str| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        line.get(verb)?.get("id")?.as_u64()
    };
    let done: Vec<u64> = whole.lines().filter_map(|line| number(line, "done")).collect();
    let left = |line: &&str| {
        serde_json::from_str::<Entry>(line).is_err()
            && number(line, "undo").is_some_and(|id| !done.contains(&id))
    };
    whole.lines().filter(left).collect()
}

/// The written undos in the order in which they are undone. Processes come first, because they may hold, or make again,
/// the files to be removed; then the newest first.
#[must_use]
pub fn in_order(written: Vec<(u64, Undo)>) -> Vec<(u64, Undo)> {
    let is_mark = |(_, how): &(u64, Undo)| matches!(how, Undo::KillMarked(_));
    let (mut marks, rest): (Vec<_>, Vec<_>) = written.into_iter().rev().partition(is_mark);
    marks.extend(rest);
    marks
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

    #[test]
    fn processes_end_before_anything_is_removed_and_what_is_written_twice_is_undone_once() {
        let line = |id, how: Undo| serde_json::to_string(&Entry::Undo { id, how }).unwrap() + "\n";
        let (mark, first) = (Undo::KillMarked("x".into()), Undo::Remove("/a".into()));
        let journal = line(0, mark.clone()) + &line(1, first.clone()) + &line(1, first.clone());
        assert_eq!(outstanding(&journal), [(0, mark), (1, first)]);
    }

    #[test]
    fn a_command_of_an_earlier_release_is_not_taken_back_and_not_passed_over() {
        let old = r#"{"undo":{"id":1,"how":{"run":["sh","-c","touch /x"]}}}"#;
        let done = r#"{"undo":{"id":2,"how":{"run":["true"]}}}"#;
        let journal =
            format!("{old}\n{done}\n{{\"done\":{{\"id\":2}}}}\ngarbage\n{{\"undo\":{{\"id\":3,\"how\"");
        assert_eq!(outstanding(&journal), []);
        assert_eq!(unknown(&journal), [old]);
    }

    #[test]
    fn what_is_done_is_said_in_words() {
        let said = |how: Undo| how.to_string();
        assert_eq!(said(Undo::Tool(Tool::BlockModule)), "unloading the module preemptirq_delay_test");
        assert_eq!(said(Undo::Write { path: "/p".into(), value: "7\n".into() }), "writing `7` back to /p");
    }
}
