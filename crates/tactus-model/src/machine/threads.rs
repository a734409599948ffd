//! The threads of a system, from the `threads:*` readings of its facts.
//!
//! Each reading holds some of them, one a line, the fields apart by tabs:
//! `tid pid ppid flags policy priority cpus comm`. `threads:cut` is how many the probe left out.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cpus::CpuSet;
use crate::facts::Facts;

/// Bit of the flags that marks a thread of the kernel (`PF_KTHREAD`, include/linux/sched.h).
const PF_KTHREAD: u32 = 0x0020_0000;
/// Bit of the flags that forbids changing where the thread runs (`PF_NO_SETAFFINITY`).
const PF_NO_SETAFFINITY: u32 = 0x0400_0000;

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// SCHED_OTHER, the ordinary one.
    #[default]
    Other,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_DEADLINE.
    Deadline,
    /// SCHED_EXT (since Linux 6.12), or one that was not known when this was written.
    Unknown,
}

impl Policy {
    /// By the word that the readings use.
    #[must_use]
    pub fn of(word: &str) -> Self {
        match word {
            "OTHER" => Self::Other,
            "BATCH" => Self::Batch,
            "IDLE" => Self::Idle,
            "FIFO" => Self::Fifo,
            "RR" => Self::Rr,
            "DEADLINE" => Self::Deadline,
            _ => Self::Unknown,
        }
    }

    /// The word that the readings use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Other => "OTHER",
            Self::Batch => "BATCH",
            Self::Idle => "IDLE",
            Self::Fifo => "FIFO",
            Self::Rr => "RR",
            Self::Deadline => "DEADLINE",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// Whether it goes before every ordinary thread.
    #[must_use]
    pub const fn is_realtime(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr | Self::Deadline)
    }
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its id.
    pub tid: u32,
    /// Its process; the same as `tid` for the first thread.
    pub pid: u32,
    /// The parent of its process; 2 (kthreadd) for most of the kernel's own.
    pub ppid: u32,
    /// Whether it belongs to the kernel.
    pub kernel: bool,
    /// Whether its CPUs cannot be changed: the kernel's per-CPU threads.
    pub bound: bool,
    /// Its scheduling policy.
    pub policy: Policy,
    /// Real-time priority, 1 to 99; 0 for policies without one.
    pub priority: u32,
    /// The CPUs it may run on.
    pub cpus: Arc<CpuSet>,
    /// Its name, at most 15 bytes for user threads; the kernel's workers have longer ones.
    pub name: String,
    /// When it was started, in ticks since its system was; facts of earlier releases do not say it.
    pub started: Option<u64>,
}

/// All threads of a system that its probe could see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// The threads, by rising id.
    pub list: Vec<Thread>,
    /// How many more there were.
    pub left_out: u64,
    /// Lines that could not be read.
    pub damaged: usize,
    /// Whether the facts say anything of threads at all.
    pub known: bool,
}

impl Threads {
    /// Reads them out of facts. Damaged lines are left out and counted.
    #[must_use]
    pub fn of(facts: &Facts) -> Self {
        let mut threads = Self { left_out: facts.number("threads:cut").unwrap_or(0), ..Self::default() };
        // Thousands of threads have the same few sets, and a set may have thousands of CPUs.
        let mut sets = HashMap::new();
        for text in facts.parts("threads") {
            threads.known = true;
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                match read(line, &mut sets) {
                    Some(thread) => threads.list.push(thread),
                    None => threads.damaged += 1,
                }
            }
        }
        threads.list.sort_by_key(|thread| thread.tid);
        threads
    }

    /// The thread with an id.
    #[must_use]
    pub fn get(&self, tid: u32) -> Option<&Thread> {
        let at = self.list.binary_search_by_key(&tid, |thread| thread.tid).ok()?;
        self.list.get(at)
    }

    /// The kernel's own threads.
    pub fn kernel(&self) -> impl Iterator<Item = &Thread> {
        self.list.iter().filter(|thread| thread.kernel)
    }

    /// The threads of user processes.
    pub fn user(&self) -> impl Iterator<Item = &Thread> {
        self.list.iter().filter(|thread| !thread.kernel)
    }

    /// The threads of one process.
    pub fn of_process(&self, pid: u32) -> impl Iterator<Item = &Thread> {
        self.list.iter().filter(move |thread| thread.pid == pid)
    }

    /// The threads whose name begins so.
    pub fn named<'a>(&'a self, beginning: &'a str) -> impl Iterator<Item = &'a Thread> {
        self.list.iter().filter(move |thread| thread.name.starts_with(beginning))
    }
}

