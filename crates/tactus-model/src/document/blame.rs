//! The threads and interrupts that had the CPU during the largest latencies.

use serde::{Deserialize, Serialize};

use crate::trace::{Candidate, Source};

/// The largest latencies of a measurement, and who had the CPU meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlameEntry {
    /// Why none of it can be known; then there is nothing else.
    #[serde(rename = "unavailable", default, skip_serializing_if = "Option::is_none")]
    pub unknowable: Option<String>,
    /// Who says so: of several (an environment that was started again) the one that knows least; none: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// How many latencies: the ten largest, and of the others those that were asked for.
    pub of: usize,
    /// What caused them, and how many; `ordinary`: no longer than wake-ups are; `not known`: to no one part.
    pub causes: Vec<(String, usize)>,
    /// One by one, the largest first.
    pub latencies: Vec<BlamedLatency>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlamedLatency {
    /// The series.
    pub id: String,
    /// When the thread woke, in ns since the measurement started.
    pub at_ns: u64,
    /// The latency, in ns.
    pub value_ns: u64,
    /// What caused it.
    pub cause: String,
    /// Who had how much of it, the most first.
    pub parts: Vec<BlamedPart>,
    /// What nobody had that is known, in ns: all parts and this are the latency.
    pub unaccounted_ns: u64,
    /// The same in time.
    pub spans: Vec<Span>,
    /// Where the source is `proc`: what was counted in a time that holds the latency and is longer than it. No account: how
    /// much of it fell into the latency is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// What the machine did meanwhile with the thread of the virtual CPU, where the latency is laid to the hypervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSide>,
}

/// A time in which the thread of a virtual CPU was kept from running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostSide {
    /// Which thread had its CPU longest, as `NUMBER NAME`; none: that was not kept.
    pub by: Option<String>,
    /// A tracer had stopped it.
    pub stopped: bool,
    /// It had its CPU, and was out of its guest for so long: the hypervisor's own work, or that of the program that runs the
    /// machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// How long it was kept from running, in ns.
    pub waited_ns: u64,
    /// Its end, in ns since the measurement started, on the environment's clock.
    pub at_ns: i64,
    /// To how many ns either way that end is known: the error of the two clocks, and that of the looks where it is not known
    /// who had the CPU.
    pub within_ns: u64,
}

/// The time that one had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlamedPart {
    /// What it is.
    pub owner: Owner,
    /// Its name; empty where there is none.
    pub name: String,
    /// How long, in ns.
    pub ns: u64,
}

/// A time without a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    /// Its beginning, in ns since what was due was due.
    pub from_ns: u64,
    /// How long, in ns.
    pub ns: u64,
    /// Who had the CPU.
    pub owner: Owner,
    /// Its name; empty where there is none.
    pub name: String,
}

/// What has a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// A thread, after the timer's interrupt had come: it was more important, until it slept.
    Thread,
    /// A thread, after the timer's interrupt had come, which then had to give the CPU up: it could not be preempted, or a
    /// hypervisor had the CPU.
    NotPreempted,
    /// A thread, and the timer's interrupt that was due did not come: interrupts were off, or a hypervisor had the CPU.
    InterruptsOff,
    /// Nobody: the CPU idled. Where the thread could run, it woke late or was a hypervisor's.
    Idle,
    /// The handler of a device's interrupt.
    Interrupt,
    /// A soft interrupt.
    SoftInterrupt,
    /// An interrupt of the processor's or the kernel's own.
    Vector,
    /// The function of a timer, up to the next one or the end of the interrupt that it went off in.
    Timer,
    /// The measuring thread, until it had read its clock.
    Itself,
    /// The measured thread itself: it slept or was blocked, and could not run.
    Blocked,
    /// Nobody that is known.
    Unaccounted,
}
