//! Recovery after a power cut or the death of a guardian: undoes the changes that a dead run left behind.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tactus_model::patience::has_many_numbers;
use tactus_model::undo::{Entry, Undo, is_over, marked, outstanding, settings_first, undo, unknown};

use super::actions::SystemActions;
use super::journal::Journal;
use crate::{System, own, state_dir};

/// How long the guardian of a run that has just died may take.
const GUARDIAN: Duration = Duration::from_secs(20);

/// Undoes the changes that dead runs left behind. Returns a sentence about each change that was undone, or could not
/// be. Runs that are alive are left alone.
#[must_use]
pub fn recover(system: &dyn System) -> Vec<String> {
    // Without a directory for journals there is no journal.
    let Some(dir) = state_dir(system).ok().filter(|dir| system.exists(dir)) else { return Vec::new() };
    if let Err(error) = system.make_own_dir(&dir) {
        return vec![format!(
            "changes left by an earlier run were not looked for in {}: {error}",
            dir.display()
        )];
    }
    let journals = system.list(&dir).unwrap_or_default();
    let journals = journals.into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    journals
        .flat_map(|path| recover_one(&path, system))
        .inspect(|sentence| tracing::info!("recovered: {sentence}"))
        .collect()
}

fn recover_one(path: &Path, system: &dyn System) -> Vec<String> {
    match recover_dead(path, system) {
        Ok(sentences) => sentences,
        // Its own guardian was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            vec![format!("the journal {} of a dead run could not be reverted: {error}", path.display())]
        }
    }
}

fn recover_dead(path: &Path, system: &dyn System) -> io::Result<Vec<String>> {
    let until = Instant::now() + GUARDIAN;
    let Some(mut journal) = Journal::of_dead_run(path)? else { return Ok(Vec::new()) };
    while guarded(path, system) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let Rest { undone, left, unknown } = undo_rest(&mut journal, system)?;
    let ended = "an earlier run did not end well";
    let undone = undone.into_iter().map(|what| format!("{ended}; undone by {what}"));
    let left = left.into_iter().map(|what| format!("{ended}, and {what}"));
    let unknown = unknown.into_iter().map(|line| {
        format!(
            "{ended}, and another release of tactus recorded a change that this one cannot revert: \
            {line}"
        )
    });
    Ok(undone.chain(left).chain(unknown).collect())
}

/// The result for the open promises of a journal.
pub struct Rest {
    /// The changes that were undone.
    pub undone: Vec<String>,
    /// The changes that could not be undone, and why. The journal is kept if another try may succeed.
    pub left: Vec<String>,
    /// Lines of another release.
    pub unknown: Vec<String>,
}

/// Undoes the promises that are still open in a journal, and removes the journal when none is left. The caller must
/// hold its lock.
pub fn undo_rest(journal: &mut Journal, system: &dyn System) -> io::Result<Rest> {
    let text = String::from_utf8_lossy(&system.read_own(journal.path())?).into_owned();
    let mut rest = Rest {
        undone: Vec::new(),
        left: Vec::new(),
        unknown: unknown(&text).into_iter().map(str::to_owned).collect(),
    };
    let open = outstanding(&text);
    let is_setting = |how: &Undo| matches!(how, Undo::Write { .. });
    let unchanged: Vec<bool> =
        open.iter().map(|(_, how)| is_setting(how) && nothing_to_do(how, system)).collect();
    settings_first(&open, &SystemActions(system));
    let mut finished = true;
    for ((id, how), unchanged) in open.into_iter().zip(unchanged) {
        let idle = if is_setting(&how) { unchanged } else { nothing_to_do(&how, system) };
        match undo(&how, &SystemActions(system)) {
            Ok(()) => {
                journal.write(&Entry::Done { id })?;
                if !idle {
                    rest.undone.push(how.to_string());
                }
            }
            Err(error) => {
                rest.left.push(format!("{how} failed: {error}"));
                if is_over(&how, &error) {
                    journal.write(&Entry::Done { id })?;
                } else {
                    finished = false;
                }
            }
        }
    }
    if finished {
        system.remove(journal.path())?;
    }
    Ok(rest)
}

/// Whether undoing this changes nothing, so that it need not be reported.
fn nothing_to_do(how: &Undo, system: &dyn System) -> bool {
    match how {
        Undo::KillMarked(id) => marked(id, &SystemActions(system)).is_ok_and(|alive| alive.is_empty()),
        Undo::Remove(path) | Undo::RemoveEmpty(path) | Undo::Unmount(path) => !system.exists(path),
        Undo::Write { path, value } => {
            system.text(&path.to_string_lossy()).is_some_and(|now| now.trim() == value.trim())
        }
        Undo::Where { there, .. } => !system.exists(there),
        Undo::Tool(_) => false,
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
                && is_of(process, system)
                && words.contains(&journal.as_os_str().as_encoded_bytes())
        })
}

/// Whether a process belongs to root or this user. Processes that belong to other users, or to the root of a container,
/// must not delay a recovery.
fn is_of(process: &Path, system: &dyn System) -> bool {
    let status = system.text(&process.join("status").to_string_lossy()).unwrap_or_default();
    own::effective_user(&status).is_some_and(own::is_ours) && !has_many_numbers(&status)
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
    fn a_journal_that_somebody_else_could_have_written_takes_nothing_back() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, forged) = (dir.path().join("victim"), dir.path().join("forged.jsonl"));
        Real.write(&victim, b"before").unwrap();
        let line = Entry::Undo { id: 0, how: Undo::Remove(victim.clone()) };
        let text = serde_json::to_string(&line).unwrap() + "\n";
        Real.install(&forged, text.as_bytes(), 0o622).unwrap();
        let sentences = recover_one(&forged, &Real);
        assert!(
            sentences[0].contains(
                "forged.jsonl of a dead run could not be reverted: it is not trusted: others may write to it"
            ),
            "{sentences:?}"
        );
        assert!(Real.exists(&victim) && Real.exists(&forged));
    }

    #[test]
    fn a_command_that_an_earlier_release_wrote_down_is_said_and_not_run() {
        let dir = tempfile::tempdir().unwrap();
        let (path, made) = (dir.path().join("old.jsonl"), dir.path().join("made"));
        let line =
            format!("{{\"undo\":{{\"id\":0,\"how\":{{\"run\":[\"touch\",\"{}\"]}}}}}}\n", made.display());
        Real.install(&path, line.as_bytes(), 0o600).unwrap();
        let sentences = recover_one(&path, &Real);
        assert!(sentences.len() == 1 && sentences[0].contains("another release"), "{sentences:?}");
        assert!(!Real.exists(&made) && !Real.exists(&path));
    }

    #[test]
    fn who_only_says_that_he_is_a_guardian_is_not_waited_for() {
        let journal = Path::new("/j.jsonl");
        let of = |user: u32| {
            let machine = crate::Memory::new();
            let machine =
                machine.file("/proc/7", "").file("/proc/7/cmdline", "probe\0guardian\0--journal\0/j.jsonl\0");
            guarded(
                journal,
                &machine.file("/proc/7/status", format!("Uid:\t{user}\t{user}\t{user}\t{user}\n")),
            )
        };
        assert!(of(0) && !of(54321));
    }

    #[test]
    fn a_cut_or_hostile_journal_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cut.jsonl");
        let text = b"{\"undo\":{\"id\":0,\"how\":{\"remo\n\0\0garbage\n{\"undo\":";
        Real.install(&path, text, 0o600).unwrap();
        assert!(recover_one(&path, &Real).is_empty());
        assert!(!Real.exists(&path));
    }
}
