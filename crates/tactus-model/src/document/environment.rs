//! The details of each environment: its interrupts and timers, and the findings of the audit.

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Role};

/// The interrupts and timers of one environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SystemEntry {
    /// The environment, with the state of the machine: `host@cpu-partitioning`.
    pub place: String,
    /// Release of its kernel.
    pub kernel: Option<String>,
    /// Whether that is fully preemptible.
    pub preempt_rt: Option<bool>,
    /// Revision of the processor's microcode.
    pub microcode: Option<String>,
    /// The devices whose interrupts wake its CPUs; `lapic-deadline` is the TSC-deadline timer.
    pub clockevent: Option<String>,
    /// The kernel's messages about TSC-deadline.
    pub tsc_deadline: Option<String>,
    /// Microseconds of a second that real-time threads may run; `-1`: all.
    pub sched_rt_runtime_us: Option<String>,
    /// Whether its threads could be listed.
    pub threads_known: bool,
    /// Threads that handle interrupts.
    pub irq_threads: Vec<ThreadEntry>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadEntry {
    /// Its id.
    pub tid: u32,
    /// `FIFO`, `RR`, `OTHER`, ...
    pub policy: String,
    /// Real-time priority.
    pub priority: u32,
    /// CPUs that it may run on, as a cpulist.
    pub cpus: String,
    /// Its name.
    pub name: String,
}

/// The findings of the audit in one environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditEntry {
    /// Name of the environment.
    pub environment: String,
    /// Its role.
    pub role: Role,
    /// CPUs for real-time work, as a cpulist.
    pub isolated: String,
    /// Number of checks that could not be known or read from there.
    pub unknown: usize,
    /// The findings, worst first: those of `tactus audit --json` whose state is `finding`.
    pub findings: Vec<Finding>,
}
