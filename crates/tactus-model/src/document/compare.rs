//! The document of `tactus compare --json`: runs of one condition against runs of another.

use serde::{Deserialize, Serialize};

use crate::bundle::Format;
use crate::evidence::Evidence;
use crate::outcome::{Better, Unit};

/// The version of this contract.
pub const COMPARE_FORMAT: Format = Format { major: 1, minor: 0 };

/// What a comparison comes to.
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
    /// The error that all regressions may have together: with one less this, nothing that is called a regression is none.
    pub error: f64,
    /// How many quantities are judged together.
    pub gated: usize,
    /// What is compared; the first is the base.
    pub conditions: Vec<ConditionEntry>,
    /// What else differs between the base and the others.
    pub changes: Vec<ChangeEntry>,
    /// Each scenario of the base against that of each other condition.
    pub scenarios: Vec<ComparedEntry>,
    /// Scenarios that one side alone has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<UnmatchedEntry>,
    /// What halves of the base say of each other; `null`: it has too few runs for halves.
    pub baseline: Option<BaselineEntry>,
    /// What differs at all, whatever its size: a search, whose finds are candidates and no verdicts. Only where it was
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explored: Vec<ExploredEntry>,
    /// What this comparison cannot say, a sentence each.
    pub limits: Vec<String>,
}

/// A condition: one bundle or several, whose runs are compared with those of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConditionEntry {
    /// What it is called.
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

/// Something that differs between the base and another condition, and may be why their results do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeEntry {
    /// The other condition.
    pub with: String,
    /// `kernel`, `processor`, `command line`, ...
    pub what: String,
    /// The environment; `null`: the machine or the run as a whole.
    pub environment: Option<String>,
    /// What it is in the base; several values where its bundles differ.
    pub base: Vec<String>,
    /// What it is in the other.
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
    /// Why the two are not judged; `null`: they are.
    pub refused: Option<RefusalEntry>,
    /// Its quantities; of a scenario that is refused the figures alone.
    pub quantities: Vec<QuantityEntry>,
}

/// Why two scenarios are not held against each other.
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
    /// Median of the base's runs; `null`: none has it.
    pub base: Option<f64>,
    /// Median of the other's.
    pub now: Option<f64>,
    /// How many times worse the other is (Hodges-Lehmann): the other over the base, and where more is better the base over
    /// the other. Below 1 it is better. `null`: there is none.
    pub ratio: Option<f64>,
    /// It is certainly at least so many times worse: above `limit` it is a regression. Holds for everything that is judged
    /// together (Holm). `null`: nothing bounds it.
    pub low: Option<f64>,
    /// It is at most so many times worse (95 %, of this quantity): below `limit` it passes. `null`: nothing bounds it.
    pub high: Option<f64>,
    /// How many times worse it may be: one and the margin, or what the floor comes to.
    pub limit: f64,
    /// The chance of such values where it is not worse than `limit`; `null`: not tested.
    pub p: Option<f64>,
    /// The same, adjusted for everything that is judged together (Holm).
    pub p_adjusted: Option<f64>,
    /// What it comes to; `null`: it is not judged.
    pub outcome: Option<Judgement>,
    /// Whether its runs are too short for it, so that nothing is asked of it.
    #[serde(default)]
    pub left_out: bool,
    /// Whether it is certainly better by more than the margin: a family of its own, as certain as regressions are.
    pub improved: bool,
    /// Why, in a sentence.
    pub reason: String,
    /// How much runs of one condition differ by themselves: the standard deviation of the logarithm, of both together.
    /// `null`: too few runs.
    pub run_to_run: Option<f64>,
    /// Where it is inconclusive, how many runs of each condition would decide with 80 %, if what was seen is so. `null`:
    /// no number of runs that anybody would make.
    pub runs_needed: Option<usize>,
    /// Where it is inconclusive, the margin with which these runs would pass. `null`: no margin.
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
    /// What was measured.
    pub measurement: String,
    /// The condition that has it.
    pub only_in: String,
    /// The condition that it is missing in.
    pub not_in: String,
}

/// What a condition says of itself: whether it may be a baseline, and what it can tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaselineEntry {
    /// Runs of the scenario that has fewest.
    pub runs: usize,
    /// How often it was split into halves, at random.
    pub splits: usize,
    /// In how many of them one half was a regression of the other.
    pub regressions: usize,
    /// Whether its later half differs from its earlier one by more than the margin, one way or the other.
    pub drifted: bool,
    /// Whether halves of so few runs could show a regression at all.
    pub tells: bool,
    /// Why it may be no baseline; `null`: nothing speaks against it.
    pub refused: Option<String>,
    /// What each of its quantities can tell.
    pub quantities: Vec<ResolutionEntry>,
}

/// What a quantity of a baseline can tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResolutionEntry {
    /// The scenario.
    pub name: String,
    /// Its environment.
    pub environment: String,
    /// The quantity.
    pub quantity: String,
    /// How much runs differ by themselves: the standard deviation of the logarithm.
    pub run_to_run: f64,
    /// The smallest ratio that as many new runs as the baseline has show with 80 %; `null`: none.
    pub detectable: Option<f64>,
    /// How many runs of each condition show a ratio of 1.3 with 80 %; `null`: no number that anybody would make, or the
    /// margin allows it.
    pub runs_needed: Option<usize>,
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
    /// The share of false finds among all whose own is at most this (Benjamini and Hochberg), at the most.
    pub q: f64,
}
