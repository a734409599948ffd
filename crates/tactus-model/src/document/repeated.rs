//! The joint results of the runs of a repeated measurement.

use serde::{Deserialize, Serialize};

use super::scenario::Verdict;
use crate::evidence::Evidence;
use crate::latency::Summary;
use crate::outcome::{RowStatus, ValueResult};

/// A measurement that the plan repeats. Each of its runs is one of the scenarios, with its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RepeatedEntry {
    /// Name of the scenario.
    pub name: String,
    /// Name of the measurement's environment.
    pub environment: String,
    /// State of the machine that it is for, where the plan declares states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The environment at the other end, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// `timer`, `spin`, ...
    pub measurement: String,
    /// The weakest evidence of a run.
    pub evidence: Option<Evidence>,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs with numbers.
    pub measured: usize,
    /// How the worst run ended.
    pub status: RowStatus,
    /// Why runs lack numbers, or have fewer than planned.
    pub reason: Option<String>,
    /// The runs together: counts add up, and the maximum is that of the worst run. Quantiles are those of all periods;
    /// `null` if a histogram is incomplete.
    pub all: Option<Summary>,
    /// The median of each figure of the runs.
    pub median: Option<Summary>,
    /// The median of each value of the runs; empty for latencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueResult>,
    /// The verdict of the requirement: each run is judged, and the worst counts, limit by limit.
    pub verdict: Option<Verdict>,
}
