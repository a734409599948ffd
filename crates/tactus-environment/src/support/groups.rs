//! Cgroups of our own: a command that starts in them, and what removes them.

use std::path::PathBuf;

use tactus_model::undo::Undo;
use tactus_system::guardian::Promise;

use crate::{Setting, StartError};

/// A command that first enters these groups, and so is in them before it does anything.
pub fn within(groups: &[PathBuf], command: Vec<String>) -> Vec<String> {
    if groups.is_empty() {
        return command;
    }
    let script = "while [ \"$1\" != -- ]; do echo $$ >\"$1/cgroup.procs\" || exit 125; shift; done; shift; exec \"$@\"";
    let mut words: Vec<String> = ["sh", "-c", script, "sh"].map(str::to_owned).into();
    words.extend(groups.iter().map(|group| group.display().to_string()));
    words.push("--".into());
    words.extend(command);
    words
}

/// Promises to remove groups, in this order, as soon as the last process has left them.
///
/// # Errors
/// When that cannot be written down.
pub fn promise_removal(
    setting: &Setting<'_>,
    groups: impl IntoIterator<Item = PathBuf>,
) -> Result<Vec<Promise>, StartError> {
    let groups: Vec<PathBuf> = groups.into_iter().collect();
    // Promises are fulfilled in reverse order: the last one first.
    let promises = groups.into_iter().rev().map(|group| super::promise(setting, Undo::RemoveEmpty(group)));
    let mut promises: Vec<Promise> = promises.collect::<Result<_, _>>()?;
    promises.reverse();
    Ok(promises)
}

#[cfg(test)]
mod tests {
    use tactus_system::{Invocation, Real, System};

    use super::*;

    #[test]
    fn a_command_enters_its_groups_and_keeps_its_words() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("a group");
        Real.make_dir(&group).unwrap();
        let words = ["echo", "one two", "--"].map(str::to_owned);
        let done = Real.run(&Invocation::new(within(std::slice::from_ref(&group), words.into()))).unwrap();
        assert_eq!(done.text(), "one two --\n", "{}", done.words());
        let pid = Real.text(group.join("cgroup.procs").to_str().unwrap()).unwrap();
        assert!(pid.trim().parse::<u32>().is_ok(), "{pid}");
        assert_eq!(within(&[], vec!["x".into()]), ["x"]);
    }

    #[test]
    fn what_cannot_be_entered_is_not_passed_over() {
        let words = within(&["/no/such/group".into()], vec!["true".into()]);
        assert_eq!(Real.run(&Invocation::new(words)).unwrap().code, Some(125));
    }
}