fn read<'a>(line: &'a str, sets: &mut HashMap<&'a str, Option<Arc<CpuSet>>>) -> Option<Thread> {
    let mut fields = line.splitn(9, '\t');
    let mut next = || fields.next();
    let number = |text: Option<&str>| text?.trim().parse().ok();
    let (tid, pid, ppid) = (number(next())?, number(next())?, number(next())?);
    let flags = next()?.trim();
    let flags = u32::from_str_radix(flags.strip_prefix("0x").unwrap_or(flags), 16).ok()?;
    let policy = Policy::of(next()?.trim());
    let priority = number(next())?;
    let cpus = next()?.trim();
    let cpus = sets.entry(cpus).or_insert_with(|| cpus.parse().ok().map(Arc::new)).clone()?;
    let name = next()?.to_owned();
    let started = next().and_then(|text| text.trim().parse().ok());
    let (kernel, bound) = (flags & PF_KTHREAD != 0, flags & PF_NO_SETAFFINITY != 0);
    Some(Thread { tid, pid, ppid, kernel, bound, policy, priority, cpus, name, started })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SOME: &str = "1\t1\t0\t400100\tOTHER\t0\t0,1\tsystemd\n\
                        15\t15\t2\t4208040\tFIFO\t99\t1\tmigration/1\n\
                        902\t900\t1\t400040\tRR\t5\t0,1\tCPU 1/KVM\t8123";

    fn facts(texts: &[&str]) -> Facts {
        let mut facts = Facts::default();
        for (n, text) in texts.iter().enumerate() {
            facts.keep(format!("threads:{n}"), *text);
        }
        facts
    }

    #[test]
    fn a_line_becomes_a_thread() {
        let threads = Threads::of(&facts(&[SOME]));
        assert_eq!((threads.list.len(), threads.damaged, threads.left_out), (3, 0, 0));
        let migration = threads.get(15).unwrap();
        assert!(migration.kernel && migration.bound && migration.policy == Policy::Fifo);
        assert_eq!((migration.priority, migration.cpus.to_string()), (99, "1".to_owned()));
        let vcpu = threads.named("CPU 1/").next().unwrap();
        assert_eq!((vcpu.tid, vcpu.pid, vcpu.kernel, vcpu.started), (902, 900, false, Some(8123)));
        assert_eq!(migration.started, None, "an earlier release did not say it");
        assert_eq!(threads.user().count(), 2);
    }

    #[test]
    fn parts_are_put_together_in_the_order_of_their_numbers() {
        let line = |tid: usize| format!("{tid}\t{tid}\t2\t0\tOTHER\t0\t0\tt{tid}");
        let lines: Vec<_> = (0..12).map(line).collect();
        let texts: Vec<_> = lines.iter().map(String::as_str).collect();
        let mut facts = facts(&texts);
        facts.keep("threads:cut", "7");
        let threads = Threads::of(&facts);
        assert_eq!(
            threads.list.iter().map(|thread| thread.tid).collect::<Vec<_>>(),
            (0..12).collect::<Vec<_>>()
        );
        assert_eq!((threads.damaged, threads.left_out), (0, 7));
    }

    #[test]
    fn a_damaged_line_is_left_out_and_counted() {
        let threads = Threads::of(&facts(&[
            "1\t1\t0\t0\tOTHER\t0\t0\tgood\n2\t2\t0\t0\tOTH\nx\n\n3\t3\t0\t0\tOTHER\t0\t5-\tx",
        ]));
        assert_eq!((threads.list.len(), threads.damaged), (1, 3));
    }

    #[test]
    fn facts_without_threads_are_not_a_system_without_threads() {
        assert!(!Threads::of(&Facts::default()).known);
        assert!(Threads::of(&facts(&[""])).known);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(
            text in "([0-9]{0,12}|[a-fx0-9]{0,9}|OTHER|FIFO|0-8191|9-1|[\t\n -~]{0,9}|\t|\n){0,60}",
            cut in "[0-9x]{0,30}",
        ) {
            let mut facts = facts(&[&text]);
            facts.keep("threads:cut", cut);
            let threads = Threads::of(&facts);
            prop_assert!(threads.list.len() + threads.damaged <= text.lines().count());
        }

        #[test]
        fn what_is_written_is_read_back(
            tid in any::<u32>(), pid in any::<u32>(), flags in any::<u32>(), priority in 0u32..100,
            name in "[ -~]{0,20}",
        ) {
            let line = format!("{tid}\t{pid}\t2\t{flags:x}\tFIFO\t{priority}\t0,2-5\t{name}");
            let threads = Threads::of(&facts(&[&line]));
            let thread = &threads.list[0];
            prop_assert_eq!((thread.tid, thread.pid, thread.priority), (tid, pid, priority));
            // `Facts::text` trims, and so the last name may lose blanks at its end.
            prop_assert_eq!(thread.name.trim_end(), name.trim_end());
        }
    }
}
