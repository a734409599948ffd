//! What a probe can be told to do: measurements, loads and faults, with their parameters.
//!
//! The same tables stand in a plan and travel in a job. Adding one: a struct here, an entry in
//! [`crate::catalogue`], a file in the probe.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::duration::Nanos;

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

/// A load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Load {
    /// Groups of senders and receivers that exchange small messages, as hackbench does.
    Scheduler(Scheduler),
    /// One busy thread per CPU.
    Cpu(Cpu),
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

/// A fault: a disturbance of known size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Fault {
    /// A SCHED_FIFO task above the measuring threads.
    Hog(Hog),
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

impl Measure {
    /// The word of the plan.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Timer(_) => "timer",
            Self::Spin(_) => "spin",
        }
    }
}

impl Load {
    /// The word of the plan.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Scheduler(_) => "scheduler",
            Self::Cpu(_) => "cpu",
        }
    }
}

impl Fault {
    /// The word of the plan.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Hog(_) => "hog",
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
