//! The runs of a scenario, where the plan repeats it, and which of two scenarios belong together.

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::outcome::RowEnd;

use crate::row::figures;

/// Every run of the first measurement of a scenario, in order.
#[must_use]
pub fn runs<'a>(contents: &'a Contents, scenario: &str) -> Vec<&'a Row> {
    numbered_runs(contents, scenario).into_iter().map(|(_, row)| row).collect()
}

/// The same, each with its number in the bundle.
pub(super) fn numbered_runs<'a>(contents: &'a Contents, scenario: &str) -> Vec<(usize, &'a Row)> {
    let named = || contents.rows.iter().enumerate().filter(|(_, row)| row.result.name == scenario);
    let Some((number, first)) = named().next() else { return Vec::new() };
    let same = |(own, row): &(usize, &Row)| {
        row.result.environment == first.result.environment
            && (*own == number || row.result.repeat != first.result.repeat)
    };
    let mut runs: Vec<(usize, &Row)> = named().filter(same).collect();
    runs.sort_by_key(|(_, row)| row.result.repeat);
    runs.dedup_by_key(|(_, row)| row.result.repeat);
    runs
}

/// Whether it was measured to its planned end, in an environment that lived. A half that was cut short does
/// not count.
#[must_use]
pub fn is_whole(result: &RowResult) -> bool {
    result.ended == RowEnd::Complete && result.restarts.is_empty() && figures(result).is_some()
}
