//! The readers of facts: any text under any name that they look at is read without a panic, and twice
//! the same.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use tactus_model::CpuSet;
use tactus_model::cmdline::Cmdline;
use tactus_model::facts::{Facts, MAX_READING, Reading};
use tactus_model::interrupts::{Interrupts, compact};
use tactus_model::threads::Threads;
use tactus_model::topology::Topology;

/// Real names; `#` becomes a small number.
const NAMES: &[&str] = &[
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/interrupts",
    "/proc/irq/#/effective_affinity_list",
    "/proc/irq/#/smp_affinity_list",
    "/proc/irq/default_smp_affinity",
    "/proc/self/status",
    "/sys/devices/system/cpu/cpu#/topology/thread_siblings_list",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/nohz_full",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/node#/cpulist",
    "/sys/devices/virtual/workqueue/cpumask",
    "config:CONFIG_PREEMPT_RT",
    "cpuid:0x1:0",
    "dmesg:rcu-offload",
    "interrupts:#",
    "msr:#:0x34",
    "pci:0000:00:0#.0",
    "sched:affinity",
    "threads:#",
    "threads:cut",
    "uname:release",
    "uname:version",
    "vm:#:cmdline",
    "vm:#:hugepages",
];

fuzz_target!(|data: &[u8]| {
    let facts = hostile(data);
    let topology = Topology::of(&facts);
    assert!(!topology.measuring().is_empty() && !topology.online.is_empty());
    let threads = Threads::of(&facts);
    assert!(threads.list.is_sorted_by_key(|thread| thread.tid));
    assert_eq!(Threads::of(&facts), threads);
    let interrupts = Interrupts::of(&facts);
    assert_eq!(Interrupts::of(&facts), interrupts);
    let _ = Cmdline::of(&facts);
    let _ = facts.virtualized();
    for reading in facts.0.values() {
        let (Reading::Text(text) | Reading::Cut(text)) = reading else { continue };
        if let Ok(set) = CpuSet::from_mask(text) {
            assert_eq!(CpuSet::from_mask(&set.mask(64)), Ok(set));
        }
        if text.len() > MAX_READING {
            continue;
        }
        // Both forms of the interrupts say the same.
        let mut long = Facts::default();
        long.keep("/proc/interrupts", text.as_str());
        let mut parts = Facts::default();
        parts.keep_parts("interrupts", compact(text.trim()));
        assert_eq!(Interrupts::of(&parts).list.len(), Interrupts::of(&long).list.len());
    }
});

/// Pieces of the input under names that its bytes choose.
fn hostile(data: &[u8]) -> Facts {
    let mut facts = Facts::default();
    for piece in data.split(|byte| *byte == 0).take(64) {
        let [name, number, kind, text @ ..] = piece else { continue };
        let name = NAMES[usize::from(*name) % NAMES.len()].replace('#', &(number % 8).to_string());
        let text = String::from_utf8_lossy(text).into_owned();
        let reading = match kind % 8 {
            0 => Reading::Absent,
            1 => Reading::Unreadable(text),
            2 => Reading::Cut(text),
            _ => Reading::Text(text),
        };
        facts.0.insert(name, reading);
    }
    facts
}
