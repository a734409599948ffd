//! The options of a run on the command line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::plan::Require;

/// The options that a user gave beside the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// The plan's `[quick]` values.
    pub quick: bool,
    /// A duration for every scenario, in ns.
    pub duration_ns: Option<u64>,
    /// The time between two wake-ups, for every scenario, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<u64>,
    /// How often every scenario is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// How long scenarios are measured at one go before it is another one's turn, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interleave_ns: Option<u64>,
    /// The scenarios of each environment take turns.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// The latency in ns above which the threads on the CPU are recorded for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blame_above_ns: Option<u64>,
    /// The same, and which ends a measurement, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_above_ns: Option<u64>,
    /// How often an environment that died while it was measured is started again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<u32>,
    /// Scenarios or environments, by name; empty: all.
    pub only: Vec<String>,
    /// The command as it was typed, word by word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Leave the system as it is.
    pub no_side_effects: bool,
    /// The requirements on environments, by name; the empty name stands for all that are not named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub require: BTreeMap<String, Require>,
}
