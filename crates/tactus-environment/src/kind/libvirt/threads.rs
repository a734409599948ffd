//! The threads of a domain: their roles, where they may run, and their scheduling, as the kernel reports them.
//! The kernel is asked, and not libvirt: libvirt repeats what it was told, which need not be so.

use std::path::Path;

use tactus_model::CpuSet;
use tactus_model::message::Note;
use tactus_system::System;

use crate::Layout;
use crate::support::guest::PRIORITY;

/// SCHED_FIFO of sched.h.
const FIFO: u32 = 1;

/// A thread as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub id: u32,
    /// The vCPU that it executes, if it does.
    pub vcpu: Option<u32>,
    /// Whether it executes the vCPU by emulation (TCG).
    pub emulated: bool,
    /// CPUs that it may run on.
    pub allowed: CpuSet,
    /// Its policy, by its number in sched.h.
    pub policy: u32,
    /// Its real-time priority, or 0.
    pub priority: u32,
}

/// The process of the domain with this name and UUID. libvirt puts the UUID on QEMU's command line, but any user can
/// start a process with it. Of several, the one counts whose number libvirt has written where only root can write.
///
/// # Errors
/// The numbers of the processes with this UUID, if libvirt has written down none of them.
pub fn process(name: &str, uuid: &str, system: &dyn System) -> Result<Option<u32>, Vec<u32>> {
    let wanted = format!("\0-uuid\0{uuid}\0");
    let says_so = |pid: &u32| {
        let words = system.read(Path::new(&format!("/proc/{pid}/cmdline"))).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&wanted)
    };
    let mut found: Vec<u32> = numbers("/proc", system).into_iter().filter(says_so).collect();
    let written = system.text(&format!("/run/libvirt/qemu/{name}.pid"));
    if let Some(pid) = written.and_then(|text| text.trim().parse().ok()).filter(|pid| found.contains(pid)) {
        return Ok(Some(pid));
    }
    if found.len() > 1 { Err(found) } else { Ok(found.pop()) }
}

/// All threads of a process.
pub fn of(process: u32, system: &dyn System) -> Vec<Thread> {
    let tasks = format!("/proc/{process}/task");
    numbers(&tasks, system).into_iter().filter_map(|id| read(&format!("{tasks}/{id}"), id, system)).collect()
}

/// The thread of each vCPU, by its number.
pub fn vcpus(threads: &[Thread]) -> Vec<(u32, u32)> {
    let mut vcpus: Vec<(u32, u32)> = threads.iter().filter_map(|t| Some((t.vcpu?, t.id))).collect();
    vcpus.sort_unstable();
    vcpus
}

fn numbers(dir: &str, system: &dyn System) -> Vec<u32> {
    let entries = system.list(Path::new(dir)).unwrap_or_default();
    entries.iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect()
}

fn read(dir: &str, id: u32, system: &dyn System) -> Option<Thread> {
    let stat = system.text(&format!("{dir}/stat"))?;
    let status = system.text(&format!("{dir}/status"))?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    // The name stands in parentheses and may have any in it: proc(5), fields 3 and following.
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    Some(Thread {
        id,
        // QEMU names them so (debug-threads=on, which libvirt always sets).
        emulated: name.starts_with("CPU ") && name.ends_with("/TCG"),
        vcpu: name.strip_prefix("CPU ").and_then(|rest| rest.split_once('/')?.0.parse().ok()),
        allowed: allowed.trim().parse().ok()?,
        priority: field(40)?,
        policy: field(41)?,
    })
}

