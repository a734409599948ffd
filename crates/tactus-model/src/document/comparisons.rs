//! The effects of settings, and maxima by state of the machine.

use serde::{Deserialize, Serialize};

use super::degradation::DegradationEntry;
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
    /// The kind of evidence; `null` when nothing was measured.
    pub evidence: Option<Evidence>,
    /// Pairs that were measured whole.
    pub pairs: usize,
    /// Pairs that were planned.
    #[serde(default)]
    pub planned: usize,
    /// Pairs of which a half broke, with the setting or without it: that half counts as worse than any that did not.
    #[serde(default)]
    pub broken: usize,
    /// Why it is not tested; `null`: it is.
    pub reason: Option<String>,
    /// What is to be known of it: which pairs do not count and why, or that it mattered which half of a pair came first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cautions: Vec<String>,
    /// Effects on `p99`, `p99.9` (corrected for missed periods) and `maximum`; the intervals of all settings hold
    /// together at 95 %. Where it is not tested they are medians of what was measured, and no effect is shown.
    pub effects: Vec<EffectEntry>,
}

/// One scenario against another, as a `[[compare]]` of the plan asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimEntry {
    /// Its name in the plan.
    pub name: String,
    /// The scenario that the other is held against.
    pub base: String,
    /// The other one.
    pub with: String,
    /// What the document of the study says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// Pairs of runs; `null` for one run each, of which is said what differs between the two, and no more.
    pub pairs: Option<usize>,
    /// Of these, pairs in which a run was cut short, which counts as worse than any that was not; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_pairs: Option<usize>,
    /// The answer in a few words.
    pub answer: String,
    /// Effects on `p50`, `p99.9` (corrected for missed periods) and `maximum` (of one run each: the median of the
    /// maxima of intervals of time); the intervals of a report hold together at 95 %.
    pub effects: Vec<EffectEntry>,
    /// Of scenarios that yield values: by how much each item is worse; the intervals of all claims of a report hold
    /// together at 95 %.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<DegradationEntry>,
}

/// The effect on one quantity, of a setting or from one scenario to another: with it minus without it, in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectEntry {
    /// `p50`, `p99`, `p99.9`, `maximum`.
    pub quantity: String,
    /// Median of the runs without it that were not cut short; `null`: all were.
    pub without_ns: Option<f64>,
    /// Median of the runs with it that were not cut short; `null`: all were.
    pub with_ns: Option<f64>,
    /// Estimate of the difference (Hodges-Lehmann, of pairs); `null`: too many runs were cut short, which count as worse
    /// than any number.
    pub effect_ns: Option<f64>,
    /// Lower end of its interval; `null`: nothing bounds it.
    pub low_ns: Option<f64>,
    /// Upper end of its interval; `null`: nothing bounds it.
    pub high_ns: Option<f64>,
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

/// A cell of a table of maxima. It has no verdict: `evidence` says what the number allows to conclude.
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
    /// The kind of evidence.
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
