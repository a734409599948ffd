//! This program once more, in a process that does not end with this one.
#![expect(clippy::disallowed_methods, reason = "this is the door")]

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::process::{Child, Command, Stdio};

/// A process of this program that was started by [`again`].
#[derive(Debug)]
pub struct Again(Child);

/// Starts this program once more with these arguments: its stdin is empty, and its stdout and stderr go to `log`. It
/// must call [`leave_terminal`].
///
/// # Errors
/// When it cannot be started.
pub fn again(words: impl IntoIterator<Item = OsString>, log: File) -> io::Result<Again> {
    let both = log.try_clone()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).stdin(Stdio::null()).stdout(log).stderr(both);
    let process = command.spawn()?;
    tracing::info!(pid = process.id(), "this program was started once more, without the terminal");
    Ok(Again(process))
}

/// Begins a session without a terminal: signals and input of the old terminal no longer reach this process.
///
/// # Errors
/// When this process already leads a group: it was not started by [`again`].
pub fn leave_terminal() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

impl Again {
    /// Its process id.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.0.id()
    }

    /// Its exit code if it has ended (`Some(None)`: by a signal).
    ///
    /// # Errors
    /// Those of wait(2).
    pub fn try_wait(&mut self) -> io::Result<Option<Option<i32>>> {
        Ok(self.0.try_wait()?.map(|status| status.code()))
    }

    /// Kills it and waits for its end.
    pub fn kill(&mut self) {
        // It can only fail for a process that has ended.
        let _ = self.0.kill();
        // Its exit status is not used.
        let _ = self.0.wait();
    }
}
