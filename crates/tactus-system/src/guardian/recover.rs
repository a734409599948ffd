//! After a power cut, or the death of a guardian: what the dead left behind is taken back.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tactus_model::undo::{Entry, Undo, marked, outstanding, undo};

use super::actions::SystemActions;
use super::journal::Journal;
use crate::{System, state_dir};

/// How long the guardian of a run that has just died may take.
const GUARDIAN: Duration = Duration::from_secs(20);

/// Takes back what dead runs left behind. Returns a sentence about each thing that was taken back,
/// or could not be. Runs that are alive are left alone.
#[must_use]
pub fn recover(system: &dyn System) -> Vec<String> {
    let journals = system.list(&state_dir(system)).unwrap_or_default();
    let journals = journals.into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    journals.flat_map(|path| recover_one(&path, system)).collect()
}

fn recover_one(path: &Path, system: &dyn System) -> Vec<String> {
    match undo_journal(path, system) {
        Ok(sentences) => sentences,
        // Its own guardian was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            vec![format!("the journal {} of a dead run could not be undone: {error}", path.display())]
        }
    }
}

fn undo_journal(path: &Path, system: &dyn System) -> io::Result<Vec<String>> {
    let until = Instant::now() + GUARDIAN;
    let Some(mut journal) = Journal::of_dead_run(path)? else { return Ok(Vec::new()) };
    while guarded(path, system) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let text = String::from_utf8_lossy(&system.read(path)?).into_owned();
    let mut sentences = Vec::new();
    let mut left = false;
    for (id, how) in outstanding(&text) {
        let idle = nothing_to_do(&how, system);
        match undo(&how, &SystemActions(system)) {
            Ok(()) => {
                journal.write(&Entry::Done { id })?;
                if !idle {
                    sentences.push(format!("an earlier run did not end well; undone by {how}"));
                }
            }
            Err(error) => {
                left = true;
                sentences.push(format!("an earlier run did not end well, and {how} failed: {error}"));
            }
        }
    }
    if !left {
        system.remove(path)?;
    }
    Ok(sentences)
}

/// Whether taking this back changes nothing, so that nobody need hear of it.
fn nothing_to_do(how: &Undo, system: &dyn System) -> bool {
    match how {
        Undo::KillMarked(id) => marked(id, &SystemActions(system)).is_ok_and(|alive| alive.is_empty()),
        Undo::Remove(path) | Undo::RemoveEmpty(path) | Undo::Unmount(path) => !system.exists(path),
        Undo::Write { path, value } => {
            system.text(&path.to_string_lossy()).is_some_and(|now| now.trim() == value.trim())
        }
        Undo::Where { there, .. } => !system.exists(there),
        Undo::Run(_) => false,
    }
}

/// Whether a guardian is still at work on this journal.
fn guarded(journal: &Path, system: &dyn System) -> bool {
    let journal: PathBuf = journal.into();
    let processes = system.list(Path::new("/proc")).unwrap_or_default();
    processes
        .iter()
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit()))
        .any(|process| {
            let line = system.read(&process.join("cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            words.get(1) == Some(&b"guardian".as_slice())
                && words.contains(&journal.as_os_str().as_encoded_bytes())
        })
}

#[cfg(test)]
mod tests {
    use tactus_model::undo::MARKER;

    use super::*;
    use crate::{Invocation, Real};

    #[test]
    fn what_a_dead_run_left_is_taken_back_and_a_live_one_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let id = format!("dead-{}", std::process::id());
        let leftover = dir.path().join("leftover");
        Real.make_dir(&leftover).unwrap();
        let value = dir.path().join("value");
        Real.write(&value, b"changed").unwrap();
        let mut child = Real.spawn(&Invocation::new(["sleep", "60"]).with_env((MARKER, &id))).unwrap();

        let dead = dir.path().join("dead.jsonl");
        let mut journal = Journal::create(&dead).unwrap();
        for (id, how) in (0..).zip([
            Undo::KillMarked(id.clone()),
            Undo::Remove(leftover.clone()),
            Undo::Write { path: value.clone(), value: "before".into() },
        ]) {
            journal.write(&Entry::Undo { id, how }).unwrap();
        }
        assert!(recover_one(&dead, &Real).is_empty(), "the run is alive");
        assert!(Real.exists(&leftover));

        drop(journal);
        let sentences = recover_one(&dead, &Real);
        assert_eq!(sentences.len(), 3, "{sentences:?}");
        assert!(!Real.exists(&leftover));
        assert_eq!(Real.read(&value).unwrap(), b"before");
        while child.try_wait().unwrap().is_none() {}
        assert!(!Real.exists(&dead));
    }

    #[test]
    fn a_cut_or_hostile_journal_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cut.jsonl");
        Real.write(&path, b"{\"undo\":{\"id\":0,\"how\":{\"remo\n\0\0garbage\n{\"undo\":").unwrap();
        assert!(recover_one(&path, &Real).is_empty());
        assert!(!Real.exists(&path));
    }
}
