//! How the processes of a run are found, by their mark, and ended.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::{Actions, MARKER};
use crate::process_files::{COMMAND_LINE, ENVIRONMENT, USUAL_ENVIRONMENT};

/// The argument of a probe's process that undoes what it changed, once its session has gone.
pub const WORKER: &str = "worker";
/// How long processes may take to die.
pub(super) const DYING: Duration = Duration::from_secs(10);
/// How long those who undo something themselves, once they hear of the end, may take for it.
pub(super) const SPARED: Duration = Duration::from_secs(3);
/// Bytes of environments longer than usual that are read in one look.
const ROOM: u64 = 64 << 20;
/// Time between two looks at the processes.
const POLL: Duration = Duration::from_millis(5);

/// Kills every process that carries the mark, until a look finds none: one may fork while others are
/// looked at. Those who undo something end with their session by themselves, and know best what they
/// changed: they are killed last.
///
/// # Errors
/// When processes are not known, or some do not die.
pub fn kill_marked(marker: &str, actions: &impl Actions) -> io::Result<()> {
    let began = actions.now();
    loop {
        let alive = marked(marker, actions)?;
        if alive.is_empty() {
            return Ok(());
        }
        let taken = actions.now().saturating_sub(began);
        let all = taken >= SPARED;
        for pid in alive.iter().filter(|pid| all || !undoes(**pid, actions)) {
            // It may have ended by itself.
            let _ = actions.kill(*pid);
        }
        if taken >= DYING {
            return Err(io::Error::other(format!("processes {alive:?} do not die")));
        }
        actions.pause(POLL);
    }
}

/// Processes whose environment has the mark; never this one. One that has ended, or belongs to another
/// user, has no environment to read.
///
/// # Errors
/// When processes are not known.
pub fn marked(marker: &str, actions: &impl Actions) -> io::Result<Vec<u32>> {
    let wanted = format!("{MARKER}={marker}");
    // A few environments that are longer than usual are somebody's; thousands are there to hold us up.
    let mut room = ROOM;
    let mut environment = |pid: u32| {
        let beginning = read(pid, "environ", USUAL_ENVIRONMENT, actions);
        if length(&beginning) < USUAL_ENVIRONMENT || room == 0 {
            return beginning;
        }
        let whole = read(pid, "environ", ENVIRONMENT, actions);
        room = room.saturating_sub(length(&whole));
        whole
    };
    let is_marked = |pid: &u32| words(&environment(*pid)).any(|word| word == wanted.as_bytes());
    Ok(actions.processes()?.into_iter().filter(is_marked).collect())
}

fn undoes(pid: u32, actions: &impl Actions) -> bool {
    words(&read(pid, "cmdline", COMMAND_LINE, actions)).nth(1) == Some(WORKER.as_bytes())
}

fn read(pid: u32, file: &str, most: u64, actions: &impl Actions) -> Vec<u8> {
    actions.beginning(Path::new(&format!("/proc/{pid}/{file}")), most).unwrap_or_default()
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == 0)
}
