//! What a probe can be told to do: measurements, loads and faults, with their parameters.
//!
//! The same tables stand in a plan and travel in a job. Adding one: a struct here, an entry in
//! [`crate::catalogue`], a file in the probe.

pub mod words;

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::catalogue;
use crate::duration::Nanos;
use crate::outcome::Yields;
use crate::size::Bytes;

/// How the measuring threads are scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// SCHED_FIFO at the scenario's priority.
    #[default]
    Fifo,
    /// SCHED_RR at the scenario's priority.
    Rr,
    /// SCHED_DEADLINE: runtime half the interval, deadline and period the interval.
    Deadline,
    /// SCHED_OTHER, for comparison.
    Other,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fifo => "SCHED_FIFO",
            Self::Rr => "SCHED_RR",
            Self::Deadline => "SCHED_DEADLINE",
            Self::Other => "SCHED_OTHER",
        })
    }
}

/// A measurement and its own parameters; what all have in common (interval, priority, policy,
/// threads) stands in the scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Measure {
    /// Cyclic wake-up latency.
    Timer(Timer),
    /// Polled gaps.
    Spin(Spin),
    /// What elementary services of the operating system cost.
    Os(Os),
}

/// Parameters of `timer`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timer {
    /// Measuring threads per CPU; each further one has a priority one lower. Default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Stop when a latency exceeds this.
    #[serde(default, rename = "break", skip_serializing_if = "Option::is_none")]
    pub break_at: Option<Nanos>,
}

/// Parameters of `spin`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spin {
    /// Part of each second that is polled, in per cent; the rest is left to the system. Default 95:
    /// the kernel's own limit for real-time tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<u32>,
}

/// Parameters of `os`: it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Os {}

/// A load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Load {
    /// Groups of senders and receivers that exchange small messages, as hackbench does.
    Scheduler(Scheduler),
    /// One busy thread per CPU.
    Cpu(Cpu),
    /// Allocates, touches and frees, as `stress-ng --malloc`.
    Cache(Cache),
    /// Streams through memory.
    Memory(Memory),
    /// Writes and reads files.
    Disk(Disk),
    /// Sends and receives over the loopback.
    Network(Network),
    /// A program of the environment.
    Command(Command),
}

/// Parameters of the `scheduler` load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// Groups; each has `pairs` senders and as many receivers, and every sender writes to every
    /// receiver of its group. Default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
    /// Senders per group. Default 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u32>,
    /// Bytes of a message. Default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// Pipes instead of UNIX sockets.
    #[serde(default)]
    pub pipes: bool,
}

/// Parameters of the `cpu` load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Part of the time that each thread is busy, in per cent. Default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<u32>,
}

/// Parameters of the `cache` load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Workers per CPU. Default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Largest block. Default 512 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Blocks at a time. Default 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
}

/// Parameters of the `memory` load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Size of the buffer of each CPU. Default 64 MiB, or twice its largest cache where that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
}

/// Parameters of the `disk` load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Directory of the environment in which the file is made. Default: the first of /var/tmp, /tmp
    /// and / that can be written and is no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Size of the file of each CPU. Default 16 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
}

/// Parameters of the `network` load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Size of a datagram. Default 1 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
}

/// Parameters of the `command` load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program and its arguments, as the environment has them. No shell reads them.
    pub run: Vec<String>,
}

/// A fault: a disturbance of known size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// A SCHED_FIFO task above the measuring threads.
    Hog(Hog),
    /// Interrupts or preemption off.
    Block(Block),
    /// More real-time threads than CPUs.
    Overcommit(Overcommit),
    /// One vCPU thread is kept off its CPU from the host side.
    HoldVcpu(HoldVcpu),
}

/// Parameters of the `hog` fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hog {
    /// How long it holds the CPU each time.
    pub length: Nanos,
    /// How often.
    pub every: Nanos,
}

/// Parameters of the `block` fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// How long each block is.
    pub length: Nanos,
    /// How often.
    pub every: Nanos,
    /// The length where the processor is emulated: there a short block drowns in the noise. Default:
    /// `length`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<Nanos>,
    /// What is off. Default interrupts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<Off>,
    /// By which part of the kernel. Default: the first that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<BlockWay>,
}

