//! How the processes of a run are found, by their mark, and ended.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use super::{Actions, Held, MARKER, Undo};
use crate::process_files::{COMMAND_LINE, ENVIRONMENT, USUAL_ENVIRONMENT};

/// The argument of a probe's process that undoes its changes once its session has gone.
pub const WORKER: &str = "worker";
/// How long processes may take to die.
pub(super) const DYING: Duration = Duration::from_secs(10);
/// Time for processes that undo their changes themselves, once they hear of the end.
pub(super) const SPARED: Duration = Duration::from_secs(3);
/// Bytes of environments longer than usual that are read in one look.
const ROOM: u64 = 64 << 20;
/// Time between two looks at the processes.
pub(super) const POLL: Duration = Duration::from_millis(5);

/// Kills every process with the mark, until a look finds no more: one may fork during a look. Processes that undo
/// changes end with their session by themselves, and know their changes best: they are killed last.
///
/// # Errors
/// When processes cannot be listed, or some do not die; `TimedOut` when all readable ones have ended, but others could
/// not be read.
pub fn kill_marked(marker: &str, actions: &impl Actions) -> io::Result<()> {
    let began = actions.now();
    loop {
        let taken = actions.now().saturating_sub(began);
        let all = taken >= SPARED;
        let look = each_marked(marker, actions, |pid, process| {
            if all || !undoes(pid, actions) {
                // It may have ended by itself.
                let _ = process.kill();
            }
        })?;
        if look.marked.is_empty() {
            return look.in_time();
        }
        if taken >= DYING {
            return Err(io::Error::other(format!("processes {:?} do not die", look.marked)));
        }
        actions.pause(POLL);
    }
}

/// Whether no further try would find more: all processes of a run that can be looked at have ended.
#[must_use]
pub fn is_over(how: &Undo, error: &io::Error) -> bool {
    matches!(how, Undo::KillMarked(_)) && error.kind() == ErrorKind::TimedOut
}

/// Processes whose environment has the mark; never this one. One that has ended, or belongs to another
/// user, has no environment to read.
///
/// # Errors
/// When processes are not known.
pub fn marked(marker: &str, actions: &impl Actions) -> io::Result<Vec<u32>> {
    Ok(each_marked(marker, actions, |_, _| {})?.marked)
}

/// The result of one look at all processes.
#[derive(Default)]
struct Look {
    marked: Vec<u32>,
    /// Processes for which it could not be read in time whether they are marked.
    late: Vec<u32>,
}

impl Look {
    fn in_time(&self) -> io::Result<()> {
        let Some(first) = self.late.first() else { return Ok(()) };
        let others = self.late.len() - 1;
        let others = if others == 0 { String::new() } else { format!(" and of {others} more") };
        let words = format!(
            "the environment of process {first}{others} could not be read in time: it is unknown whether it \
                belongs to the run"
        );
        Err(io::Error::new(ErrorKind::TimedOut, words))
    }
}

/// Looks at each process and gives those that are marked to `then`, at once and held: its number may be another's before
/// all are looked at.
fn each_marked<A: Actions>(marker: &str, actions: &A, then: impl Fn(u32, &dyn Held)) -> io::Result<Look> {
    let wanted = format!("{MARKER}={marker}");
    // A few long environments are harmless; thousands of them may be there to delay this.
    let mut room = ROOM;
    let mut environment = |pid: u32| {
        let beginning = read(pid, "environ", USUAL_ENVIRONMENT, actions)?;
        if length(&beginning) < USUAL_ENVIRONMENT || room == 0 {
            return Ok(beginning);
        }
        let whole = read(pid, "environ", ENVIRONMENT, actions)?;
        room = room.saturating_sub(length(&whole));
        io::Result::Ok(whole)
    };
    let mut look = Look::default();
    for pid in actions.processes()? {
        // The process is held before it is looked at: what is read then belongs to it, or fails after its end.
        let process = match actions.hold(pid) {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
            Err(_) => continue,
            Ok(process) => process,
        };
        match environment(pid) {
            Ok(bytes) if words(&bytes).any(|word| word == wanted.as_bytes()) => {
                look.marked.push(pid);
                then(pid, &*process);
            }
            Err(error) if error.kind() == ErrorKind::TimedOut => look.late.push(pid),
            _ => {}
        }
    }
    Ok(look)
}

fn undoes(pid: u32, actions: &impl Actions) -> bool {
    let line = read(pid, "cmdline", COMMAND_LINE, actions).unwrap_or_default();
    words(&line).nth(1) == Some(WORKER.as_bytes())
}

fn read(pid: u32, file: &str, most: u64, actions: &impl Actions) -> io::Result<Vec<u8>> {
    actions.beginning(Path::new(&format!("/proc/{pid}/{file}")), most)
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == 0)
}