/// Notes on the requested placement, and whether it holds.
pub fn compare(threads: &[Thread], layout: &Layout, fifo: &CpuSet, housekeeping: &CpuSet) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut holds = Vec::new();
    for (vcpu, cpu) in &layout.cpus {
        let Some(thread) = threads.iter().find(|thread| thread.vcpu == Some(*vcpu)) else {
            notes.push(Note::obstacle(
                format!("no thread of the domain is named vCPU {vcpu}: its CPU is unknown"),
                "report this with the versions of libvirt and QEMU",
            ));
            continue;
        };
        if thread.allowed == CpuSet::one(*cpu) {
            holds.push(format!("vCPU {vcpu} on CPU {cpu}"));
        } else {
            notes.push(Note::obstacle(
                format!("vCPU {vcpu} should be pinned to CPU {cpu}, but may run on CPU {}", thread.allowed),
                "allow libvirt that CPU (the cpuset of machine.slice)",
            ));
        }
        let realtime = thread.policy == FIFO && thread.priority == PRIORITY;
        if fifo.contains(*vcpu) && realtime {
            holds.push(format!("vCPU {vcpu} with SCHED_FIFO {PRIORITY}"));
        } else if fifo.contains(*vcpu) {
            notes.push(Note::obstacle(
                format!("vCPU {vcpu} should have SCHED_FIFO {PRIORITY}, but does not"),
                "see what libvirt reported about it",
            ));
        }
    }
    let others: Vec<&Thread> = threads.iter().filter(|thread| thread.vcpu.is_none()).collect();
    let strays = others.iter().filter(|thread| !thread.allowed.minus(housekeeping).is_empty()).count();
    if strays == 0 {
        holds.push(format!("its {} other threads on CPU {housekeeping}", others.len()));
    } else {
        notes.push(Note::obstacle(
            format!("{strays} of the domain's other threads may leave CPU {housekeeping}"),
            "see what libvirt reported about emulatorpin",
        ));
    }
    notes.insert(0, Note::info(format!("read from the domain's threads: {}", holds.join(", "))));
    notes
}

