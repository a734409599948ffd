//! How things are on the system now.

use tactus_model::change::Thread;
use tactus_model::threads::Policy;
use tactus_system::System;

/// A thread as `/proc` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Policy and priority: `FIFO 4`.
    pub scheduling: String,
    /// The CPUs that it may use, as a cpulist.
    pub cpus: String,
}

/// Looks at a thread; `None` if it has ended, even if another thread has its number now.
#[must_use]
pub fn task(system: &dyn System, thread: &Thread) -> Option<Task> {
    let tid = thread.tid;
    let stat = system.text(&format!("/proc/{tid}/stat")).filter(|stat| thread.is_in(stat))?;
    let (_, fields) = stat.rsplit_once(')')?;
    // Fields 40 and 41 of proc_pid_stat(5): rt_priority and policy; the first after the name is 3.
    let field = |number: usize| fields.split_ascii_whitespace().nth(number - 3);
    let policy = match field(41)? {
        "0" => Policy::Other,
        "1" => Policy::Fifo,
        "2" => Policy::Rr,
        "3" => Policy::Batch,
        "5" => Policy::Idle,
        "6" => Policy::Deadline,
        _ => Policy::Unknown,
    };
    let scheduling = format!("{} {}", policy.word(), field(40)?);
    let status = system.text(&format!("/proc/{tid}/status"))?;
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned();
    Some(Task { scheduling, cpus })
}

#[cfg(test)]
mod tests {
    use tactus_system::{Memory, Real};

    use super::*;

    #[test]
    fn a_thread_is_told_by_proc_even_with_a_bracket_in_its_name() {
        let fields = "S 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 -5 0 1 0 4 0 0 18446744073709551615 0 0 0 0 0 0 0 \
                      2147483647 0 0 0 0 17 1 4 1 0 0 0 0 0";
        let machine = Memory::new()
            .file("/proc/16/stat", format!("16 (rcuc) /1) {fields}\n"))
            .file("/proc/16/status", "Name:\trcuc\nCpus_allowed:\t2\nCpus_allowed_list:\t1\n")
            .file("/proc/17/stat", "17 (cut) S 2 0");
        let thread = |tid, name: &str, started| Thread { tid, name: name.into(), started };
        let seen = task(&machine, &thread(16, "rcuc) /1", Some(4))).unwrap();
        assert_eq!((seen.scheduling.as_str(), seen.cpus.as_str()), ("FIFO 4", "1"));
        for other in [
            thread(16, "rcuc) /1", Some(5)),
            thread(16, "rcuc", Some(4)),
            thread(17, "cut", None),
            thread(18, "x", None),
        ] {
            assert_eq!(task(&machine, &other), None, "{other:?}");
        }
    }

    #[test]
    fn this_process_is_seen_as_it_is() {
        let stat = Real.text("/proc/self/stat").unwrap();
        let name = stat[stat.find('(').unwrap() + 1..stat.rfind(')').unwrap()].to_owned();
        let thread = Thread { tid: std::process::id(), name, started: None };
        let seen = task(&Real, &thread).unwrap();
        assert!(seen.scheduling.ends_with(" 0") && !seen.cpus.is_empty(), "{seen:?}");
    }
}
