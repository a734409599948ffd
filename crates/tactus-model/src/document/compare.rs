//! The document of `tactus compare --json`: runs of one condition against runs of another.

use serde::{Deserialize, Serialize};

use crate::bundle::Format;
use crate::evidence::Evidence;
use crate::outcome::{Better, Unit};

/// The version of this contract.
pub const COMPARE_FORMAT: Format = Format { major: 1, minor: 0 };

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Judgement {
    /// Certainly not worse by more than the margin.
    Pass,
    /// Neither is certain.
    Inconclusive,
    /// Certainly worse by more than the margin.
    Regression,
}

impl Judgement {
    /// As it is written.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Inconclusive => "inconclusive",
            Self::Regression => "regression",
        }
    }
}

/// A comparison in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompareDocument {
    /// Version of this contract.
    pub format: Format,
    /// The worst of all that was compared.
    pub outcome: Judgement,
    /// Why, in a sentence.
    pub reason: String,
    /// Largest probability that any reported regression is false, over all of them together.
    pub error: f64,
    /// Number of quantities that are judged together.
    pub gated: usize,
    /// The conditions that are compared; the first is the base.
    pub conditions: Vec<ConditionEntry>,
    /// Other differences between the base and the others.
    pub changes: Vec<ChangeEntry>,
    /// Each scenario of the base against that of each other condition.
    pub scenarios: Vec<ComparedEntry>,
    /// Scenarios that only one side has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<UnmatchedEntry>,
    /// Comparison of halves of the base with each other; `null`: it has too few runs for halves.
    pub baseline: Option<BaselineEntry>,
    /// Quantities that differ by any amount. This is a search: its finds are candidates, not verdicts. Only if it was
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explored: Vec<ExploredEntry>,
    /// Limits of this comparison, a sentence each.
    pub limits: Vec<String>,
}

/// A condition: one bundle or several, whose runs are compared with those of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConditionEntry {
    /// Its name.
    pub name: String,
    /// Its bundles, in the order of their time.
    pub bundles: Vec<ComparedBundle>,
}

/// A bundle of a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedBundle {
    /// Name of its plan.
    pub plan: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// The machine's name.
    pub machine: String,
    /// The tactus that wrote it.
    pub tactus: String,
}

/// Something that differs between the base and another condition, and may explain different results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeEntry {
    /// The other condition.
    pub with: String,
    /// `kernel`, `processor`, `command line`, ...
    pub what: String,
    /// The environment; `null`: the machine or the run as a whole.
    pub environment: Option<String>,
    /// Its value in the base; several values if its bundles differ.
    pub base: Vec<String>,
    /// Its value in the other condition.
    pub now: Vec<String>,
}

/// A scenario of two conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedEntry {
    /// Its name.
    pub name: String,
    /// The environment, with the state of the machine where it has one.
    pub environment: String,
    /// `timer`, `os`, ...
    pub measurement: String,
    /// The other condition.
    pub with: String,
    /// The kind of evidence.
    pub evidence: Option<Evidence>,
    /// Runs of the base, and of the other.
    pub runs: [usize; 2],
    /// Sittings of the base, and of the other: bundles that have this scenario. With one on each side nothing is decided.
    pub sittings: [usize; 2],
    /// Why the two are not judged; `null`: they are.
    pub refused: Option<RefusalEntry>,
    /// Its quantities; of a scenario that is refused the figures alone.
    pub quantities: Vec<QuantityEntry>,
}

/// Why two scenarios are not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefusalEntry {
    /// In one or two words: `interval`, `policy`, `priority`, `cpus`, `load`, `fault`, `duration`, `tick`,
    /// `measurement`, `evidence` where they differ; `unmeasured`, `incomplete`, `unproven`, `no verdict`, `runs`.
    pub kind: String,
    /// In a sentence.
    pub reason: String,
}

