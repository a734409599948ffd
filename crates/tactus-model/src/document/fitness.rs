//! Which classes of control applications an environment is fit for.

use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;

/// Latencies of one kind in one measurement (all runs of it together), or figures that a document published for it,
/// with the classes of applications that they are enough for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitnessEntry {
    /// The environment.
    pub environment: String,
    /// The environment at the other end: the guest that takes an interrupt card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// State of the machine, where the plan declares states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Name of the scenario.
    pub scenario: String,
    /// The kind of latency: `thread` (wake-up of a thread), `irq` (an interrupt), `interrupt` (from an interrupt to its
    /// handler), `gap` (of a polling loop). `null` for a document's figures; the document names the kind.
    pub latency: Option<String>,
    /// The place in the document; `null`: measured here.
    pub published: Option<String>,
    /// The kind of evidence; `null` for a document's.
    pub evidence: Option<Evidence>,
    /// Number of runs.
    pub runs: usize,
    /// Measured time, in seconds, of all runs together; `null` for a document's figures.
    pub duration_s: Option<f64>,
    /// Number of measured latencies.
    pub cycles: Option<u64>,
    /// Time between two of them, in ns; `null` if they are not periodic.
    pub interval_ns: Option<u64>,
    /// Smallest latency, in ns.
    pub best_ns: u64,
    /// Largest latency, in ns.
    pub worst_ns: u64,
    /// The difference of the two, in ns.
    pub jitter_ns: u64,
    /// Upper bound on larger latencies per second, for time that was not measured (95 %, if seconds are independent);
    /// `null` for a document's figures.
    pub worse_per_s: Option<f64>,
    /// Each class.
    pub classes: Vec<ClassEntry>,
}

/// The answer of latencies for a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassEntry {
    /// Name of the class.
    pub class: String,
    /// The answer.
    pub fit: Fit,
    /// Whether that holds for its most demanding applications as well: their jitter, and the shortest cycle of the
    /// class.
    pub demanding: bool,
    /// The shortest cycle that the numbers allow, in ns; `null`: no cycle of the class.
    pub shortest_cycle_ns: Option<u64>,
    /// The remaining margin, as a fraction: of the jitter that the class allows, or of the time that a response may
    /// take in its longest cycle. The smaller of the two counts. Below 0: the limit is not kept.
    pub margin: f64,
    /// Limits of the class that the numbers do not keep; empty if they keep all.
    pub lacks: Vec<String>,
    /// Why there is no answer for any numbers; `null` if the answer is `fit` or `unfit`.
    pub reason: Option<String>,
}

/// Whether an environment is fit for a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// It keeps what at least some applications of the class need.
    Fit,
    /// It does not keep what even the least demanding of them needs.
    Unfit,
    /// The evidence is not enough for an answer.
    Unknowable,
    /// The processor was emulated: that says nothing about hardware.
    Emulated,
}

impl Fit {
    /// In a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Unfit => "unfit",
            Self::Unknowable => "inconclusive",
            Self::Emulated => "emulated",
        }
    }
}
