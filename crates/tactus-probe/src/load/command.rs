//! `command`: a program of the environment, as the plan gives it. A round is a tenth of a second of its run time.
//!
//! Where the kernel allows it (root), the program runs in a separate process namespace: all processes that it starts
//! end with it. Otherwise its process group ends with it.

use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Access;
use rustix::process::{Signal, WaitOptions, wait};
use tactus_model::CpuSet;
use tactus_model::catalogue::load::Command;
use tactus_model::message::Refusal;

use super::refuse;
use crate::sys;
use crate::work::{Work, over, reset_scheduling};

/// The length of a round.
const ROUND: Duration = Duration::from_millis(100);
/// The default PATH.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub fn works(table: &Command, cpus: &CpuSet) -> Result<Vec<Work>, Refusal> {
    let Some(program) = table.run.first() else {
        return Err(refuse(
            "command: `run` names no program".into(),
            "run = [\"hackbench\", \"-l\", \"100000\"]",
        ));
    };
    if !exists(program) {
        return Err(refuse(
            format!("command: this environment has no program `{program}`"),
            "install it there; environments that tactus starts itself (its images, its guests) contain only \
                the probe",
        ));
    }
    let (words, cpus) = (table.run.clone(), cpus.clone());
    Ok(vec![Box::new(move |rounds| {
        reset_scheduling(&cpus);
        let Ok((alive, hold)) = rustix::pipe::pipe() else { return };
        sys::separate_processes();
        // From here on this process holds `hold`, and the end of it is the end of the program.
        let mut hold = Some(hold);
        let started = sys::fork(|| {
            drop(hold.take());
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            let mut ends = [PollFd::from_borrowed_fd(alive.as_fd(), PollFlags::empty())];
            // The parent may have died before it could be told to take this one along.
            if poll(&mut ends, Some(&Timespec::default())) == Ok(0) {
                over(&watch(&words, rounds));
            }
        });
        if started.is_ok() {
            let _ = wait(WaitOptions::empty());
        }
    })])
}

/// Whether there is such a program.
fn exists(program: &str) -> bool {
    let runs = |path: &Path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return runs(Path::new(program));
    }
    let path = std::env::var("PATH").unwrap_or_else(|_| PATH.into());
    path.split(':').any(|directory| runs(&Path::new(directory).join(program)))
}

/// Runs the program and returns how it ended. It is the first process of its namespace: whatever loses
/// its parent there becomes its child.
fn watch(words: &[String], rounds: &AtomicU64) -> String {
    let program = &words[0];
    let mut process = Process::new(program);
    process.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = match sys::die_with_parent(&mut process).spawn() {
        Ok(child) => child,
        Err(error) => return format!("`{program}` could not be started: {error}"),
    };
    let mut slept = false;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid.as_raw_pid().unsigned_abs() == child.id() => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => format!("`{program}` ended (exit status {code})"),
                    (_, Some(signal)) => format!("`{program}` was ended by signal {signal}"),
                    _ => format!("`{program}` ended"),
                };
            }
            Ok(Some(_)) => {}
            Ok(None) => {
                if slept {
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::sleep(ROUND);
                slept = true;
            }
            Err(error) => return format!("`{program}`: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::Load;

    use crate::load;

    use super::*;

    fn count(run: &[&str]) -> Result<usize, Refusal> {
        let run = run.iter().map(|word| (*word).to_owned()).collect();
        Ok(load::works(&Load::Command(Command { run }), &"0-1".parse().unwrap())?.len())
    }

    #[test]
    fn a_program_that_is_absent_or_no_program_is_refused_by_name() {
        assert!(count(&[]).unwrap_err().reason.contains("names no program"));
        for absent in ["no-such-program", "/etc/passwd", "/etc", "", "no/such"] {
            let refusal = count(&[absent]).unwrap_err();
            assert!(refusal.reason.contains(&format!("has no program `{absent}`")), "{refusal:?}");
        }
        assert_eq!(count(&["sh", "-c", "true"]), Ok(1), "one for all CPUs");
        assert_eq!(count(&["/bin/sh"]), Ok(1));
    }
}
