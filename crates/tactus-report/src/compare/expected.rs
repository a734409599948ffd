//! What a gate will need, before anything is measured: from how much the runs of its baseline differ.

use tactus_statistics::{ERROR, runs_needed};

use super::condition::{Condition, is_skipped};
use super::margins::Margins;
use super::refusal::unfit;
use super::sampled::sampled;

/// What decides that nothing became worse than its margin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The scenario of the quantity that needs most runs.
    pub scenario: String,
    /// The quantity.
    pub quantity: String,
    /// How many runs of each condition it needs, should nothing have changed; none: no number that anybody would make.
    pub runs: Option<usize>,
    /// How many the baseline has of it.
    pub base: usize,
}

/// What the quantity needs that needs most; none: the baseline has nothing whose runs can be told apart, as one run of each
/// scenario.
#[must_use]
pub fn expected(base: &Condition, margins: &Margins) -> Option<Expected> {
    let mut all = Vec::new();
    for (key, runs) in base.scenarios() {
        if is_skipped(&runs) || runs.iter().any(|run| unfit(&base.name, *run).is_some()) {
            continue;
        }
        for of in sampled(&runs, &[], margins) {
            let Some(spread) = of.run_to_run().filter(|_| of.not_judged.is_none()) else { continue };
            all.push(Expected {
                scenario: key.name.clone(),
                quantity: of.quantity,
                runs: runs_needed(spread, of.limit.ln(), ERROR),
                base: of.base.len(),
            });
        }
    }
    // What no number decides needs most.
    all.into_iter().max_by_key(|one| one.runs.unwrap_or(usize::MAX))
}
