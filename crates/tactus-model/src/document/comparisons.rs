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
    /// The difference between the two.
    pub what: String,
    /// The kind of evidence; `null` when nothing was measured.
    pub evidence: Option<Evidence>,
    /// Pairs that were measured completely.
    pub pairs: usize,
    /// Pairs that were planned.
    #[serde(default)]
    pub planned: usize,
    /// Pairs with a half that broke, with the setting or without it. That half counts as worse than any complete one.
    #[serde(default)]
    pub broken: usize,
    /// Why it is not tested; `null`: it is.
    pub reason: Option<String>,
    /// Cautions: pairs that do not count and why, or an effect of which half of a pair came first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cautions: Vec<String>,
    /// Effects on `p99`, `p99.9` (corrected for missed periods) and `maximum`. The intervals of all settings hold
    /// together at 95 %. If the setting is not tested, the effects are medians of the measured values, and no effect is
    /// shown.
    pub effects: Vec<EffectEntry>,
}

/// One scenario against another, as a `[[compare]]` of the plan asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimEntry {
    /// Its name in the plan.
    pub name: String,
    /// The scenario to compare with.
    pub base: String,
    /// The other one.
    pub with: String,
    /// The claim of the study's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// Pairs of runs; `null` for one run each. For one run each, only the difference between the two is reported.
    pub pairs: Option<usize>,
    /// Of these, pairs with a run that was cut short. It counts as worse than any complete run. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_pairs: Option<usize>,
    /// The answer in a few words.
    pub answer: String,
    /// Effects on `p50`, `p99.9` (corrected for missed periods) and `maximum`. For one run each, the maximum is the
    /// median of the maxima of intervals of time. The intervals of a report hold together at 95 %.
    pub effects: Vec<EffectEntry>,
    /// For scenarios that yield values: by how much each item is worse. The intervals of all claims of a report hold
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
    /// Estimate of the difference (Hodges-Lehmann, of pairs); `null`: too many runs were cut short. These count as
    /// worse than any number.
    pub effect_ns: Option<f64>,
    /// Lower end of its interval; `null`: no lower bound.
    pub low_ns: Option<f64>,
    /// Upper end of its interval; `null`: no upper bound.
    pub high_ns: Option<f64>,
    /// Its p-value, adjusted for all tests of the report (Holm); `null`: unknown.
    #[serde(default)]
    pub p: Option<f64>,
    /// Whether there is an effect. All effects that are shown hold together at 95 %.
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

/// A cell of a table of maxima. It has no verdict; `evidence` limits what can be concluded from the number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellEntry {
    /// The state of the machine; `other`: no state of the plan; `null`: the plan declares no states.
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
    /// Why it has no number, or one from less than planned.
    pub reason: Option<String>,
    /// CPUs of the environment that were not measured, as a cpulist; empty if unknown.
    pub left_out: String,
}
