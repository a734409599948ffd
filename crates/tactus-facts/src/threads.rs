//! Every thread that /proc shows: who it is, how it is scheduled, where it may run.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use tactus_model::CpuSet;
use tactus_model::facts::Reading;
use tactus_model::patience::has_many_numbers;

use crate::read::{Collector, names, text};

/// Threads that are listed; a reading then says how many more there are.
const MOST_THREADS: usize = 8192;
/// Processes with real-time threads that are looked at more closely.
const MOST_PROCESSES: usize = 64;

/// A process with user threads, for those who look at it more closely.
#[derive(Debug)]
pub struct Group {
    /// Its process id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Major faults so far, of all its threads.
    pub major_faults: u64,
    /// Whether one of its threads has a real-time policy.
    pub realtime: bool,
    /// Whether one of its threads is a virtual CPU.
    pub virtual_cpu: bool,
}

/// The fields of /proc/PID/stat (proc_pid_stat(5)).
#[derive(Debug, PartialEq)]
struct Stat<'a> {
    name: &'a str,
    ppid: u32,
    flags: u32,
    major_faults: u64,
    threads: u32,
    started: u64,
    priority: u32,
    policy: u32,
}

/// The daemon that boosts threads which starve.
const RESCUER: &str = "stalld";

const PF_KTHREAD: u32 = 0x0020_0000;

/// Keeps them all; returns the user processes.
pub fn keep(it: &mut Collector, affinity: Affinity) -> Vec<Group> {
    let mut list = List { affinity, lines: Vec::new(), left_out: 0, groups: Vec::new(), written: Vec::new() };
    // The kernel lists them by rising id.
    for pid in names("/proc").unwrap_or_default().iter().filter_map(|name| name.parse().ok()) {
        list.process(pid);
    }
    it.facts.keep_parts("threads", &list.lines);
    if list.left_out > 0 {
        it.facts.keep("threads:cut", list.left_out.to_string());
    }
    keep_rescuers(it, &list.groups);
    for group in list.groups.iter().filter(|group| group.realtime).take(MOST_PROCESSES) {
        let pid = group.pid;
        it.facts.keep(format!("process:{pid}:name"), group.name.as_str());
        it.facts.keep(format!("process:{pid}:majflt"), group.major_faults.to_string());
        let locked = status(pid).as_deref().and_then(|text| field(text, "VmLck").map(str::to_owned));
        it.facts.0.insert(format!("process:{pid}:VmLck"), locked.map_or(Reading::Absent, Reading::Text));
    }
    list.groups
}

/// Keeps the owner and the program of each process that has the rescuer's name. Any user can give a process this
/// name: processes of users other than root are left out, and do not count towards the limit.
fn keep_rescuers(it: &mut Collector, groups: &[Group]) {
    let called = groups.iter().filter(|group| group.name == RESCUER);
    let of_root = called.filter_map(|group| {
        let text = status(group.pid)?;
        (owner(&text) == Some("0")).then_some((group.pid, text))
    });
    for (pid, text) in of_root.take(MOST_PROCESSES) {
        it.facts.keep(format!("process:{pid}:uid"), "0");
        let numbers = field(&text, "NSpid").map_or(Reading::Absent, |numbers| Reading::Text(numbers.into()));
        it.facts.0.insert(format!("process:{pid}:NSpid"), numbers);
        // The files of a container are not looked at: they may be on a file system that does not answer.
        let here = if has_many_numbers(&text) {
            Err(io::Error::other("it runs in a container"))
        } else {
            program(pid)
        };
        it.keep_result(format!("process:{pid}:exe"), here);
    }
}

/// The path of a process's program, if it is this file here too: a container has others by the same paths.
fn program(pid: u32) -> io::Result<String> {
    let link = format!("/proc/{pid}/exe");
    let path = fs::read_link(&link)?;
    let (own, here) = (fs::metadata(&link)?, fs::metadata(&path)?);
    if (own.dev(), own.ino()) != (here.dev(), here.ino()) {
        return Err(io::Error::other("the file of this name is another one here"));
    }
    Ok(path.to_string_lossy().into_owned())
}

/// /proc/PID/status.
pub fn status(pid: u32) -> Option<String> {
    text(&format!("/proc/{pid}/status"))
}

/// The effective user of a process, by its /proc/PID/status.
pub fn owner(status: &str) -> Option<&str> {
    field(status, "Uid")?.split_whitespace().nth(1)
}

/// A value of /proc/PID/status, /proc/PID/smaps and the like.
pub fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()))
}

/// Asks for the CPUs of a thread.
type Affinity = fn(u32) -> io::Result<Vec<u64>>;

struct List {
    affinity: Affinity,
    lines: Vec<String>,
    left_out: usize,
    groups: Vec<Group>,
    /// Thousands of threads have the same few masks.
    written: Vec<(Vec<u64>, String)>,
}

