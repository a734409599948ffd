//! The effects on values from one scenario to another: judged like the costs of environments, from rounds of
//! runs.

use tactus_model::bundle::{Contents, Row};
use tactus_model::outcome::{Outcome, RowEnd};

use super::degradation::Degraded;
use super::measured::Measured;
use super::runs::{numbered_runs, runs};
use crate::row::{Runs, never_made};

/// Whether the two scenarios yield values: what was to be measured says so, where nothing came of one.
pub(super) fn is_of_values(contents: &Contents, scenarios: [&str; 2]) -> bool {
    scenarios
        .into_iter()
        .flat_map(|name| runs(contents, name))
        .any(|row| matches!(row.result.outcome, Outcome::Values(_)))
}

/// The values of `with` against those of `base`, before they are judged.
///
/// # Errors
/// When one of them has no values, a fault in them was never made, or they do not measure the same: the sentence that
/// says so.
pub(super) fn draft<'a>(
    contents: &'a Contents,
    measurements: &Runs<'a>,
    base: &str,
    with: &str,
) -> Result<Degraded<'a>, String> {
    let all = [base, with].map(|name| numbered_runs(contents, name));
    let [first, other] = [measured(&all[0])?, measured(&all[1])?];
    if first.1.result.measurement.kind() != other.1.result.measurement.kind() {
        return Err("the two scenarios measure different things".into());
    }
    if let Some(never) = all.iter().flatten().find_map(|(_, row)| never_made(&row.result)) {
        return Err(never);
    }
    let [base, with] = [first, other].map(|(number, row)| Measured::of(measurements, (number, &row.result)));
    let pair = Degraded::new(&base, &with);
    if pair.items.is_empty() {
        return Err("they have no item in common".into());
    }
    Ok(pair)
}

/// The first run that has values: a whole one, if there is any.
fn measured<'a>(runs: &[(usize, &'a Row)]) -> Result<(usize, &'a Row), String> {
    let valued = || runs.iter().copied().filter(|(_, row)| !row.result.values().is_empty());
    let whole = valued().find(|(_, row)| row.result.ended == RowEnd::Complete);
    whole.or_else(|| valued().next()).ok_or_else(|| {
        let Some((_, first)) = runs.first() else { return "nothing was measured".to_owned() };
        let reason = first.result.reason.as_deref().unwrap_or("nothing was measured");
        format!("`{}` has no values: {reason}", first.result.name)
    })
}
