//! Errors in taking changes back are in the bundle.
#![expect(clippy::disallowed_methods, reason = "these tests look at the machine from outside the door")]

use std::fs;
use std::path::PathBuf;

use tactus_model::message::{Note, NoteKind};
use tactus_model::undo::Undo;
use tactus_system::guardian::Promise;
use tactus_system::state_dir;

use super::*;

/// An environment that leaves something behind.
struct Untidy;

/// A directory that somebody else puts something into.
fn shared(guardian: &Guardian) -> PathBuf {
    std::env::temp_dir().join(format!("tactus-untidy-{}", guardian.id()))
}

impl Environment for Untidy {
    fn kind(&self) -> &'static str {
        "untidy"
    }

    fn about(&self) -> &'static str {
        "An environment that leaves something behind."
    }

    fn usable(&self, _: &dyn System) -> Usable {
        Usable::Yes { remark: None }
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let dir = shared(setting.guardian);
        let promise = setting.guardian.promise(Undo::RemoveEmpty(dir.clone())).expect("a guardian");
        fs::create_dir_all(dir.join("theirs")).expect("a directory");
        Ok(Box::new(Left { running: GOOD.start(setting)?, promise: Some(promise) }))
    }
}

struct Left {
    running: Box<dyn Running>,
    promise: Option<Promise>,
}

impl Running for Left {
    fn take_stream(&mut self) -> Option<Stream> {
        self.running.take_stream()
    }

    fn last_words(&mut self) -> Option<String> {
        None
    }

    fn stop(&mut self) {
        self.running.stop();
        drop(self.promise.take());
    }
}

#[test]
fn what_an_environment_and_the_guardian_leave_behind_is_a_note_of_the_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let mut resolved = resolved(&[("a", &GOOD)]);
    resolved.environments.get_mut("a").unwrap().kind = &Untidy;
    let guardian = Guardian::start(&Real).unwrap();
    let journal = state_dir(&Real).unwrap().join(format!("{}.jsonl", guardian.id()));
    let left = shared(&guardian);
    guardian.warnings().add(Note::info("said by nobody"));
    let (status, contents, events) =
        perform_guarded(guardian, writer(&resolved, dir.path()), &resolved, dir.path(), false);
    assert!(journal.exists(), "the next command tries again");
    for path in [left.join("theirs"), left.clone()] {
        fs::remove_dir(path).unwrap();
    }
    fs::remove_file(journal).unwrap();

    assert_eq!((status, contents.rows[0].result.status), (RunStatus::Complete, RowStatus::Measured));
    let what = format!("removing the empty directory {}", left.display());
    let of_environment = Some("a".to_owned());
    let [(None, nobody), (whose, at_once), (None, at_the_end)] = &contents.notes[..] else {
        panic!("{:?}", contents.notes)
    };
    assert_eq!(nobody.text, "said by nobody");
    assert_eq!(
        (whose, at_once.kind, at_the_end.kind),
        (&of_environment, NoteKind::Obstacle, NoteKind::Obstacle)
    );
    assert!(at_once.text.starts_with(&format!("{what} failed: ")), "{at_once:?}");
    assert!(at_the_end.text.starts_with(&format!("not undone: {what}: ")), "{at_the_end:?}");
    assert!(matches!(events.last(), Some(Event::RunFinished { .. })), "the end comes after everything");
}
