//! Where the time of CPUs went while a row was measured.

use serde::{Deserialize, Serialize};

use crate::number::ratio;

/// CPU time of one kernel while a row was measured, or in one phase of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Breakdown {
    /// The phase: `TX` (streams to the peer), `RX` (streams from it); absent: the whole measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Length of that time, in ns.
    pub ns: u64,
    /// Context switches of all CPUs.
    pub switches: u64,
    /// The time of each CPU.
    pub cpus: Vec<CpuTime>,
    /// The threads that ran longest, longest first; empty: the kernel keeps no record of them.
    pub threads: Vec<ThreadTime>,
    /// The interrupts that came most often, most frequent first.
    pub interrupts: Vec<Arrivals>,
    /// The soft interrupts that were done, most frequent first.
    pub softirqs: Vec<Arrivals>,
}

/// The time of one CPU, as /proc/stat counts it, in ns. No time is counted twice: a guest's time counts only as a
/// guest's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuTime {
    /// The CPU.
    pub cpu: u32,
    /// In user mode.
    pub user_ns: u64,
    /// In user mode, of low priority.
    pub nice_ns: u64,
    /// In system calls and in threads of the kernel.
    pub system_ns: u64,
    /// In handlers of interrupts.
    pub hardirq_ns: u64,
    /// In soft interrupts, regardless of the interrupted thread.
    pub softirq_ns: u64,
    /// In virtual CPUs of guests.
    pub guest_ns: u64,
    /// Taken by a hypervisor.
    pub steal_ns: u64,
    /// Idle, or waiting for a disk.
    pub idle_ns: u64,
}

/// A thread and its time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadTime {
    /// Its name: `vhost-812`, `CPU 0/KVM`, `ksoftirqd/1`. Workers of the kernel on one CPU count as one.
    pub name: String,
    /// Name of its process.
    pub process: String,
    /// Id of that process.
    pub pid: u32,
    /// Time that it was on a CPU, in ns.
    pub ns: u64,
}

/// Interrupts of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Arrivals {
    /// Name: `24 virtio0-input.0`, `LOC Local timer interrupts`, `NET_RX`.
    pub name: String,
    /// Number of arrivals, for each CPU that received any.
    pub counts: Vec<(u32, u64)>,
}

/// Kinds of time, in the order in which they are shown.
pub const KINDS: [&str; 8] = ["user", "nice", "system", "hardirq", "softirq", "guest", "steal", "idle"];

impl CpuTime {
    /// Its times, in the order of [`KINDS`].
    #[must_use]
    pub const fn times_ns(&self) -> [u64; KINDS.len()] {
        let Self { user_ns, nice_ns, system_ns, hardirq_ns, softirq_ns, guest_ns, steal_ns, idle_ns, .. } =
            *self;
        [user_ns, nice_ns, system_ns, hardirq_ns, softirq_ns, guest_ns, steal_ns, idle_ns]
    }

    /// The time of a CPU from its times in the order of [`KINDS`].
    #[must_use]
    pub const fn of(cpu: u32, times_ns: [u64; KINDS.len()]) -> Self {
        let [user_ns, nice_ns, system_ns, hardirq_ns, softirq_ns, guest_ns, steal_ns, idle_ns] = times_ns;
        Self { cpu, user_ns, nice_ns, system_ns, hardirq_ns, softirq_ns, guest_ns, steal_ns, idle_ns }
    }

    /// The part of its time that each kind was, in the order of [`KINDS`]; `None`: nothing was counted.
    #[must_use]
    pub fn parts(&self) -> Option<[f64; KINDS.len()]> {
        let times = self.times_ns();
        let all = times.iter().fold(0_u64, |all, ns| all.saturating_add(*ns));
        (all > 0).then(|| times.map(|ns| ratio(ns, all)))
    }
}

impl Arrivals {
    /// How often on all CPUs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |all, (_, count)| all.saturating_add(*count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_cpus_time_are_those_of_all_that_was_counted() {
        let cpu = CpuTime::of(3, [10, 0, 20, 0, 10, 40, 0, 20]);
        assert_eq!((cpu.cpu, cpu.guest_ns, cpu.idle_ns), (3, 40, 20));
        assert_eq!(CpuTime::of(3, cpu.times_ns()), cpu);
        let parts = cpu.parts().unwrap();
        assert!((parts[5] - 0.4).abs() < 1e-9 && (parts.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(CpuTime::default().parts(), None);
        assert!(CpuTime::of(0, [u64::MAX; 8]).parts().is_some(), "a stranger's numbers overflow nothing");
    }
}
