//! When the host kept virtual CPUs from running.

use serde::{Deserialize, Serialize};

/// The host's scheduling record of the threads of an environment's virtual CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// How often the host looked, in ns: when a wait was is known to this.
    pub look_ns: u64,
    /// For each virtual CPU, how long its thread waited for a CPU in all, in ns.
    pub totals: Vec<(u32, u64)>,
    /// The longest waits, longest first.
    pub longest: Vec<Wait>,
    /// Set if not all waits could be kept: those shorter than this may be missing, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_ns: Option<u64>,
}

/// A time in which the host kept a virtual CPU's thread from running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The virtual CPU.
    pub cpu: u32,
    /// The end of the wait, in ns since the environment began to measure, as exactly as the host can tell: the clocks
    /// are compared by the arrival of ticks.
    pub at_ns: i64,
    /// How long the thread waited, in ns: the least that one wait took.
    pub waited_ns: u64,
    /// It was stopped by a tracer, rather than waiting for a CPU.
    pub stopped: bool,
    /// The thread that had its CPU longest meanwhile, as `NUMBER NAME`, if that was recorded. The end is then known to
    /// the microsecond on this machine's clock, rather than to a look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// It had its CPU and was out of its guest: the hypervisor, or the program that runs the machine, worked for it.
    /// The end is also known to the microsecond.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
}