impl List {
    fn process(&mut self, pid: u32) {
        // The process may have ended in the meantime.
        let Some(stat_text) = text(&format!("/proc/{pid}/stat")) else { return };
        let Some(stat) = parse(&stat_text) else { return };
        if stat.flags & PF_KTHREAD != 0 {
            self.thread(pid, pid, &stat);
            return;
        }
        let mut group = Group {
            pid,
            name: stat.name.to_owned(),
            major_faults: stat.major_faults,
            realtime: is_realtime(stat.policy),
            virtual_cpu: is_virtual_cpu(stat.name),
        };
        self.thread(pid, pid, &stat);
        if stat.threads > 1 {
            for tid in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                let Some(tid) = tid.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                    continue;
                };
                if tid == pid {
                    continue;
                }
                if self.lines.len() >= MOST_THREADS {
                    self.left_out += 1;
                    continue;
                }
                let Some(stat_text) = text(&format!("/proc/{pid}/task/{tid}/stat")) else { continue };
                let Some(stat) = parse(&stat_text) else { continue };
                group.realtime |= is_realtime(stat.policy);
                group.virtual_cpu |= is_virtual_cpu(stat.name);
                self.thread(tid, pid, &stat);
            }
        }
        self.groups.push(group);
    }

    fn thread(&mut self, tid: u32, pid: u32, stat: &Stat) {
        if self.lines.len() >= MOST_THREADS {
            self.left_out += 1;
            return;
        }
        let Ok(mask) = (self.affinity)(tid) else { return };
        let at = self.written.iter().position(|(known, _)| *known == mask).unwrap_or_else(|| {
            let text = list_of(&mask).to_string();
            self.written.push((mask, text));
            self.written.len() - 1
        });
        let cpus = &self.written[at].1;
        let Stat { ppid, flags, priority, policy, name, started, .. } = stat;
        let name = name.replace(|c: char| c.is_control(), " ");
        let policy = policy_word(*policy);
        self.lines.push(format!(
            "{tid}\t{pid}\t{ppid}\t{flags:x}\t{policy}\t{priority}\t{cpus}\t{name}\t{started}"
        ));
    }
}

/// The CPUs of a mask.
fn list_of(mask: &[u64]) -> CpuSet {
    let bits = |(n, word): (usize, &u64)| {
        let (base, word) = (u32::try_from(n * 64).unwrap_or(u32::MAX), *word);
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| base.saturating_add(bit))
    };
    mask.iter().enumerate().flat_map(bits).collect()
}

fn parse(text: &str) -> Option<Stat<'_>> {
    // The name stands in brackets and may hold anything, brackets and newlines too.
    let (start, end) = (text.find('(')?, text.rfind(')')?);
    let name = text.get(start + 1..end)?;
    let fields: Vec<&str> = text.get(end + 1..)?.split_ascii_whitespace().collect();
    // The first field behind the name is the third.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let short = |field: usize| number(field).and_then(|value| u32::try_from(value).ok());
    Some(Stat {
        name,
        ppid: short(4)?,
        flags: short(9)?,
        major_faults: number(12)?,
        threads: short(20)?,
        started: number(22)?,
        priority: short(40)?,
        policy: short(41)?,
    })
}

/// SCHED_FIFO, SCHED_RR, SCHED_DEADLINE.
fn is_realtime(policy: u32) -> bool {
    matches!(policy, 1 | 2 | 6)
}

/// QEMU's names for them, with `debug-threads=on`.
fn is_virtual_cpu(name: &str) -> bool {
    name.strip_prefix("CPU ")
        .and_then(|rest| rest.split_once('/'))
        .is_some_and(|(number, by)| number.parse::<u32>().is_ok() && matches!(by, "KVM" | "TCG"))
}

/// By linux/sched.h.
fn policy_word(policy: u32) -> &'static str {
    match policy {
        0 => "OTHER",
        1 => "FIFO",
        2 => "RR",
        3 => "BATCH",
        5 => "IDLE",
        6 => "DEADLINE",
        _ => "UNKNOWN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "902 (CPU 1/KVM) S 1 900 900 0 -1 4194368 100 0 7 0 12 3 0 0 -2 0 5 0 8123 4294967296 \
                        51200 18446744073709551615 1 1 0 0 0 0 0 4096 16963 0 0 0 -1 5 1 2 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn the_fields_of_a_stat_line_are_found_behind_its_name() {
        let stat = parse(STAT).unwrap();
        assert_eq!(
            stat,
            Stat {
                name: "CPU 1/KVM",
                ppid: 1,
                flags: 0x40_0040,
                major_faults: 7,
                threads: 5,
                started: 8123,
                priority: 1,
                policy: 2,
            }
        );
        assert!(is_virtual_cpu(stat.name) && is_realtime(stat.policy));
        let odd = STAT.replace("CPU 1/KVM", "a) (b\n) S 1");
        assert_eq!(parse(&odd).unwrap().name, "a) (b\n) S 1");
    }

    #[test]
    fn a_cut_line_is_no_thread() {
        for end in 0..STAT.len() - 40 {
            assert!(parse(&STAT[..end]).is_none_or(|stat| stat.policy <= 2), "{end}");
        }
    }

    #[test]
    fn only_virtual_cpus_are_called_so() {
        for (name, is) in [
            ("CPU 0/KVM", true),
            ("CPU 12/TCG", true),
            ("CPU 0/x", false),
            ("CPU x/KVM", false),
            ("qemu", false),
        ] {
            assert_eq!(is_virtual_cpu(name), is, "{name}");
        }
    }

    #[test]
    fn the_program_of_a_process_is_named_where_it_is_the_same_file_here() {
        let own = fs::canonicalize("/proc/self/exe").unwrap();
        assert_eq!(program(std::process::id()).unwrap(), own.to_string_lossy());
        assert!(program(u32::MAX).is_err());
    }

    #[test]
    fn masks_of_several_words_become_lists() {
        assert_eq!(list_of(&[0b101, 0, 1]).to_string(), "0,2,128");
        assert_eq!(list_of(&[]).to_string(), "");
    }
}
