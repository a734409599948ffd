//! The figures of a row, and why it has none, or fewer than planned.

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::latency::Summary;
use tactus_model::message::{Note, Unknowable};
use tactus_model::outcome::RowEnd;
use tactus_model::topology::Topology;

use crate::units::duration;

/// The figures of a row that measured something.
#[must_use]
pub fn figures(result: &RowResult) -> Option<&Summary> {
    result.all().filter(|all| all.cycles > 0)
}

/// The note that this cannot be known of a row.
#[must_use]
pub fn unavailable(result: &RowResult, what: Unknowable) -> Option<&Note> {
    result.notes.iter().find(|note| note.unknowable == Some(what))
}

/// The text of an imported file that found nothing, as with a noise above a threshold: a good result without
/// numbers.
#[must_use]
pub fn found_nothing(result: &RowResult) -> Option<&str> {
    let imported = result.evidence == Some(Evidence::Imported) && result.ended == RowEnd::Complete;
    result.reason.as_deref().filter(|_| imported && !has_numbers(result))
}

/// The text of a measurement each of whose runs found nothing.
pub fn all_found_nothing<'a>(runs: &[&'a Row]) -> Option<&'a str> {
    let all: Option<Vec<&str>> = runs.iter().map(|run| found_nothing(&run.result)).collect();
    all?.first().copied()
}

/// Whether a row has numbers of any kind.
#[must_use]
pub fn has_numbers(result: &RowResult) -> bool {
    figures(result).is_some() || !result.values().is_empty()
}

/// Why a row lacks numbers, or has fewer than planned; an interrupted row always says so.
#[must_use]
pub fn reason(contents: &Contents, result: &RowResult) -> Option<String> {
    if result.reason.is_some() {
        return result.reason.clone();
    }
    match result.status {
        RowStatus::Measured if ended_early(result) => {
            let (measured, planned) = (duration(result.measured_ns), duration(result.planned_ns));
            Some(match contents.manifest.status {
                RunStatus::Interrupted => format!("interrupted after {measured} of {planned}"),
                RunStatus::Complete => format!("ended after {measured} of {planned}"),
            })
        }
        RowStatus::Measured if !has_numbers(result) => Some("nothing was measured".into()),
        RowStatus::Measured => None,
        RowStatus::Skipped | RowStatus::Failed => Some(unrecorded(result).into()),
    }
}

/// The reason for a row that was not measured, where none was recorded.
pub(super) fn unrecorded(result: &RowResult) -> &'static str {
    match result.ended {
        RowEnd::Waiting => "the run ended before it began",
        _ => "no reason was recorded",
    }
}

/// Whether a row measured less than its plan asked for. Half a per cent is the end of the last tick.
pub fn ended_early(result: &RowResult) -> bool {
    result.status == RowStatus::Measured && result.measured_ns < result.planned_ns - result.planned_ns / 200
}

/// The CPUs of a row's environment that were not measured, as a cpulist; empty if unknown.
#[must_use]
pub fn left_out(contents: &Contents, result: &RowResult) -> String {
    let Some(facts) = contents.facts.get(&result.environment_key()) else { return String::new() };
    if result.series().is_empty() {
        return String::new();
    }
    let measured = result.series().iter().map(|series| series.key.cpu).collect();
    Topology::of(facts).online.minus(&measured).to_string()
}
