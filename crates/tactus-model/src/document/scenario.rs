//! A measurement of a scenario: its figures, its control and its verdict.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blame::BlameEntry;
use super::tail::TailEntry;
use crate::bundle::BreakdownIn;
use crate::evidence::Evidence;
use crate::latency::Summary;
use crate::message::Note;
use crate::outcome::exits::KvmExits;
use crate::outcome::{CardCounts, Restart, RowEnd, RowStatus, ValueResult};
use crate::scheduling::Policy;
use crate::series::SeriesKey;

/// One measurement of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Name of the scenario.
    pub name: String,
    /// Name of the measurement's environment.
    pub environment: String,
    /// State of the machine that it is for, if the plan declares states; `other`: no state of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Which run of its scenario it is, from 1, where the plan repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// Kind of that environment.
    pub kind: String,
    /// The environment at the other end: the guest that takes an interrupt card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The environment that it lies inside, where it is not on the machine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// The kind of evidence; `null` when the environment never came up.
    pub evidence: Option<Evidence>,
    /// `timer`, `spin`, ...
    pub measurement: String,
    /// Loads of the scenario, as the plan's tables with their `in`.
    pub load: Vec<Value>,
    /// Faults of the scenario, as the plan's tables with their `in`.
    pub fault: Vec<Value>,
    /// Its status in one word.
    pub status: RowStatus,
    /// How it ended.
    pub ended: RowEnd,
    /// Why numbers are missing, or fewer than planned.
    pub reason: Option<String>,
    /// When it began to measure, RFC 3339; `null`: it did not begin.
    #[serde(default)]
    pub started: Option<String>,
    /// How long it measured, in seconds; `null`: unknown, for example if an imported file does not say it.
    pub duration_s: Option<f64>,
    /// Time between two wake-ups, in ns; absent for measurements that are not periodic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<u64>,
    /// Priority of the first thread; absent if it has no priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// How the threads were scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Its files in the bundle whose checksums the manifest has: ticks, histograms (HdrHistogram logs), result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Where its environment died and was started again (`restart` in the plan), in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<Restart>,
    /// Side effects, limitations and remarks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Frames of its environment that did not arrive.
    #[serde(default)]
    pub frames_lost: u64,
    /// The figures of each measuring thread.
    pub series: Vec<SeriesEntry>,
    /// All series together; `null` when nothing was measured and for measurements that yield values.
    pub all: Option<Summary>,
    /// The items of a measurement that yields values; empty when nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<ValueEntry>>,
    /// CPU time by kind while values were measured; absent for latencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakdown: Vec<BreakdownIn>,
    /// Why the virtual CPUs of the guest left it, and for how long; only where the plan asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exits: Option<KvmExits>,
    /// Counts of an interrupt card's interrupts, beside its latencies and overruns; only for such measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardCounts>,
    /// The self-test: the injected fault that every thread must see; `null`: no self-test was made.
    pub self_test: Option<SelfTestEntry>,
    /// The host's part in a guest's largest latencies; only if the host has a record of its vCPU threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<AttributionEntry>,
    /// The threads and interrupts that had the CPU during the largest latencies; absent if they were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<BlameEntry>,
    /// The latency that is exceeded less than once in a longer time than was measured, or why it is unknown. Absent for
    /// values and if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailEntry>,
    /// The figures that the study's document published for this scenario.
    pub published: Option<Published>,
    /// The verdict of the plan's requirement; `null`: it has no requirement.
    pub verdict: Option<Verdict>,
}

/// One series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesEntry {
    /// Environment, CPU, thread and kind in one word.
    pub id: String,
    /// CPU, thread, priority and kind.
    #[serde(flatten)]
    pub key: SeriesKey,
    /// Its figures.
    #[serde(flatten)]
    pub summary: Summary,
}

