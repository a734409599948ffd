//! The document of `tactus show --json`.

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::{Document, Entry, SeriesEntry};
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::latency::Summary;
use tactus_model::number::float;

use super::control::control;
use super::published::published;
use super::verdict::{ended_early, verdict};
use crate::units::duration;

/// A run in numbers: one entry per row, in the plan's order.
#[must_use]
pub fn document(contents: &Contents) -> Document {
    Document {
        format: contents.manifest.format,
        status: contents.manifest.status,
        scenarios: contents.rows.iter().map(|row| entry(contents, row)).collect(),
    }
}

fn entry(contents: &Contents, row: &Row) -> Entry {
    let result = &row.result;
    Entry {
        name: result.name.clone(),
        environment: result.environment.clone(),
        kind: result.kind.clone(),
        evidence: result.evidence,
        measurement: result.measurement.kind().into(),
        load: result.load.clone(),
        fault: result.fault.clone(),
        status: result.status,
        reason: reason(contents, result),
        duration_s: float(result.measured_ns) / 1e9,
        series: result
            .series
            .iter()
            .map(|series| SeriesEntry {
                id: series.key.id(&result.environment),
                key: series.key.clone(),
                summary: series.summary.clone(),
            })
            .collect(),
        all: figures(result).cloned(),
        values: None,
        control: control(result),
        published: published(&contents.plan, &result.name),
        verdict: verdict(row),
    }
}

/// The figures of a row that measured something.
pub(super) fn figures(result: &RowResult) -> Option<&Summary> {
    result.all.as_ref().filter(|all| all.cycles > 0)
}

/// Why a row has no numbers, or fewer than planned; an interrupted one says so in any case.
pub(crate) fn reason(contents: &Contents, result: &RowResult) -> Option<String> {
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
        RowStatus::Measured if figures(result).is_none() => Some("nothing was measured".into()),
        RowStatus::Measured => None,
        RowStatus::Skipped | RowStatus::Failed => Some("no reason was kept".into()),
    }
}