/// A quantity of two conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuantityEntry {
    /// `p50`, `p99`, `p99.9` (corrected for missed periods), `maximum`; or the item of a value.
    pub quantity: String,
    /// Its unit: ns for latencies.
    pub unit: Unit,
    /// Which of two values is the better one.
    pub better: Better,
    /// Its value in each run of the base.
    pub base_runs: Vec<f64>,
    /// Its value in each run of the other.
    pub now_runs: Vec<f64>,
    /// Median of the base's runs; of several sittings the median of their medians. `null`: no run has this quantity.
    pub base: Option<f64>,
    /// Median of the other's.
    pub now: Option<f64>,
    /// How many times worse the other is (Hodges-Lehmann): the other divided by the base. If more is better, it is the
    /// base divided by the other. Below 1 it is better. `null`: unknown.
    pub ratio: Option<f64>,
    /// Lower bound of that ratio. A bound above `limit` is a regression. It holds for everything that is judged
    /// together (Holm). `null`: no lower bound.
    pub low: Option<f64>,
    /// Upper bound of that ratio (95 %, for this quantity). A bound below `limit` passes. `null`: no upper bound.
    pub high: Option<f64>,
    /// Largest ratio that is allowed: one plus the margin, or the ratio that follows from the floor.
    pub limit: f64,
    /// Probability of such values if the other is not worse than `limit`; `null`: not tested.
    pub p: Option<f64>,
    /// The same, adjusted for everything that is judged together (Holm).
    pub p_adjusted: Option<f64>,
    /// The judgement; `null`: it is not judged.
    pub outcome: Option<Judgement>,
    /// What holds between these two sittings, where each side has only one; `null`: several sittings are judged.
    pub between_sittings: Option<Judgement>,
    /// Whether its runs are too short for this quantity, which is then not judged.
    #[serde(default)]
    pub left_out: bool,
    /// Whether it is certainly better by more than the margin. Improvements are tested as a separate family, with the
    /// same certainty as regressions.
    pub improved: bool,
    /// Why, in a sentence.
    pub reason: String,
    /// Difference between sittings of one condition, or between runs where each condition is one sitting: the standard
    /// deviation of the logarithm, of both conditions together. `null`: too few.
    pub spread: Option<f64>,
    /// If it is inconclusive: how many sittings of each condition would decide with a probability of 80 %, if the observed
    /// difference is real. Of one sitting each it counts runs. `null`: no practical number would.
    pub needed: Option<usize>,
    /// If it is inconclusive: the margin with which it would pass. `null`: no margin.
    pub margin_needed: Option<f64>,
}

/// A scenario that is not in both conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnmatchedEntry {
    /// Its name.
    pub name: String,
    /// Its environment.
    pub environment: String,
    /// The kind of measurement.
    pub measurement: String,
    /// The condition that has it.
    pub only_in: String,
    /// The condition that it is missing in.
    pub not_in: String,
}

/// A check of a condition: whether it can be a baseline, and which differences it can show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaselineEntry {
    /// What is judged: `runs` of one sitting, or `sittings`.
    pub of: String,
    /// How many of the scenario with the fewest.
    pub count: usize,
    /// Number of random splits into halves.
    pub splits: usize,
    /// Number of splits in which one half was a regression of the other.
    pub regressions: usize,
    /// Whether its later half differs from its earlier one by more than the margin, one way or the other.
    pub drifted: bool,
    /// Whether halves with so few could show a regression at all.
    pub tells: bool,
    /// Sittings that a gate would call a regression of all others, though nothing was changed; `null`: too few sittings.
    pub false_alarms: Option<usize>,
    /// Why it cannot be a baseline; `null`: it can.
    pub refused: Option<String>,
    /// The differences that each of its quantities can show.
    pub quantities: Vec<ResolutionEntry>,
}

/// The differences that a quantity of a baseline can show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResolutionEntry {
    /// The scenario.
    pub name: String,
    /// Its environment.
    pub environment: String,
    /// The quantity.
    pub quantity: String,
    /// Difference between sittings, or between the runs of the one sitting: the standard deviation of the logarithm.
    pub spread: f64,
    /// Smallest ratio that the baseline shows with a probability of 80 % in one new sitting, or in the same number of new
    /// runs; `null`: no ratio.
    pub detectable: Option<f64>,
    /// Sittings, or runs, of each condition that show a ratio of 1.3 with a probability of 80 %; `null`: no practical
    /// number, or the margin allows that ratio.
    pub needed: Option<usize>,
}

/// A find of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExploredEntry {
    /// The scenario.
    pub name: String,
    /// Its environment.
    pub environment: String,
    /// The other condition.
    pub with: String,
    /// The quantity, of all threads together or of one.
    pub quantity: String,
    /// How many times worse the other is (Hodges-Lehmann).
    pub ratio: Option<f64>,
    /// Upper bound of the share of false finds, among all finds with this value or a smaller one (Benjamini and
    /// Hochberg).
    pub q: f64,
}
