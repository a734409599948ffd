//! The summary that a person reads first.

use serde::{Deserialize, Serialize};

use crate::Evidence;

/// The answer of a run: whether a deadline was held; without one, what settings gain; without those, what was held, or what environments cost.
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
    /// The kinds of evidence that it rests on, the best first; empty where it rests on none.
    pub evidence: Vec<Evidence>,
    /// What would help most; `null` where nothing is known that would.
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
    /// Not known, or not all of it.
    Doubt,
    /// Nothing was asked.
    Quiet,
}

/// The one step that would help most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextEntry {
    /// What is to be done.
    pub title: String,
    /// What is to be typed or booted with; `null` where it is neither.
    pub command: Option<String>,
    /// What is known of its gain, and how to know more.
    pub why: String,
}