/// What a block keeps off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Off {
    /// Interrupts, and with them preemption.
    #[default]
    Interrupts,
    /// Preemption alone.
    Preemption,
}

/// What carries a block out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockWay {
    /// OSADL's module, by its device /dev/blocksys.
    Blocksys,
    /// The kernel's hwlat tracer: interrupts are off for `width` of every `window`.
    Hwlat,
    /// The kernel's osnoise tracer with OSNOISE_IRQ_DISABLE or OSNOISE_PREEMPT_DISABLE.
    Osnoise,
    /// The kernel's preemptirq_delay_test module.
    PreemptirqDelay,
}

/// Parameters of the `overcommit` fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overcommit {
    /// SCHED_FIFO threads per CPU, the first one above the measuring threads, each further one a
    /// priority lower. Default 12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// How long each holds the CPU each time.
    pub length: Nanos,
    /// How often each does.
    pub every: Nanos,
}

/// Parameters of the `hold-vcpu` fault. Its CPUs are the vCPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldVcpu {
    /// How long the thread is kept off its CPU each time.
    pub length: Nanos,
    /// How often.
    pub every: Nanos,
    /// By what. Default: ptrace(2), which stops nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<HoldBy>,
}

/// What keeps a vCPU thread off its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldBy {
    /// ptrace(2): the thread alone is stopped, wherever it runs.
    #[default]
    Ptrace,
    /// A SCHED_FIFO task of priority 99 on the CPU that the thread is pinned to. It keeps everything else off
    /// that CPU, too: the hypervisor's other threads may wait there.
    Fifo,
}

impl Measure {
    /// The word of the plan.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Timer(_) => "timer",
            Self::Spin(_) => "spin",
            Self::Os(_) => "os",
        }
    }

    /// What it yields: what its entry in the catalogue says.
    #[must_use]
    pub fn yields(&self) -> Yields {
        catalogue::measurement(self.kind()).and_then(|word| word.yields).unwrap_or(Yields::Latency)
    }
}

impl Load {
    /// The word of the plan.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Scheduler(_) => "scheduler",
            Self::Cpu(_) => "cpu",
            Self::Cache(_) => "cache",
            Self::Memory(_) => "memory",
            Self::Disk(_) => "disk",
            Self::Network(_) => "network",
            Self::Command(_) => "command",
        }
    }
}

impl Fault {
    /// The word of the plan.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Hog(_) => "hog",
            Self::Block(_) => "block",
            Self::Overcommit(_) => "overcommit",
            Self::HoldVcpu(_) => "hold-vcpu",
        }
    }

    /// How long it disturbs each time, and how often, in ns.
    #[must_use]
    pub const fn size(&self) -> (u64, u64) {
        match self {
            Self::Hog(hog) => (hog.length.0, hog.every.0),
            Self::Block(block) => (block.length.0, block.every.0),
            Self::Overcommit(over) => (over.length.0, over.every.0),
            Self::HoldVcpu(hold) => (hold.length.0, hold.every.0),
        }
    }

    /// Whether the host side carries it out, and not the probe of its environment.
    #[must_use]
    pub const fn from_outside(&self) -> bool {
        matches!(self, Self::HoldVcpu(_))
    }

    /// The fault as it is in an environment whose processor is emulated.
    #[must_use]
    pub fn emulated(&self) -> Self {
        match self {
            Self::Block(block) => {
                Self::Block(Block { length: block.emulated.unwrap_or(block.length), ..block.clone() })
            }
            other => other.clone(),
        }
    }
}

/// For `#[serde(deserialize_with)]`: a table with `kind`, or the kind alone as a word.
///
/// # Errors
/// Those of the table.
pub fn word_or_table<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    struct WordOrTable<T>(PhantomData<T>);
    impl<'de, T: DeserializeOwned> Visitor<'de> for WordOrTable<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a word, or a table with `kind`")
        }

        fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<T, E> {
            let table = serde_json::json!({ "kind": word });
            T::deserialize(table).map_err(E::custom)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(WordOrTable(PhantomData))
}

/// As [`word_or_table`], for keys that may be left out.
///
/// # Errors
/// Those of the table.
pub fn optional_word_or_table<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    word_or_table(deserializer).map(Some)
}
