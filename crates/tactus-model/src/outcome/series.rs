//! The results of one measuring thread: its key, its largest values, and its counters.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::trace::Trace;

/// The key of a series within one measurement: its thread, and where and how that thread runs.
/// Twelve threads on one core, or timerlat's interrupt and thread latency, are separate series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesKey {
    /// CPU of the environment on which the thread is pinned.
    pub cpu: u32,
    /// Number of the measuring thread, from 0.
    pub thread: u32,
    /// Real-time priority (0 for SCHED_DEADLINE and SCHED_OTHER).
    pub priority: u32,
    /// The kind of values: `thread` (wake-up of the thread), `gap` (polled), `irq` (a timer's interrupt handler, by
    /// timerlat).
    pub kind: String,
}

impl SeriesKey {
    /// The id of the series: environment, CPU, thread and kind, as in `guest/cpu1/t0/thread`.
    #[must_use]
    pub fn id(&self, environment: &str) -> String {
        format!("{environment}/{self}")
    }
}

impl fmt::Display for SeriesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu{}/t{}/{}", self.cpu, self.thread, self.kind)
    }
}

/// A measuring thread as it was planned: the n-th on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Thread {
    /// CPU of the environment.
    pub cpu: u32,
    /// Its number on that CPU, from 0.
    pub thread: u32,
}

impl SeriesKey {
    /// The thread that it is of.
    #[must_use]
    pub const fn of_thread(&self) -> Thread {
        Thread { cpu: self.cpu, thread: self.thread }
    }
}

/// Counters of a measuring thread since the measurement started. Unreadable ones are `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCounters {
    /// Page faults without I/O.
    pub minor_faults: Option<u64>,
    /// Page faults with I/O.
    pub major_faults: Option<u64>,
    /// Times the thread gave up its CPU.
    pub voluntary_switches: Option<u64>,
    /// Times it was taken away.
    pub involuntary_switches: Option<u64>,
    /// CPU time of the thread, in ns.
    pub cpu_ns: Option<u64>,
    /// Time that the hypervisor gave this CPU to others, in ns.
    pub steal_ns: Option<u64>,
    /// System management interrupts on this CPU.
    pub smi: Option<u64>,
    /// Misses of the last-level cache on this CPU, by any thread (a hardware counter). Only in the last tick: to read
    /// it, the kernel interrupts the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llc_misses: Option<u64>,
}

impl ThreadCounters {
    /// The sum of the counters of two stretches of time. A counter that is unknown in one of them is unknown in the
    /// sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let sum = |of: fn(&Self) -> Option<u64>| Some(of(self)?.saturating_add(of(other)?));
        Self {
            minor_faults: sum(|of| of.minor_faults),
            major_faults: sum(|of| of.major_faults),
            voluntary_switches: sum(|of| of.voluntary_switches),
            involuntary_switches: sum(|of| of.involuntary_switches),
            cpu_ns: sum(|of| of.cpu_ns),
            steal_ns: sum(|of| of.steal_ns),
            smi: sum(|of| of.smi),
            llc_misses: sum(|of| of.llc_misses),
        }
    }
}

/// One of the largest values of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlier {
    /// The measuring activity.
    pub activity: u32,
    /// The series.
    pub series: SeriesKey,
    /// When the thread woke, in ns since the measurement started.
    pub at_ns: u64,
    /// The latency, in ns.
    pub value_ns: u64,
    /// The kernel's activity on the CPU meanwhile; `None`: it was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}
