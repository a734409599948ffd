//! Whether a row's latencies may be judged at all, whatever the requirement.

use tactus_model::bundle::RowResult;
use tactus_model::latency::Summary;
use tactus_model::plan::Require;

use super::complete::{CYCLES_FOR_A_VERDICT, fewest_cycles, lacking, longer_ns, too_short};
use super::control::{control, unproven};
use super::grounds::{Doubt, doubt, evidence, measured};
use super::summary::found_nothing;
use crate::units::count;

/// Whether the smallest and the largest latency of a row may be judged, whatever the limit. `Some` says why a
/// kept limit is not shown to be kept. A broken limit stays broken: more cycles do not change that.
///
/// # Errors
/// Why nothing may be said.
pub fn standing(result: &RowResult) -> Result<Option<String>, String> {
    ground(result, &Require::default(), CYCLES_FOR_A_VERDICT, |_| true).map_err(|doubt| doubt.said)?;
    Ok(too_few(result, CYCLES_FOR_A_VERDICT).or_else(|| kept(result).map(|doubt| doubt.said)))
}

/// Whether a row's latencies as a whole may be judged: a doubt, with the longer time that would settle it. An
/// error says why nothing may be said.
pub(super) fn doubts(result: &RowResult) -> Result<Option<Doubt>, Doubt> {
    ground(result, &Require::default(), CYCLES_FOR_A_VERDICT, |_| false)?;
    Ok(kept(result))
}

/// Why a limit that is kept by enough cycles is not shown to be.
fn kept(result: &RowResult) -> Option<Doubt> {
    let arrived = lacking(result).map(Doubt::from).or_else(|| too_short(result, &Require::default()));
    doubt(result, arrived)
}

/// The figures to judge. `settled` says whether more data cannot change the result: then they are never too
/// few.
pub(super) fn ground<'a>(
    result: &'a RowResult,
    require: &Require,
    least: u64,
    settled: impl Fn(&Summary) -> bool,
) -> Result<&'a Summary, Doubt> {
    measured(result)?;
    // An import that found nothing has no figures, and its evidence is what decides nothing.
    if found_nothing(result).is_some() {
        evidence(result)?;
    }
    let summary = result.all().filter(|all| all.cycles > 0).ok_or("nothing was measured")?;
    evidence(result)?;
    if control(result).is_none() {
        return Err("self-test not passed: none was made".into());
    }
    if let Some(why) = unproven(result) {
        return Err(format!("self-test not passed: {why}").into());
    }
    match too_few(result, least) {
        Some(said) if !settled(summary) => Err(Doubt { said, longer_ns: longer_ns(result, require, least) }),
        _ => Ok(summary),
    }
}

/// Says that a thread has fewer cycles than it needs; `None` if each has enough.
pub(super) fn too_few(result: &RowResult, least: u64) -> Option<String> {
    let fewest = fewest_cycles(result);
    (fewest < least).then(|| {
        let (cycles, are) = if fewest == 1 { ("cycle", "is") } else { ("cycles", "are") };
        format!(
            "{} {cycles} of a thread {are} too few for a pass, which needs {}",
            count(fewest),
            count(least)
        )
    })
}
