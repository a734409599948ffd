//! How each kind of change is taken back.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tactus_model::undo::{MARKER, Undo};

use crate::{Invocation, System};

/// How long a command that takes something back may take.
const COMMAND: Duration = Duration::from_secs(20);
/// How long processes may take to die.
const DEATH: Duration = Duration::from_secs(5);

/// Takes something back. Harmless when there is nothing to take back.
///
/// # Errors
/// When something is left.
pub fn undo(how: &Undo, system: &dyn System) -> io::Result<()> {
    match how {
        Undo::KillMarked(id) => kill_marked(id, system),
        Undo::Run(words) => system.run(&Invocation::new(words.clone()).within(COMMAND)).map(drop),
        Undo::Remove(path) => system.remove(path),
        Undo::RemoveEmpty(path) => gone(system.remove_empty(path)),
        Undo::Unmount(path) => system.unmount(path),
        Undo::Write { path, value } => gone(system.write(path, value.as_bytes())),
    }
}

/// What was taken back, as a sentence.
#[must_use]
pub fn sentence(how: &Undo) -> String {
    match how {
        Undo::KillMarked(id) => format!("ended what was left of the processes of run {id}"),
        Undo::Run(words) => format!("ran `{}`", words.join(" ")),
        Undo::Remove(path) => format!("removed {}", path.display()),
        Undo::RemoveEmpty(path) => format!("removed the empty directory {}", path.display()),
        Undo::Unmount(path) => format!("detached the mount {}", path.display()),
        Undo::Write { path, value } => format!("wrote `{}` back to {}", value.trim(), path.display()),
    }
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Processes that carry the marker of a run, but never this one.
pub(super) fn marked(id: &str, system: &dyn System) -> Vec<u32> {
    let mark = format!("{MARKER}={id}");
    let own = std::process::id();
    let numbers = system.list(Path::new("/proc")).unwrap_or_default();
    let pids = numbers.iter().filter_map(|path| path.file_name()?.to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != own)
        .filter(|pid| {
            // A process that ended meanwhile, or belongs to another user, has no environment to read.
            let environment = system.read(Path::new(&format!("/proc/{pid}/environ"))).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        })
        .collect()
}

fn kill_marked(id: &str, system: &dyn System) -> io::Result<()> {
    let until = Instant::now() + DEATH;
    loop {
        // A process may fork while we look: only a look that finds nobody is the end.
        let alive = marked(id, system);
        if alive.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(io::Error::other(format!("processes {alive:?} of run {id} do not die")));
        }
        for pid in alive.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Real;

    #[test]
    fn every_marked_process_is_killed_and_no_other() {
        let id = format!("test-{}", std::process::id());
        let mine = Invocation::new(["sh", "-c", "sleep 61 & sleep 62"]).with_env((MARKER, &id));
        let mut child = Real.spawn(&mine).unwrap();
        let mut other = Real.spawn(&Invocation::new(["sleep", "63"]).with_env((MARKER, "another"))).unwrap();
        while marked(&id, &Real).len() < 3 {
            assert_eq!(child.try_wait().unwrap(), None);
        }
        undo(&Undo::KillMarked(id.clone()), &Real).unwrap();
        assert!(marked(&id, &Real).is_empty());
        assert_eq!(other.try_wait().unwrap(), None, "the other run goes on");
    }

    #[test]
    fn taking_back_what_is_not_there_is_harmless() {
        let dir = tempfile::tempdir().unwrap();
        let nowhere = dir.path().join("x");
        for how in [
            Undo::Remove(nowhere.clone()),
            Undo::RemoveEmpty(nowhere.clone()),
            Undo::Unmount(nowhere),
            Undo::KillMarked("no-such-run".into()),
        ] {
            undo(&how, &Real).unwrap_or_else(|error| panic!("{how:?}: {error}"));
            assert!(!sentence(&how).is_empty());
        }
    }

    #[test]
    fn a_directory_that_is_not_empty_is_not_removed_as_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("theirs"), "").unwrap();
        assert!(undo(&Undo::RemoveEmpty(dir.path().into()), &Real).is_err());
        assert!(dir.path().join("theirs").exists());
    }
}