/// How the threads of a domain stand that others have made, and what that means for those that are measured.
pub fn stand(threads: &[Thread], measured: &CpuSet) -> Vec<Note> {
    let mut vcpus: Vec<&Thread> = threads.iter().filter(|thread| thread.vcpu.is_some()).collect();
    vcpus.sort_unstable_by_key(|thread| thread.vcpu);
    let number = |thread: &Thread| thread.vcpu.unwrap_or_default();
    let of = |thread: &&Thread| {
        let right = match (thread.policy, thread.priority) {
            (FIFO, priority) => format!(" with SCHED_FIFO {priority}"),
            (_, 0) => String::new(),
            (_, priority) => format!(" with SCHED_RR {priority}"),
        };
        format!("vCPU {} on CPU {}{right}", number(thread), thread.allowed)
    };
    let mut said: Vec<String> = vcpus.iter().map(of).collect();
    let others = threads.iter().filter(|thread| thread.vcpu.is_none());
    let near: CpuSet = others.clone().fold(CpuSet::default(), |all, thread| all.or(&thread.allowed));
    said.push(format!("its {} other threads on CPU {near}", others.count()));
    let mut notes = vec![Note::info(format!("read from the domain's threads: {}", said.join(", ")))];
    for thread in vcpus.into_iter().filter(|thread| measured.contains(number(thread))) {
        if thread.priority == 0 {
            notes.push(Note::obstacle(
                format!("vCPU {} is measured but has no real-time priority: any task may keep it off its CPU", number(thread)),
                "give it one in the domain's document: <vcpusched vcpus='...' scheduler='fifo' priority='1'/>",
            ));
        }
        if !near.and(&thread.allowed).is_empty() {
            notes.push(Note::obstacle(
                format!(
                    "other threads of the domain may run on the CPU of vCPU {}, which is measured",
                    number(thread)
                ),
                "keep them off in the domain's document: <emulatorpin cpuset='...'/>",
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tactus_system::Memory;

    use super::*;

    fn stat(id: u32, name: &str, last: u32, priority: u32, policy: u32) -> String {
        // proc(5), of a thread of QEMU 7.2.
        format!(
            "{id} ({name}) S 1 100 100 0 -1 4194560 9 0 0 0 5 1 0 0 20 0 5 0 163 1 1 18446744073709551615 1 1 0 0 0 0 \
0 4096 0 0 0 0 -1 {last} {priority} {policy} 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    }

    fn machine() -> Memory {
        let thread = |machine: Memory, id: u32, name: &str, on: &str, priority, policy| {
            let last = on.parse::<CpuSet>().unwrap().first().unwrap();
            machine.file(format!("/proc/100/task/{id}/stat"), stat(id, name, last, priority, policy)).file(
                format!("/proc/100/task/{id}/status"),
                format!("Name:\t{name}\nCpus_allowed_list:\t{on}\n"),
            )
        };
        let machine = Memory::new()
            .file("/proc/100/cmdline", "/usr/bin/qemu-system-x86_64\0-uuid\0aa-bb\0-display\0none\0")
            .file("/proc/99/cmdline", "grep\0-uuid\0aa-bbc\0");
        let machine = thread(machine, 100, "qemu-system-x86", "0", 0, 0);
        let machine = thread(machine, 102, "CPU 1/TCG", "2", 1, 1);
        thread(machine, 101, "CPU 0/TCG", "0-1", 0, 0)
    }

    #[test]
    fn a_domains_process_and_vcpus_are_found_by_what_the_kernel_says() {
        let machine = machine();
        assert_eq!(process("vm", "aa-bb", &machine), Ok(Some(100)));
        assert_eq!(process("vm", "aa", &machine), Ok(None));
        let threads = of(100, &machine);
        assert_eq!(vcpus(&threads), [(0, 101), (1, 102)]);
        assert_eq!(threads[2].allowed, CpuSet::one(2));
        assert_eq!((threads[2].priority, threads[2].policy), (1, 1));
        assert!(of(7, &machine).is_empty());
    }

    #[test]
    fn a_process_of_somebody_else_that_says_it_is_the_domain_is_not_taken_for_it() {
        let machine = machine().file("/proc/1007/cmdline", "sleep\0-uuid\0aa-bb\0");
        assert_eq!(process("vm", "aa-bb", &machine), Err(vec![100, 1007]));
        let machine = machine.file("/run/libvirt/qemu/vm.pid", "100\n");
        assert_eq!(process("vm", "aa-bb", &machine), Ok(Some(100)));
        // 7 is the process of another domain.
        let machine = machine.file("/run/libvirt/qemu/vm.pid", "7\n");
        assert_eq!(process("vm", "aa-bb", &machine), Err(vec![100, 1007]));
    }

    #[test]
    fn what_does_not_hold_is_told() {
        let layout = Layout { cpus: vec![(0, 0), (1, 2), (2, 3)], measuring: CpuSet::one(1) };
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        let notes = compare(&of(100, &machine()), &layout, &set("0-1"), &set("0"));
        let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "read from the domain's threads: vCPU 1 on CPU 2, vCPU 1 with SCHED_FIFO 1, its 1 other threads on CPU 0",
                "vCPU 0 should be pinned to CPU 0, but may run on CPU 0,1",
                "vCPU 0 should have SCHED_FIFO 1, but does not",
                "no thread of the domain is named vCPU 2: its CPU is unknown",
            ]
        );
        let strays = compare(&of(100, &machine()), &layout, &set(""), &set("1"));
        assert!(strays.iter().any(|note| note.text.contains("may leave CPU 1")), "{strays:?}");
    }

    #[test]
    fn a_domain_of_others_is_described_as_it_stands() {
        let notes = stand(&of(100, &machine()), &"0-1".parse().unwrap());
        let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "read from the domain's threads: vCPU 0 on CPU 0,1, vCPU 1 on CPU 2 with SCHED_FIFO 1, its 1 other threads \
on CPU 0",
                "vCPU 0 is measured but has no real-time priority: any task may keep it off its CPU",
                "other threads of the domain may run on the CPU of vCPU 0, which is measured",
            ]
        );
        assert!(of(100, &machine()).iter().all(|thread| thread.emulated == thread.vcpu.is_some()));
    }

    proptest! {
        #[test]
        fn no_text_of_the_kernel_makes_the_reader_panic(stat in ".{0,200}", status in "(Cpus_allowed_list:)?.{0,40}") {
            let machine = Memory::new()
                .file("/proc/1/task/1/stat", stat)
                .file("/proc/1/task/1/status", status);
            let _ = of(1, &machine);
        }
    }
}
