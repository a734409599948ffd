//! The threads and interrupts that had the CPU during the largest latencies.

use serde::{Deserialize, Serialize};

use crate::trace::{Candidate, Source};

/// The largest latencies of a measurement, with the threads and interrupts that had the CPU meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlameEntry {
    /// Why no cause can be known; the other fields are then empty.
    #[serde(rename = "unavailable", default, skip_serializing_if = "Option::is_none")]
    pub unknowable: Option<String>,
    /// The source of the records. Of several sources (an environment that was started again), the one that knows least.
    /// Absent: there is no record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Number of latencies: the ten largest, and the others that were recorded because the plan asks for them.
    pub of: usize,
    /// The causes, and the number of latencies of each. `ordinary`: no longer than usual wake-ups; `not known`: no one
    /// part caused it.
    pub causes: Vec<(String, usize)>,
    /// Each latency, the largest first.
    pub latencies: Vec<BlamedLatency>,
}

/// One of these latencies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlamedLatency {
    /// The series.
    pub id: String,
    /// When the thread woke, in ns since the measurement started.
    pub at_ns: u64,
    /// The latency, in ns.
    pub value_ns: u64,
    /// Its cause.
    pub cause: String,
    /// The owners of the CPU during the latency, and the time of each, longest first.
    pub parts: Vec<BlamedPart>,
    /// Time without a known owner, in ns. All parts and this add up to the latency.
    pub unaccounted_ns: u64,
    /// The same as a sequence in time.
    pub spans: Vec<Span>,
    /// Where the source is `proc`: counts from a time that contains the latency and is longer than it. They are no
    /// account, because the part that belongs to the latency is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// What the machine did meanwhile with the thread of the virtual CPU, if the hypervisor caused the latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSide>,
}

/// A time in which the thread of a virtual CPU was kept from running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostSide {
    /// The thread that had its CPU longest, as `NUMBER NAME`; `null`: it was not recorded.
    pub by: Option<String>,
    /// A tracer had stopped it.
    pub stopped: bool,
    /// The thread had its CPU during that time, but was out of its guest. The time is the hypervisor's own work, or
    /// that of the program that runs the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// Time that it was kept from running, in ns.
    pub waited_ns: u64,
    /// The end of that time, in ns since the measurement started, on the environment's clock.
    pub at_ns: i64,
    /// Uncertainty of that end, in ns either way. It is the error of the two clocks, and the time between two readings
    /// if the thread that had the CPU is unknown.
    pub within_ns: u64,
}

/// The time of one owner of the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlamedPart {
    /// The kind of owner.
    pub owner: Owner,
    /// Its name; empty if it has no name.
    pub name: String,
    /// How long, in ns.
    pub ns: u64,
}

/// A time in which the owner of the CPU did not change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    /// Its beginning, in ns since the due time.
    pub from_ns: u64,
    /// How long, in ns.
    pub ns: u64,
    /// The kind of owner of the CPU.
    pub owner: Owner,
    /// Its name; empty if it has no name.
    pub name: String,
}

/// A kind of owner of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// A thread that ran after the timer's interrupt had come. It had a higher priority, until it slept.
    Thread,
    /// A thread that ran after the timer's interrupt had come, and then had to give up the CPU. It could not be
    /// preempted, or a hypervisor had the CPU.
    NotPreempted,
    /// A thread that ran while the timer's interrupt was due and did not come. Interrupts were off, or a hypervisor had
    /// the CPU.
    InterruptsOff,
    /// The CPU was idle. If the measured thread could run, it woke late, or a hypervisor had the CPU.
    Idle,
    /// The handler of a device's interrupt.
    Interrupt,
    /// A soft interrupt.
    SoftInterrupt,
    /// An interrupt of the processor or the kernel itself.
    Vector,
    /// The function of a timer, up to the next function or the end of the interrupt in which the timer expired.
    Timer,
    /// The measuring thread, until it had read its clock.
    Itself,
    /// The measured thread itself: it slept or was blocked, and could not run.
    Blocked,
    /// No known owner.
    Unaccounted,
}
