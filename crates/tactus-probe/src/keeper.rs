//! `tactus-probe worker "keep JSON"`: a process that waits for the end of its session, however that comes, and then
//! restores the changes that the session has left. It looks like a worker, so that it is not killed before when a run
//! is ended.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use tactus_model::undo::{Undo, WORKER};

use crate::fault::block::put_back;
use crate::sys;

/// The word before its undos.
const WORD: &str = "keep ";
/// Its message when it waits.
const WAITS: &[u8] = b"waits\n";
/// The message when nothing is to be put back.
const NOTHING: &[u8] = b"nothing\n";

/// The session's side. Dropping it restores everything.
pub struct Keeper {
    child: Child,
}

impl Keeper {
    /// Starts it; the settings that it restores may be changed from now on.
    ///
    /// # Errors
    /// Why the keeper cannot restore them.
    pub fn start(undos: &[Undo]) -> io::Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .arg0("tactus-probe")
            .args([WORKER, &[WORD, &serde_json::to_string(undos)?].concat()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let mut said = [0; WAITS.len()];
        let heard = child.stdout.as_mut().map(|stdout| io::Read::read_exact(stdout, &mut said));
        match heard {
            Some(Ok(())) if said == WAITS => Ok(Self { child }),
            _ => Err(io::Error::other("it did not begin")),
        }
    }

    /// Nothing was changed.
    pub fn forget(mut self) {
        let _ = self.child.stdin.as_mut().map(|stdin| stdin.write_all(NOTHING));
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The process. Returns its exit code; `None`: the task is for another worker.
pub fn main(task: &str) -> Option<u8> {
    let undos: Vec<Undo> = serde_json::from_str(task.strip_prefix(WORD)?).ok()?;
    sys::set_name("tactus-keep");
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        sys::on_signal(signal, sys::OnSignal::Ignore);
    }
    let _ = io::stdout().write_all(WAITS).and_then(|()| io::stdout().flush());
    let told = io::read_to_string(io::stdin()).unwrap_or_default();
    Some(if told.as_bytes() == NOTHING { 0 } else { put_back(&undos) })
}
