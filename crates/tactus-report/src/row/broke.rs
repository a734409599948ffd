//! Names the runs of a measurement that broke.

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::event::RowStatus;
use tactus_model::outcome::RowEnd;

use super::grounds::died;
use super::summary::{ended_early, reason};

/// In words: `2 of 5 runs failed: the guest's kernel panicked`; `None` if each run was measured to its end,
/// or was not begun.
#[must_use]
pub fn broke(contents: &Contents, runs: &[&Row]) -> Option<String> {
    let failed = |result: &RowResult| result.status == RowStatus::Failed;
    let early = |result: &RowResult| {
        ended_early(result) || (result.status == RowStatus::Measured && result.ended != RowEnd::Complete)
    };
    let words = [
        ("failed", runs.iter().filter(|run| failed(&run.result)).collect::<Vec<_>>()),
        ("ended early", runs.iter().filter(|run| early(&run.result)).collect()),
        (
            "continued after its environment had died",
            runs.iter().filter(|run| died(&run.result).is_some()).collect(),
        ),
    ];
    let said = words.into_iter().filter_map(|(word, broken)| {
        let first = &broken.first()?.result;
        let why =
            died(first).or_else(|| reason(contents, first)).map(|why| format!(": {why}")).unwrap_or_default();
        let all = runs.len();
        Some(if all == 1 {
            format!("{word}{why}")
        } else {
            format!("{} of {all} runs {word}{why}", broken.len())
        })
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("; "))
}
