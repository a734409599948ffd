//! How long each thread of this system has been on a CPU (Documentation/scheduler/sched-stats.rst: the first number of
//! /proc/PID/task/TID/schedstat, in ns).

use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};

/// A thread that ran. Threads of a process with the same name count as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    pub pid: u32,
    pub process: String,
    pub name: String,
}

/// The time that the threads had up to a moment, by process and thread, in ns.
pub struct Threads(BTreeMap<(u32, u32), u64>);

impl Threads {
    /// All threads of the system.
    pub fn now() -> Self {
        let mut all = BTreeMap::new();
        for pid in numbers("/proc") {
            for thread in numbers(&format!("/proc/{pid}/task")) {
                all.extend(ran(pid, thread).map(|ns| ((pid, thread), ns)));
            }
        }
        Self(all)
    }

    /// The threads that have run since then, and for how long, in ns. Threads that have ended meanwhile are missing.
    pub fn ran(&self) -> Vec<(Who, u64)> {
        let mut all = Vec::new();
        for ((pid, thread), ns) in Self::now().0 {
            let since = ns.saturating_sub(self.0.get(&(pid, thread)).copied().unwrap_or(0));
            if since > 0
                && let Some(who) = who(pid, thread)
            {
                all.push((who, since));
            }
        }
        all
    }
}

fn numbers(dir: &str) -> impl Iterator<Item = u32> {
    let names = read_dir(dir).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn ran(pid: u32, thread: u32) -> Option<u64> {
    let text = read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

fn who(pid: u32, thread: u32) -> Option<Who> {
    let name = |thread| read_to_string(format!("/proc/{pid}/task/{thread}/comm")).ok();
    let (process, name) = (name(pid)?, name(thread)?);
    let (process, name) = (group(process.trim_end()), group(name.trim_end()));
    // Threads of the kernel are processes each: of several of one name that is all there is to tell.
    let pid = if name.starts_with(WORKER) { 0 } else { pid };
    Some(Who { pid, process: process.into(), name: name.into() })
}

const WORKER: &str = "kworker/";

/// A worker of the kernel does this and that, and there are many: those of a CPU are one (`kworker/1:2-events`).
fn group(name: &str) -> &str {
    if name.starts_with(WORKER) { name.split(':').next().unwrap_or(name) } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_of_a_cpu_are_one_and_everybody_else_is_called_as_it_is() {
        let names = ["kworker/1:2-events", "kworker/u8:3+flush-8:0", "vhost-812", "CPU 0/KVM", "a:b"];
        assert_eq!(names.map(group), ["kworker/1", "kworker/u8", "vhost-812", "CPU 0/KVM", "a:b"]);
    }

    #[test]
    fn a_running_thread_is_named_with_its_process_and_one_that_has_ended_is_left_out() {
        let before = Threads::now();
        let named = std::thread::Builder::new().name("busy: one".into());
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = named
            .spawn(move || while stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {});
        let me = std::process::id();
        let own = |ran: &[(Who, u64)]| ran.iter().any(|(who, _)| who.pid == me && who.name == "busy: one");
        assert!((0..1_000).any(|_| own(&before.ran())));
        drop(stop);
        thread.unwrap().join().unwrap();
        assert!(!own(&before.ran()));
        assert_eq!(who(u32::MAX, u32::MAX), None);
    }
}
