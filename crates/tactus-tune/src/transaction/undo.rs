//! Taking back.

use std::path::Path;

use tactus_system::{System, UNPLACED};

use super::ours::is_ours;
use super::{Action, Entry, Failed, Journal, Kept};

/// The result of taking a step back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// The former value is there again.
    Restored,
    /// It was there already.
    Held,
    /// Its subject is gone: the thread has ended, the file is no more, the boot is another.
    Gone,
    /// Somebody else has changed it since, to this; it was left alone.
    Foreign(String),
    /// It makes others read files of ours, and waits until those are taken back.
    Waits,
    /// It could not be taken back.
    Failed(Failed),
}

impl Undone {
    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Restored | Self::Held | Self::Gone)
    }
}

/// Takes one step back, unless somebody else has changed the same since (`force`: even then).
#[must_use]
pub fn undo(system: &dyn System, entry: &Entry, boot: &str, force: bool) -> Undone {
    let action = &entry.action;
    if action.ends_with_the_boot() && entry.boot != boot {
        return Undone::Gone;
    }
    if !is_ours(action) {
        return Undone::Failed(Failed {
            what: action.to_string(),
            word: "tactus never makes such a step, and does not revert it".into(),
            hint: "another program wrote it into the journal: check the step there, and restore it by hand"
                .into(),
            bearable: true,
        });
    }
    match action {
        Action::Run { .. } => return restored(system, action),
        Action::Install { path, .. } => sweep(system, Path::new(path)),
        _ => {}
    }
    match (action.current(system), action) {
        (None, Action::Install { former: None, .. }) => return Undone::Held,
        (None, Action::Install { .. }) => return Undone::Foreign("the file no longer exists".into()),
        (None, _) => return Undone::Gone,
        (Some(now), _) => {
            if action.former().is_some_and(|former| now == former || action.same(&now, former)) {
                return Undone::Held;
            }
            let ours = entry.reads.as_deref().is_some_and(|reads| action.same(&now, reads))
                || action.then().is_some_and(|then| action.same(&now, then));
            if !ours && !force {
                return Undone::Foreign(now.trim().to_owned());
            }
        }
    }
    restored(system, action)
}

/// Removes what a power cut has left of a file of ours that was not in its place yet.
fn sweep(system: &dyn System, path: &Path) {
    let Some(dir) = path.parent() else { return };
    let unplaced = |file: &Path| {
        file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(UNPLACED.as_bytes()))
    };
    for file in system.list(dir).unwrap_or_default().into_iter().filter(|file| unplaced(file)) {
        // The leftover is never read, so it is no reason to stop here.
        let _ = system.remove(&file);
    }
}

fn restored(system: &dyn System, action: &Action) -> Undone {
    match action.restore(system) {
        Ok(()) => {}
        // A thread may end between the look and the step.
        Err(failed) if failed.bearable && action.current(system).is_none() => return Undone::Gone,
        Err(failed) => return Undone::Failed(failed),
    }
    let now = action.current(system);
    match (now, action.former()) {
        (Some(now), Some(former)) if !action.same(&now, former) => Undone::Failed(Failed {
            what: format!("restore `{}`: {}", former.trim(), action.subject()),
            word: format!("the system reports `{}`", now.trim()),
            hint: "set it by hand, or reboot".into(),
            bearable: true,
        }),
        _ => Undone::Restored,
    }
}

/// Steps, and the result of each.
pub type Fates = Vec<(Entry, Undone)>;

/// Takes steps back, newest first, and writes it down. Returns what became of each, and those that
/// are left.
pub fn undo_all(
    system: &dyn System,
    journal: &mut Journal<'_>,
    entries: &[Entry],
    boot: &str,
    force: bool,
) -> (Fates, Fates) {
    let (mut over, mut left, mut ids) = (Fates::new(), Fates::new(), Vec::new());
    let kept = Kept::of(entries);
    let mut files_are_left = false;
    for entry in entries.iter().rev() {
        let waits = matches!(entry.action, Action::Run { back: Some(_), .. }) && files_are_left;
        // A value that our drop-in sets at every boot is also set in this one.
        let boot = if kept.has(entry) { &entry.boot } else { boot };
        let undone = if waits { Undone::Waits } else { undo(system, entry, boot, force) };
        if undone.is_over() {
            ids.push(entry.id);
            over.push((entry.clone(), undone));
        } else {
            files_are_left |= !entry.action.ends_with_the_boot();
            left.push((entry.clone(), undone));
        }
    }
    if !ids.is_empty() {
        // If this cannot be written down they are taken back twice, which is harmless.
        if let Err(error) = journal.undone(&ids) {
            tracing::warn!(%error, "the journal does not contain the value to restore");
        }
    }
    (over, left)
}
