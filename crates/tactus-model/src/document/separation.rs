//! Which environments the disturbances reach, and the technologies in words.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;
use crate::plan::Trait;

/// Which environments the disturbances reach: a cell for each disturbance, each environment that is
/// disturbed, each one that is measured, and each set of CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeparationEntry {
    /// The environments.
    pub environments: Vec<String>,
    /// Environments that this machine does not have, and why.
    pub absent: BTreeMap<String, String>,
    /// Probability that any cell is falsely called a leak, over all cells together.
    pub error: f64,
    /// The cells.
    pub cells: Vec<LeakEntry>,
}

impl SeparationEntry {
    /// The kinds of disturbances, in their order.
    #[must_use]
    pub fn disturbances(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !kinds.contains(&cell.disturbance.as_str()) {
                kinds.push(&cell.disturbance);
            }
        }
        kinds
    }

    /// The environments that this machine has.
    #[must_use]
    pub fn present(&self) -> Vec<&str> {
        let there = self.environments.iter().filter(|name| !self.absent.contains_key(*name));
        there.map(String::as_str).collect()
    }
}

/// Whether a disturbance in one environment is seen in another (or, on the diagonal, where it was made).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeakEntry {
    /// `block`, `cache`, ...
    pub disturbance: String,
    /// The environment that is disturbed.
    pub disturbed: String,
    /// The CPU of the machine on which it is; `null`: it has no CPU of this machine.
    pub disturbed_cpu: Option<u32>,
    /// The same CPU as that environment numbers it.
    pub disturbed_inside: Option<u32>,
    /// The environment that is measured.
    pub measured: String,
    /// Whether it is measured on the CPU of the disturbance, or on others.
    pub same_cpu: bool,
    /// The CPUs of the machine that it is measured on, as a cpulist; empty if unknown.
    pub cpus: String,
    /// The same CPUs as that environment numbers them.
    pub inside: String,
    /// Name of the scenario with the disturbance.
    pub scenario: String,
    /// The kind of evidence: the lesser of the two environments'.
    pub evidence: Option<Evidence>,
    /// Length of the disturbance, in ns; `null` for a load.
    pub length_ns: Option<u64>,
    /// Number of disturbances while everything around them was measured; for a load, the number of seconds.
    pub injected: Option<u64>,
    /// Largest latency at rest, in ns.
    pub rest_max_ns: Option<u64>,
    /// Largest latency with the disturbance, in ns.
    pub with_max_ns: Option<u64>,
    /// Expected number of injections with a latency of at least half the length, by chance alone.
    pub half_at_rest: Option<f64>,
    /// Number of injections with a latency of at least half the length.
    pub half: Option<u64>,
    /// Number of injections with a latency of at least 90 % of the length, beyond the number by chance.
    pub full: Option<u64>,
    /// Typical maximum of a window of time with the disturbance, divided by that of windows of the same period without
    /// it.
    pub ratio: Option<f64>,
    /// Lower bound of the ratio; `null` for a fault.
    pub ratio_low: Option<f64>,
    /// Upper bound of the ratio; `null` for a fault.
    pub ratio_high: Option<f64>,
    /// Number of windows of time without and with the disturbance.
    pub slots: [usize; 2],
    /// Number of injections that stand out from everything else in their period.
    #[serde(default)]
    pub stand_out: Option<u64>,
    /// Expected number of these by chance.
    #[serde(default)]
    pub by_chance: Option<f64>,
    /// Largest latency during the disturbance, in ns.
    #[serde(default)]
    pub with_seen_ns: Option<u64>,
    /// Upper bound of the part of the injections that is seen above `with_seen_ns` (95 %); `null`: it was seen, or the
    /// bound is unknown.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// Whether the disturbance is seen.
    pub leak: Leak,
    /// Why that is unknown; `null`: it is known.
    #[serde(default)]
    pub doubt: Option<Doubt>,
    /// Why, in one sentence.
    pub reason: String,
}

/// Why it is unknown whether a disturbance reaches an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// It was not measured: refused, skipped, failed or not asked for.
    NotMeasured,
    /// The environment is not measured on such a CPU.
    NoSuchCpu,
    /// The measurement was too short for the test.
    TooShort,
    /// The noise in the environment could hide it.
    Noise,
    /// It was seen too rarely to distinguish it from noise.
    TooFew,
    /// It was not seen, and not seen for certain where it was made either.
    Source,
    /// It was not seen, and the self-test did not pass there either.
    Control,
    /// The time of the disturbance is unknown.
    NoTimes,
    /// The clocks of the two environments cannot be compared.
    Clock,
}

impl Doubt {
    /// In a word or two.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotMeasured => "not measured",
            Self::NoSuchCpu => "no such CPU",
            Self::TooShort => "too short",
            Self::Noise => "below the noise floor",
            Self::TooFew => "too few",
            Self::Source => "source not confirmed",
            Self::Control => "self-test not passed",
            Self::NoTimes => "times not known",
            Self::Clock => "clocks differ",
        }
    }

    /// In a sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::NotMeasured => "refused, skipped or failed; the reason is below",
            Self::NoSuchCpu => "the two have no such CPU in common",
            Self::TooShort => "measured too briefly for the test: measure longer",
            Self::Noise => "the place's own noise could hide it",
            Self::TooFew => "it may have been seen, too rarely to tell it from noise",
            Self::Source => {
                "not seen, but the disturbance itself is uncertain: it was not clearly seen where it was made"
            }
            Self::Control => "not seen, but the self-test was not passed there either",
            Self::NoTimes => "unknown when it was made",
            Self::Clock => "the clocks of the two cannot be compared",
        }
    }
}

/// Whether a disturbance reaches an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Leak {
    /// Seen at its size, each time that it was made.
    #[serde(rename = "yes")]
    Yes,
    /// Seen at its size, but not each time.
    #[serde(rename = "sometimes")]
    Sometimes,
    /// Seen, but smaller than its size.
    #[serde(rename = "weaker")]
    Weaker,
    /// Not seen, although it would have been seen: in at most a tenth of all injections (95 %).
    #[serde(rename = "no")]
    No,
    /// Not seen, in fewer injections than `no` requires.
    #[serde(rename = "not seen")]
    NotSeen,
    /// Not measured, or not enough data.
    #[serde(rename = "not known")]
    NotKnown,
}

impl Leak {
    /// Whether it is seen, at whatever size and however often.
    #[must_use]
    pub const fn reaches(self) -> bool {
        matches!(self, Self::Yes | Self::Sometimes | Self::Weaker)
    }
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Yes => "yes",
            Self::Sometimes => "sometimes",
            Self::Weaker => "weaker",
            Self::No => "no",
            Self::NotSeen => "not seen",
            Self::NotKnown => "not known",
        })
    }
}

/// A technology in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TechnologyEntry {
    /// Its name.
    pub name: String,
    /// The environment that stands for it.
    pub environment: String,
    /// Its kind here: `docker`, `qemu`, ...
    pub kind: String,
    /// The kind of evidence of its numbers.
    pub evidence: Option<Evidence>,
    /// Its words.
    pub words: Vec<WordEntry>,
}

/// A word about a technology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WordEntry {
    /// The row of the comparison.
    pub row: Trait,
    /// The word that follows from the measurements.
    pub word: String,
    /// The document's word.
    pub published: Option<String>,
    /// Whether the two differ; `null` if either is missing or unknown.
    pub differs: Option<bool>,
    /// The numbers behind it, in sentences.
    pub reasons: Vec<String>,
    /// Scenarios that it rests on.
    pub scenarios: Vec<String>,
}
