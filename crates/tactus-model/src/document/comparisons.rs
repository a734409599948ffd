//! What settings are worth, and maxima by state of the machine.

use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;
use crate::outcome::RowStatus;

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
    /// Pairs that were measured whole.
    pub pairs: usize,
    /// Why there is no answer.
    pub reason: Option<String>,
    /// What is to be known of it: that it mattered which half of a pair came first, for instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// Effects on `p99`, `p99.9` (corrected for missed periods) and `maximum`; the intervals of all settings hold
    /// together at 95 %.
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
    /// Its p-value, adjusted for all that the report tests (Holm); `null` where nothing can be said.
    #[serde(default)]
    pub p: Option<f64>,
    /// Whether there is an effect: all that are shown hold together at 95 %.
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
