//! The number of runs a gate will need, before anything is measured: from how much the runs of its baseline
//! differ.

use tactus_statistics::{ERROR, runs_needed};

use super::baseline::judged;
use super::condition::{Condition, Key};
use super::margins::Margins;
use super::sampled::Sampled;

/// The number of runs that a gate needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The scenario of the quantity that needs most runs.
    pub scenario: String,
    /// The quantity.
    pub quantity: String,
    /// How many runs of each condition it needs if nothing has changed; `None` if no realistic number does.
    pub runs: Option<usize>,
    /// How many runs of it the baseline has.
    pub base: usize,
}

/// The quantity that needs most runs; `None` if the spread of the runs is unknown, as with one run of each
/// scenario.
#[must_use]
pub fn expected(base: &Condition, margins: &Margins) -> Option<Expected> {
    let needs = |(key, of): (Key, Sampled)| {
        let runs = runs_needed(of.run_to_run()?, of.limit.ln(), ERROR);
        Some(Expected { scenario: key.name, quantity: of.quantity, runs, base: of.base.len() })
    };
    // A quantity that no number of runs decides comes first.
    judged(base, margins).into_iter().filter_map(needs).max_by_key(|one| one.runs.unwrap_or(usize::MAX))
}
