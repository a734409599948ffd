//! When a requirement may say anything, and what follows from its parts.

use tactus_model::Evidence;
use tactus_model::bundle::RowResult;
use tactus_model::document::{Outcome, Verdict};
use tactus_model::event::RowStatus;

use super::summary::ended_early;
use crate::units::{clean, duration};

/// Whether a row was measured.
pub fn measured(result: &RowResult) -> Result<(), String> {
    let why = || result.reason.as_deref().unwrap_or("no reason was kept");
    match result.status {
        RowStatus::Measured => Ok(()),
        RowStatus::Skipped => Err(format!("skipped: {}", why())),
        RowStatus::Failed => Err(format!("failed: {}", why())),
    }
}

/// The faults of a row that were never made, as what carried them out says; none: there is no such one. Nothing is known
/// then of what the row is for.
pub fn never_made(result: &RowResult) -> Option<String> {
    let never = result.injected.iter().filter(|at| at.injected.times == Some(0));
    let named: Vec<String> =
        never.map(|at| format!("`{}` in {}", clean(&at.injected.kind), clean(&at.environment))).collect();
    (!named.is_empty()).then(|| format!("{} was never made (0 times)", named.join(" and ")))
}

/// Whether its evidence carries a verdict.
pub fn evidence(result: &RowResult) -> Result<(), String> {
    match result.evidence {
        Some(Evidence::BareMetal | Evidence::VirtualHost) => Ok(()),
        Some(Evidence::Emulated) => Err("emulated: this says nothing about hardware".into()),
        Some(Evidence::Imported) => {
            Err("imported: the instrument is not proven here, tactus did not see the measurement".into())
        }
        None => Err("it is not known what kind of evidence this is".into()),
    }
}

/// What was found of each limit, a sentence each.
#[derive(Default)]
pub struct Found {
    pub kept: Vec<String>,
    pub broken: Vec<String>,
    /// It may be either.
    pub open: Vec<String>,
}

/// The verdict of all limits together; `base` says over what it was measured, `doubt` why what was kept does not pass,
/// and `bound` what a pass says of the time that was not measured. Nothing passes whose fault was never made.
pub fn together(
    result: &RowResult,
    found: &Found,
    base: &str,
    doubt: Option<String>,
    bound: &str,
) -> Verdict {
    let place = match result.evidence {
        Some(Evidence::VirtualHost) => ", as seen inside this virtual machine",
        _ => "",
    };
    let said = |outcome, sentences: &[String], rest: &str| Verdict {
        outcome,
        reason: format!("{}{base}{place}{rest}", sentences.join("; ")),
    };
    if !found.broken.is_empty() {
        return said(Outcome::Fail, &found.broken, "");
    }
    if !found.open.is_empty() {
        return said(Outcome::Inconclusive, &found.open, "");
    }
    match self::doubt(result, doubt) {
        Some(doubt) => said(Outcome::Inconclusive, &found.kept, &format!(", but {doubt}")),
        None => said(Outcome::Pass, &found.kept, bound),
    }
}

/// Why what was kept does not pass: it ended early, its fault was never made, or `doubt`; none: it passes.
pub fn doubt(result: &RowResult, doubt: Option<String>) -> Option<String> {
    if ended_early(result) {
        let reason = result.reason.as_deref().unwrap_or("interrupted");
        return Some(format!("it ended before its {}: {reason}", duration(result.planned_ns)));
    }
    never_made(result).map(|never| format!("{never}: what it does is not known")).or(doubt)
}
