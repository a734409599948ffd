//! New processes.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, WaitOptions, waitpid};

use super::super::{Bench, Place, SHORT_BATCH_NS, alone, timed};
use crate::sys;

pub fn fork(_: &Place<'_>) -> io::Result<Bench> {
    born(|| {})
}

pub fn fork_exec(_: &Place<'_>) -> io::Result<Bench> {
    born(|| {
        let mut same = Command::new("/proc/self/exe");
        // It returns only on failure.
        let _ = same.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).exec();
        std::process::abort();
    })
}

/// A child that does something and ends, and the wait for that.
fn born(what: impl Fn() + Copy + 'static) -> io::Result<Bench> {
    let child = move || {
        let pid = Pid::from_raw(sys::fork(what)?);
        match waitpid(pid, WaitOptions::empty())? {
            Some((_, status)) if status.exit_status() == Some(0) => Ok(()),
            _ => Err(io::Error::other("a child could not begin")),
        }
    };
    child()?;
    let run = move |batch| timed(|| (0..batch).try_for_each(|_| child()));
    Ok(Bench { batch_ns: SHORT_BATCH_NS, ..alone(run) })
}
