//! The document of `tactus show BUNDLE --json`: a stable contract.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bundle::Format;
use crate::event::{RowStatus, RunStatus};
use crate::evidence::Evidence;
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
}

/// One measurement of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Name of the scenario.
    pub name: String,
    /// Name of the measurement's environment.
    pub environment: String,
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
