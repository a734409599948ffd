//! The summary that a person reads first.

use serde::{Deserialize, Serialize};

use crate::Evidence;

/// The answer of a run: whether a deadline was met. Without a deadline, the gain of settings. Without settings, the
/// measured latencies or the costs of environments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerEntry {
    /// In capitals: `MET`, `MET WITH A WARNING`, `NOT MET`, `NOT DECIDED`, `NO LIMIT GIVEN`, `EFFECT SHOWN`,
    /// `NO EFFECT SHOWN`, `NOT TESTED`, `COSTS SHOWN`, `NO COST SHOWN`, `COSTS NOT JUDGED` or `NO ANSWER`.
    pub word: String,
    /// How good the news is.
    pub tone: AnswerTone,
    /// The answer in a sentence.
    pub sentence: String,
    /// The kinds of evidence that it rests on, the best first; empty without evidence.
    pub evidence: Vec<Evidence>,
    /// The step that would help most; `null` if no such step is known.
    pub next: Option<NextEntry>,
}

/// How good the news of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AnswerTone {
    /// As it should be.
    Good,
    /// As it should not be.
    Bad,
    /// Unknown, or partly unknown.
    Doubt,
    /// Nothing was asked.
    Quiet,
}

/// The one step that would help most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextEntry {
    /// The step.
    pub title: String,
    /// The command to type or the parameters to boot with; `null` if it is neither.
    pub command: Option<String>,
    /// The known gain of this step, and how to know more.
    pub why: String,
}
