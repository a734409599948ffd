//! How each kind of change is undone: the tries, their number, and the conditions of success.

use std::io::{self, ErrorKind};
use std::path::{Component, Path};
use std::time::Duration;

use super::Undo;
use super::actions::{Actions, gone, no_mount};
use super::processes::kill_marked;
use crate::change::Form;

/// Number of tries to revert a change: resources of a dead process are freed a little later.
pub(super) const TRIES: u32 = 20;
/// Time between two tries.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// Reverts a change, and tries several times if needed. Harmless when there is nothing to revert.
///
/// # Errors
/// Why something is left after that.
pub fn undo(how: &Undo, actions: &impl Actions) -> io::Result<()> {
    match how {
        Undo::KillMarked(marker) => kill_marked(marker, actions),
        Undo::Tool(tool) => tool.take_back(actions),
        Undo::Where { there, then } => all(there, then, actions, |how| undo(how, actions)),
        _ => {
            let mut tries = 1;
            loop {
                match attempt(how, actions) {
                    Err(error) if tries < TRIES && !is_final(&error) => actions.pause(PAUSE),
                    result => return result,
                }
                tries += 1;
            }
        }
    }
}

/// Writes back the former values among these undos, also those of threads, each once and without waiting. It runs
/// before anything of other users' processes is read, so that they cannot keep a setting changed. It does not replace
/// [`undo`]: a process of the run that is still alive may change the settings again.
pub fn settings_first(open: &[(u64, Undo)], actions: &impl Actions) {
    open.iter().for_each(|(_, how)| write_back(how, actions));
}

fn write_back(how: &Undo, actions: &impl Actions) {
    match how {
        // A failed write is tried again in its turn, and reported there.
        Undo::Write { .. } => drop(attempt(how, actions)),
        Undo::Tool(tool) if tool.is_setting() => drop(tool.take_back(actions)),
        Undo::Where { there, then } if actions.read(there).is_ok() => {
            then.iter().for_each(|how| write_back(how, actions));
        }
        _ => {}
    }
}

/// Undoes a change in one attempt, for callers that must not wait: everything except processes and the objects of
/// programs.
///
/// # Errors
/// Those of the file system; `InvalidInput` for those.
pub fn attempt(how: &Undo, actions: &impl Actions) -> io::Result<()> {
    if let Undo::Where { there, then } = how {
        return all(there, then, actions, |how| attempt(how, actions));
    }
    let (Undo::Remove(path) | Undo::RemoveEmpty(path) | Undo::Unmount(path) | Undo::Write { path, .. }) = how
    else {
        return Err(ErrorKind::InvalidInput.into());
    };
    // Another process may undo this than the one that wrote it: a path must mean the same in all.
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return Err(ErrorKind::InvalidInput.into());
    }
    gone(match how {
        Undo::Remove(path) => actions.remove(path),
        Undo::RemoveEmpty(path) => actions.remove_empty(path),
        // A file that cannot be written but has the right value is not an error.
        Undo::Write { path, value } => actions
            .write(path, value.as_bytes())
            .or_else(|error| if has(path, value, actions) { Ok(()) } else { Err(error) }),
        _ => no_mount(actions.unmount(path)),
    })
}

/// Whether a file says this value: as its text, or in brackets among the others that it could be.
fn has(path: &Path, value: &str, actions: &impl Actions) -> bool {
    let Ok(text) = actions.read(path) else { return false };
    let text = String::from_utf8_lossy(&text);
    text.trim() == value.trim() || Form::Choice.value(&text) == value.trim()
}

/// Takes all of this back where a file is there, as far as it goes; the first error is said.
fn all(
    there: &Path,
    then: &[Undo],
    actions: &impl Actions,
    take_back: impl Fn(&Undo) -> io::Result<()>,
) -> io::Result<()> {
    if actions.read(there).is_err() {
        return Ok(());
    }
    then.iter().map(take_back).fold(Ok(()), io::Result::and)
}

/// Whether no further try can help.
fn is_final(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(
        error.kind(),
        // The probe that would have done it has gone.
        BrokenPipe | InvalidInput | PermissionDenied | ReadOnlyFilesystem | Unsupported
    )
}
