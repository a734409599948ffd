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
    /// State of the machine that it is for, where the plan declares states; `other`: none of them.
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
    /// What is known of it in one word.
    pub status: RowStatus,
    /// How it ended.
    pub ended: RowEnd,
    /// Why it has no numbers, or fewer than planned.
    pub reason: Option<String>,
    /// When it began to measure, RFC 3339; `null` where it never did.
    #[serde(default)]
    pub started: Option<String>,
    /// How long it measured, in seconds; `null` where that is not known, as of a file that does not say it.
    pub duration_s: Option<f64>,
    /// Time between two wake-ups, in ns; absent where nothing is periodic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<u64>,
    /// Priority of the first thread; absent where it has none.
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
    /// What each measuring thread saw.
    pub series: Vec<SeriesEntry>,
    /// All series together; `null` when nothing was measured and for measurements that yield values.
    pub all: Option<Summary>,
    /// The items of a measurement that yields values; empty when nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<ValueEntry>>,
    /// Where the time of CPUs went while values were measured; not there for latencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakdown: Vec<BreakdownIn>,
    /// Why the virtual CPUs of the guest left it, and for how long; only where the plan asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exits: Option<KvmExits>,
    /// What became of an interrupt card's interrupts, beside its latencies and overruns; only of such measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardCounts>,
    /// The self-test: the injected fault that every thread must see; `null` when none was made.
    pub self_test: Option<SelfTestEntry>,
    /// The host's part in a guest's largest latencies; only where the host has a record of its vCPU threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<AttributionEntry>,
    /// Who had the CPU while the largest latencies lasted; not there where nothing was kept of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<BlameEntry>,
    /// What is exceeded less than once in a longer time than was measured, or why that is not said; not there for values
    /// and where nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailEntry>,
    /// The figures that the study's document published for this scenario.
    pub published: Option<Published>,
    /// What the plan's requirement says; `null` when it has none.
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
    /// What was injected: `hog` (a SCHED_FIFO thread that spins), `block` (interrupts off).
    #[serde(default)]
    pub by: String,
    /// How long the CPU was really held, in ns; `null`: it was not.
    pub injected_ns: Option<u64>,
    /// The latency that was measured, in ns; `null`: nothing arrived of it.
    pub seen_ns: Option<u64>,
    /// Whether every measuring thread saw it at its size.
    pub passed: bool,
}

/// Which of the largest latencies are the host's: meanwhile the thread of the virtual CPU was kept from running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttributionEntry {
    /// How many of the largest latencies were looked at.
    pub of: usize,
    /// How many of them are the host's; 0 where chance could explain as many.
    pub host: usize,
    /// How many the host's record explains, chance or not.
    #[serde(default)]
    pub explained: usize,
    /// Of how many that is not known: not all waits were kept.
    #[serde(default)]
    pub unknown: usize,
    /// How many chance would explain: the mean of 200 moves of the latencies in time.
    #[serde(default)]
    pub by_chance: f64,
    /// The chance that it explains so many or more.
    #[serde(default)]
    pub chance: f64,
    /// How much faster the machine's clock runs than the environment's, in parts per million.
    #[serde(default)]
    pub ppm: Option<f64>,
    /// The largest of those that are explained, in ns.
    pub largest_ns: u64,
    /// How long the thread was kept from running then, in ns.
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
    /// Where in the document.
    pub source: String,
}

/// What a requirement says about a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Pass, warn, fail or inconclusive.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub reason: String,
    /// How much longer of the same would decide it, in ns; absent where time alone would not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_ns: Option<u64>,
    /// Each limit, and on which side of it the result is; empty where nothing may be said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitEntry>,
}

/// A limit, and on which side of it a result is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitEntry {
    /// What is bounded: `max`, `p99.9`, `overruns`, or the name of a value.
    pub quantity: String,
    /// The limit, as a number of `unit`.
    pub limit: f64,
    /// What it certainly is not less than. Of a quantile: that of the periods that were measured.
    pub low: f64,
    /// What it certainly is not more than; `null`: nothing bounds it. Of a quantile: its upper bound, with 95 %.
    #[serde(with = "unbounded")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub high: f64,
    /// Of which unit the three are: `ns`, `MB/s`; empty for a count.
    pub unit: String,
    /// Whether it only warns.
    pub warns: bool,
    /// On which side it is.
    pub side: Side,
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

/// On which side of a limit a result is.
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

/// What a verdict can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The requirement is kept.
    Pass,
    /// It is kept, and a limit that only warns is not.
    Warn,
    /// It is broken.
    Fail,
    /// The evidence does not carry a verdict.
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
