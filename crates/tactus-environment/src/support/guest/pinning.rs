//! Where the threads of a guest run, and with which right.

use std::path::Path;

use tactus_model::CpuSet;
use tactus_model::message::Note;
use tactus_system::System;

use crate::Layout;

/// The priority of measured vCPUs. The lowest: above everything ordinary, below the kernel's own
/// real-time threads.
pub const PRIORITY: u32 = 1;

/// The threads of a guest.
pub struct Threads<'a> {
    /// QEMU's process id.
    pub process: u32,
    /// Thread of each vCPU, by its number.
    pub vcpus: &'a [(u32, u32)],
}

/// The vCPUs that get SCHED_FIFO: the measured ones, as long as at least one housekeeping CPU is left for everything
/// else. A vCPU never sleeps while its guest is busy. With SCHED_FIFO on the last CPU it would lock the user out of
/// the machine.
pub fn fifo(layout: &Layout, measured: &CpuSet, housekeeping: &CpuSet) -> CpuSet {
    let inside: CpuSet = layout.inside().and(measured);
    let outside: CpuSet =
        layout.cpus.iter().filter(|(cpu, _)| inside.contains(*cpu)).map(|(_, cpu)| *cpu).collect();
    if housekeeping.minus(&outside).is_empty() { CpuSet::default() } else { inside }
}

/// Places the threads. Every step that fails is a note.
pub fn settle(
    threads: &Threads<'_>,
    layout: &Layout,
    measured: &CpuSet,
    housekeeping: &CpuSet,
    system: &dyn System,
) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut done = Vec::new();
    let fifo = fifo(layout, measured, housekeeping);
    for (vcpu, thread) in threads.vcpus {
        let Some((_, cpu)) = layout.cpus.iter().find(|(inside, _)| inside == vcpu) else { continue };
        match system.place(*thread, &CpuSet::one(*cpu)) {
            Ok(()) => done.push(format!("vCPU {vcpu} on CPU {cpu}")),
            Err(error) => notes.push(Note::obstacle(
                format!("vCPU {vcpu} could not be pinned to CPU {cpu}: {error}"),
                "allow tactus that CPU (its cpuset or affinity)",
            )),
        }
        if fifo.contains(*vcpu) {
            match system.make_fifo(*thread, PRIORITY) {
                Ok(()) => done.push(format!("vCPU {vcpu} with SCHED_FIFO {PRIORITY}")),
                Err(error) => notes.push(Note::obstacle(
                    format!("vCPU {vcpu} did not get SCHED_FIFO: {error}"),
                    "run as root, or allow real-time priority (rtprio in /etc/security/limits.conf, CAP_SYS_NICE)",
                )),
            }
        }
    }
    let missing = layout.cpus.len().saturating_sub(threads.vcpus.len());
    if missing > 0 {
        notes.push(Note::obstacle(
            format!("QEMU did not name the threads of {missing} vCPUs; they run on any CPU"),
            "report this with QEMU's version",
        ));
    }
    if fifo.is_empty() && !measured.is_empty() {
        notes.push(Note::obstacle(
            "no vCPU got SCHED_FIFO: no CPU is left for everything else",
            "give the guest CPUs that leave one to the machine",
        ));
    }
    match place_others(threads, housekeeping, system) {
        Ok(count) => done.push(format!("QEMU's {count} other threads on CPU {housekeeping}")),
        Err(error) => notes.push(Note::obstacle(
            format!("QEMU's other threads could not be restricted to CPU {housekeeping}: {error}"),
            "allow tactus those CPUs (its cpuset or affinity)",
        )),
    }
    if !done.is_empty() {
        notes.insert(0, Note::info(done.join(", ")));
    }
    notes
}

fn place_others(threads: &Threads<'_>, housekeeping: &CpuSet, system: &dyn System) -> std::io::Result<usize> {
    let tasks = system.list(Path::new(&format!("/proc/{}/task", threads.process)))?;
    let tasks = tasks.iter().filter_map(|path| path.file_name()?.to_str()?.parse::<u32>().ok());
    let others: Vec<u32> =
        tasks.filter(|task| !threads.vcpus.iter().any(|(_, thread)| thread == task)).collect();
    for thread in &others {
        system.place(*thread, housekeeping)?;
    }
    Ok(others.len())
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    fn layout() -> Layout {
        Layout { cpus: vec![(0, 0), (1, 2), (2, 3)], measuring: "1-2".parse().unwrap() }
    }

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn measured_vcpus_are_fifo_on_their_cpus_and_the_rest_keeps_house() {
        let machine = ["100", "101", "102", "103", "104"]
            .into_iter()
            .fold(Memory::new(), |machine, task| machine.file(format!("/proc/100/task/{task}/stat"), ""));
        let threads = Threads { process: 100, vcpus: &[(0, 101), (1, 102), (2, 103)] };
        let notes = settle(&threads, &layout(), &set("1-2"), &set("0-1"), &machine);
        assert_eq!(machine.fifo(), [(102, 1), (103, 1)]);
        let placed = machine.placed();
        for expected in [(101, "0"), (102, "2"), (103, "3"), (100, "0,1"), (104, "0,1")] {
            assert!(placed.contains(&(expected.0, expected.1.to_owned())), "{expected:?} in {placed:?}");
        }
        assert_eq!(notes.len(), 1, "{notes:?}");
    }

    #[test]
    fn the_last_cpu_is_never_taken_from_the_machine() {
        assert!(fifo(&layout(), &set("0-2"), &set("0,2-3")).is_empty());
        assert_eq!(fifo(&layout(), &set("1"), &set("0")), set("1"));
        let one = Layout { cpus: vec![(0, 0)], measuring: set("0") };
        let machine = Memory::new();
        let notes = settle(&Threads { process: 1, vcpus: &[(0, 7)] }, &one, &set("0"), &set("0"), &machine);
        assert!(machine.fifo().is_empty());
        assert!(notes.iter().any(|note| note.text.contains("no CPU is left")), "{notes:?}");
    }
}
