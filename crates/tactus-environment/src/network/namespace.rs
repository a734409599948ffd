//! A network namespace, held by a separate process: it ends with that process, and everything in it as well. The
//! process has the mark of the run, so the guardian ends it. It also ends by itself with the run, because the pipe
//! that it reads closes.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use tactus_system::guardian::Guardian;
use tactus_system::{Child, Invocation, System, last_lines};

use crate::StartError;
use crate::support::cannot;

/// How long a command may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A network namespace. Dropping it ends it.
pub struct Namespace {
    system: Arc<dyn System>,
    holder: Box<dyn Child>,
    _stdin: Box<dyn Write + Send>,
}

impl Namespace {
    /// Makes one, with a loopback that is up and nothing else in it.
    ///
    /// # Errors
    /// When this process may not, in the words of unshare(1).
    pub fn make(system: &dyn System, guardian: &Guardian) -> Result<Self, StartError> {
        let words = Invocation::new(["unshare", "--net", "--", "cat"]).with_env(guardian.marker());
        let failed = |error: std::io::Error| cannot("no network namespace", error);
        let mut holder = system.spawn(&words).map_err(failed)?;
        let (Some(mut stdin), Some(mut stdout)) = (holder.take_stdin(), holder.take_stdout()) else {
            return Err(cannot("no network namespace", "its process has no pipes"));
        };
        // The byte comes back from within the namespace.
        let answered = stdin.write_all(b"\n").and_then(|()| stdin.flush());
        let answered = answered.and_then(|()| stdout.read_exact(&mut [0; 1]));
        if let Err(error) = answered {
            let words = last_lines(&holder.stderr(), 2);
            let reason = if words.is_empty() { error.to_string() } else { words };
            let hint = "run tactus as root; in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN";
            return Err(StartError {
                reason: format!("no network namespace: {reason}"),
                hint: Some(hint.into()),
            });
        }
        let made = Self { system: system.share(), holder, _stdin: stdin };
        made.run(&["ip", "link", "set", "lo", "up"].map(str::to_owned))?;
        Ok(made)
    }

    /// The process that holds it.
    pub fn holder(&self) -> u32 {
        self.holder.pid()
    }

    /// Runs a command in it.
    ///
    /// # Errors
    /// When it fails, in its own words.
    pub fn run(&self, words: &[String]) -> Result<(), StartError> {
        run(&*self.system, enter(self.holder()), words)
    }
}

/// Runs a command behind the words that say where.
///
/// # Errors
/// When it fails, in its own words.
pub fn run(system: &dyn System, place: Vec<String>, words: &[String]) -> Result<(), StartError> {
    let failed = |why: &dyn std::fmt::Display| cannot(&format!("`{}`", words.join(" ")), why);
    let finished = system.run(&Invocation::new([place, words.to_vec()].concat()).within(PATIENCE));
    let finished = finished.map_err(|error| failed(&error))?;
    if finished.success() { Ok(()) } else { Err(failed(&finished.words())) }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.holder.kill();
    }
}

/// The words before those of a command that is to run in the network namespace of a process.
#[must_use]
pub fn enter(holder: u32) -> Vec<String> {
    vec!["nsenter".into(), format!("--net={}", file(holder)), "--".into()]
}

/// The namespace as a file.
#[must_use]
pub fn file(holder: u32) -> String {
    format!("/proc/{holder}/ns/net")
}
