//! Judges a measurement that is made several times: each run is judged, and for each limit the worst run
//! counts.

use std::cmp::Ordering;

use tactus_model::bundle::Row;
use tactus_model::document::{LimitEntry, Outcome, Side, Verdict};
use tactus_model::number::float;

use super::summary::figures;
use super::verdict::verdict;
use crate::units::latency;

/// The verdict on all runs of a measurement; `None` when nothing is required of it.
#[must_use]
pub fn verdict_of_runs(runs: &[&Row]) -> Option<Verdict> {
    let judged: Vec<(&Row, Verdict)> = runs.iter().filter_map(|row| Some((*row, verdict(row)?))).collect();
    // Of several that are alike the first.
    let (row, worst) = judged.iter().rev().max_by(|(_, one), (_, other)| by(badness(one), badness(other)))?;
    if judged.len() < 2 {
        return Some(worst.clone());
    }
    let mut limits: Vec<LimitEntry> = Vec::new();
    for limit in judged.iter().flat_map(|(_, verdict)| &verdict.limits) {
        match limits.iter_mut().find(|known| is_of(known, limit)) {
            Some(known) if by(taken(known), taken(limit)).is_lt() => *known = limit.clone(),
            Some(_) => {}
            None => limits.push(limit.clone()),
        }
    }
    // A run of which nothing can be said may have broken what the others keep.
    let undecided = judged.iter().any(|(_, verdict)| verdict.outcome == Outcome::Inconclusive);
    if undecided && worst.outcome == Outcome::Fail {
        limits.iter_mut().filter(|limit| limit.side == Side::Kept).for_each(|limit| limit.side = Side::Open);
    }
    let alike = judged.iter().all(|(_, verdict)| verdict.reason == worst.reason);
    let which = row.result.repeat.filter(|_| !alike);
    let which = which.map(|run| format!("run {run} of {}: ", runs.len())).unwrap_or_default();
    let unjudged = largest(runs, &mut limits).unwrap_or_default();
    Some(Verdict { reason: format!("{which}{}{unjudged}", worst.reason), limits, ..worst.clone() })
}

/// The largest maximum is that of all runs, also of one that is not judged; in words where it is such a run's.
fn largest(runs: &[&Row], limits: &mut [LimitEntry]) -> Option<String> {
    let maxima = runs.iter().filter_map(|row| Some((figures(&row.result)?.max_ns?, row.result.repeat)));
    let (max, run) = maxima.max_by_key(|(max, _)| *max)?;
    let limit = limits.iter_mut().find(|limit| limit.quantity == "max" && limit.high < float(max))?;
    (limit.low, limit.high) = (float(max), float(max));
    if limit.side == Side::Kept && limit.high > limit.limit {
        limit.side = Side::Open;
    }
    limit.reason = format!("{}; the maximum of all runs is {}", limit.reason, latency(float(max)));
    let run = run.map(|run| format!("run {run}")).unwrap_or_default();
    Some(format!("; {run}, which is not judged, has the maximum {}", latency(float(max))))
}

fn is_of(one: &LimitEntry, other: &LimitEntry) -> bool {
    (&one.quantity, one.warns) == (&other.quantity, other.warns)
}

fn by(one: (u8, f64), other: (u8, f64)) -> Ordering {
    one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
}

/// The rank of a verdict, the worst last, and how much of its limits it took. For an undecided one the second
/// number is how much longer it would take, infinite if time would not help.
fn badness(verdict: &Verdict) -> (u8, f64) {
    let limits = |of: fn(&LimitEntry) -> bool| {
        verdict.limits.iter().filter(|limit| of(limit)).map(|limit| taken(limit).1).fold(0.0, f64::max)
    };
    match verdict.outcome {
        Outcome::Pass => (0, limits(|_| true)),
        Outcome::Warn => (1, limits(|limit| limit.side == Side::Broken)),
        Outcome::Inconclusive => (2, verdict.longer_ns.map_or(f64::INFINITY, float)),
        Outcome::Fail => (3, limits(|limit| limit.side == Side::Broken && !limit.warns)),
    }
}

/// On which side of a limit a result is, the worst last, and which part of the limit it takes.
fn taken(limit: &LimitEntry) -> (u8, f64) {
    let LimitEntry { limit: most, low, high, side, .. } = *limit;
    // A value may be bounded from below: what is less than its limit and breaks it, and what is more and keeps it.
    let from_below = match side {
        Side::Kept => low >= most && high > most,
        Side::Broken => high < most,
        Side::Open => false,
    };
    let part = match from_below {
        true if low > 0.0 => most / low,
        true => f64::INFINITY,
        false if most > 0.0 => high / most,
        false => high,
    };
    let side = match side {
        Side::Kept => 0,
        Side::Open => 1,
        Side::Broken => 2,
    };
    (side, part)
}
