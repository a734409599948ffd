//! Whether there is ground for saying anything of a row's latencies, whatever is asked.

use tactus_model::bundle::RowResult;
use tactus_model::latency::Summary;
use tactus_model::plan::Require;

use super::complete::{fewest_cycles, lacking, longer_ns, too_short};
use super::control::{control, unproven};
use super::grounds::{Doubt, doubt, evidence, measured};
use crate::units::count;

/// The least number of cycles of each thread for a verdict when the plan does not say.
pub const CYCLES_FOR_A_VERDICT: u64 = 100_000;

/// What may be said of the largest latency of a row, whatever the limit is: an error where there is no ground for
/// anything, and why a limit that is kept is not shown to be.
///
/// # Errors
/// Why nothing may be said.
pub fn standing(result: &RowResult) -> Result<Option<String>, String> {
    doubts(result).map(|doubt| doubt.map(|doubt| doubt.said)).map_err(|doubt| doubt.said)
}

/// The same, with how much longer would settle it.
pub(super) fn doubts(result: &RowResult) -> Result<Option<Doubt>, Doubt> {
    let nothing = Require::default();
    proven_figures(result)?;
    if let Some(doubt) = too_few(result, &nothing, CYCLES_FOR_A_VERDICT) {
        return Err(doubt);
    }
    let arrived = lacking(result).map(Doubt::from).or_else(|| too_short(result, &nothing));
    Ok(doubt(result, arrived))
}

/// The figures to judge, of evidence that carries a verdict and by an instrument that passed its self-test.
pub(super) fn proven_figures(result: &RowResult) -> Result<&Summary, Doubt> {
    measured(result)?;
    let summary = result.all().filter(|all| all.cycles > 0).ok_or("nothing was measured")?;
    evidence(result)?;
    if control(result).is_none() {
        return Err("self-test not passed: none was made".into());
    }
    if let Some(why) = unproven(result) {
        return Err(format!("self-test not passed: {why}").into());
    }
    Ok(summary)
}

/// Why there are too few cycles for any verdict but that a limit is broken; none: there are enough.
pub(super) fn too_few(result: &RowResult, require: &Require, least: u64) -> Option<Doubt> {
    let fewest = fewest_cycles(result);
    (fewest < least).then(|| {
        let (fewest, needed) = (count(fewest), count(least));
        let said = format!("{fewest} cycles of a thread are too few for a verdict, which needs {needed}");
        Doubt { said, longer_ns: longer_ns(result, require, least) }
    })
}
