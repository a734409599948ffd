//! The document of `tactus show BUNDLE --json`: a stable contract.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bundle::Format;
use crate::event::{RowStatus, RunStatus};
use crate::evidence::Evidence;
use crate::finding::{Role, Severity};
use crate::latency::Summary;
use crate::series::SeriesKey;

/// A run in numbers. All latencies are in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Version of this contract; it follows the bundle's.
    pub format: Format,
    /// Whether the run came to its end.
    pub status: RunStatus,
    /// One entry per measurement; several of one scenario share its name.
    pub scenarios: Vec<Entry>,
    /// What each setting under test is worth; only where the plan tests any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<ProofEntry>,
    /// Maxima by state of the machine and environment; only where the plan asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<MatrixEntry>,
    /// What interrupts and timers of each environment run on; only where the plan asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<SystemEntry>,
    /// What the audit found in each environment; empty for bundles before format 1.1.
    pub audits: Vec<AuditEntry>,
}

/// A setting under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProofEntry {
    /// Id of its check.
    pub setting: String,
    /// Name of the environment.
    pub environment: String,
    /// What differed.
    pub what: String,
    /// What the numbers are worth; `null` when nothing was measured.
    pub evidence: Option<Evidence>,
    /// Pairs that were measured.
    pub pairs: usize,
    /// Why there is no answer.
    pub reason: Option<String>,
    /// Effects on `p99`, `p99.9` and `maximum`; the intervals hold together at 95 %.
    pub effects: Vec<EffectEntry>,
}

/// The effect of a setting on one quantity: with it minus without it, in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectEntry {
    /// `p99`, `p99.9`, `maximum`.
    pub quantity: String,
    /// Median of the pairs without it.
    pub without_ns: f64,
    /// Median of the pairs with it.
    pub with_ns: f64,
    /// Hodges-Lehmann estimate of the difference.
    pub effect_ns: f64,
    /// Lower end of its interval.
    pub low_ns: f64,
    /// Upper end of its interval.
    pub high_ns: f64,
    /// Whether the interval leaves out zero.
    pub shown: bool,
}

/// A table of maxima.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatrixEntry {
    /// Its heading.
    pub title: String,
    /// Its cells.
    pub cells: Vec<CellEntry>,
}

/// A cell of a table of maxima. It has no verdict: `evidence` says what the number is worth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellEntry {
    /// The state of the machine; `other`: in none of the plan's; `null`: the plan declares none.
    pub host: Option<String>,
    /// The environment.
    pub environment: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Whether it was measured.
    pub status: RowStatus,
    /// What the number is worth.
    pub evidence: Option<Evidence>,
    /// Largest latency here, in ns.
    pub max_ns: Option<u64>,
    /// Largest latency in the document, in ns.
    pub published_max_ns: Option<u64>,
    /// Why it has no number, or one of less than planned.
    pub reason: Option<String>,
    /// CPUs of the environment that were not measured, as a cpulist; empty where it is not known.
    pub left_out: String,
}

/// What interrupts and timers of one environment run on.
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
    /// What the kernel's messages say of TSC-deadline.
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

/// What the audit found in one environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditEntry {
    /// Name of the environment.
    pub environment: String,
    /// The part that it plays.
    pub role: Role,
    /// CPUs for real-time work, as a cpulist.
    pub isolated: String,
    /// Checks that could not be known from there or not be read.
    pub unknown: usize,
    /// The findings, worst first.
    pub found: Vec<FoundEntry>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundEntry {
    /// Id of the check; `tactus explain` prints it in full.
    pub id: String,
    /// How bad it is.
    pub severity: Severity,
    /// What was found, in one sentence.
    pub said: String,
}

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
    /// Kind of that environment.
    pub kind: String,
    /// What the numbers are worth; `null` when the environment never came up.
    pub evidence: Option<Evidence>,
    /// `timer`, `spin`, ...
    pub measurement: String,
    /// Loads of the scenario, as the plan's tables with their `in`.
    pub load: Vec<Value>,
    /// Faults of the scenario, as the plan's tables with their `in`.
    pub fault: Vec<Value>,
    /// How it ended.
    pub status: RowStatus,
    /// Why it has no numbers, or fewer than planned.
    pub reason: Option<String>,
    /// How long it measured, in seconds.
    pub duration_s: f64,
    /// What each measuring thread saw.
    pub series: Vec<SeriesEntry>,
    /// All series together; `null` when nothing was measured and for overhead measurements.
    pub all: Option<Summary>,
    /// For overhead measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<ValueEntry>>,
    /// The injected fault that proves the instrument; `null` when none was injected.
    pub control: Option<ControlEntry>,
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

/// A value of an overhead measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueEntry {
    /// What was measured.
    pub item: String,
    /// In which unit.
    pub unit: String,
    /// The value.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// The document's figure.
    pub published: Option<f64>,
}

/// The worst of a row's controls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControlEntry {
    /// How long the CPU was really held, in ns.
    pub injected_ns: u64,
    /// The latency that was measured, in ns.
    pub seen_ns: u64,
    /// Whether every measuring thread saw it at its size.
    pub proven: bool,
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
    /// Where in the document.
    pub source: String,
}

/// What a requirement says about a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Pass, fail or inconclusive.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub reason: String,
}

/// The three things that a verdict can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The requirement is kept.
    Pass,
    /// It is broken.
    Fail,
    /// The evidence does not carry a verdict.
    Inconclusive,
}