/// An item of a measurement that yields values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueEntry {
    /// The value.
    #[serde(flatten)]
    pub result: ValueResult,
    /// The document's figure, in the same unit.
    pub published: Option<f64>,
}

/// The worst of a row's self-tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SelfTestEntry {
    /// The injected fault: `hog` (a SCHED_FIFO thread that spins), `block` (interrupts off).
    #[serde(default)]
    pub by: String,
    /// Time that the CPU was really held, in ns; `null`: it was not held.
    pub injected_ns: Option<u64>,
    /// The latency that was measured, in ns; `null`: nothing was received.
    pub seen_ns: Option<u64>,
    /// Whether every measuring thread saw it at its size.
    pub passed: bool,
}

/// The largest latencies that the host caused: the thread of the virtual CPU was kept from running meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttributionEntry {
    /// Number of the largest latencies that were examined.
    pub of: usize,
    /// Number of them that the host caused; 0 if chance could explain the same number.
    pub host: usize,
    /// Number of them that the host's record explains, by chance or not.
    #[serde(default)]
    pub explained: usize,
    /// Number of them with an unknown cause, because not all waits were recorded.
    #[serde(default)]
    pub unknown: usize,
    /// Number that chance would explain: the mean of 200 shifts of the latencies in time.
    #[serde(default)]
    pub by_chance: f64,
    /// Probability that chance explains that number or more.
    #[serde(default)]
    pub chance: f64,
    /// How much faster the machine's clock runs than the environment's, in parts per million.
    #[serde(default)]
    pub ppm: Option<f64>,
    /// The largest of those that are explained, in ns.
    pub largest_ns: u64,
    /// Time that the thread was kept from running during it, in ns.
    pub waited_ns: u64,
}

/// Figures of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Published {
    /// Minimum, in ns.
    pub min_ns: Option<u64>,
    /// Mean, in ns.
    pub mean_ns: Option<u64>,
    /// Maximum, in ns.
    pub max_ns: Option<u64>,
    /// Minimum, mean and maximum of each thread in the document's order, in ns; only where it has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads_ns: Vec<[u64; 3]>,
    /// The place in the document.
    pub source: String,
}

/// The verdict of a requirement on a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Pass, warn, fail or inconclusive.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub reason: String,
    /// How much longer the same measurement must run to decide it, in ns; absent if time alone would not decide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_ns: Option<u64>,
    /// Each limit, and the side of it on which the result is; empty without a verdict on limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitEntry>,
}

/// A limit, and on which side of it a result is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitEntry {
    /// The limited quantity: `max`, `p99.9`, `overruns`, or the name of a value.
    pub quantity: String,
    /// The limit, as a number of `unit`.
    pub limit: f64,
    /// Lower bound of the result. For a quantile: that of the measured periods.
    pub low: f64,
    /// Upper bound of the result; `null`: no upper bound. For a quantile: its upper bound at 95 %.
    #[serde(with = "unbounded")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub high: f64,
    /// Unit of the three numbers: `ns`, `MB/s`; empty for a count.
    pub unit: String,
    /// Whether the limit only warns.
    pub warns: bool,
    /// The side on which the result is.
    pub side: Side,
    /// Why it came out so, in words.
    #[serde(default)]
    pub reason: String,
}

/// A number that may be unbounded: `f64::MAX` in memory, and `null` in JSON.
mod unbounded {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Some(*number).filter(|number| *number < f64::MAX).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Option::deserialize(deserializer).map(|number| number.unwrap_or(f64::MAX))
    }
}

/// The side of a limit on which a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The limit is kept.
    Kept,
    /// It is broken.
    Broken,
    /// It may be either.
    Open,
}

/// The outcome of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The requirement is kept.
    Pass,
    /// It is kept, but a limit that only warns is not.
    Warn,
    /// It is broken.
    Fail,
    /// The evidence is not enough for a verdict.
    Inconclusive,
}

impl Outcome {
    /// As it is written.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
        }
    }
}
