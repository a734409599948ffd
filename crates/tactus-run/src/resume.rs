//! Resuming a bundle: finds the rows of its plan that are complete, and leaves them alone.

use tactus_bundle::{BundleError, Resumed, Writer};
use tactus_model::bundle::RowResult;

use crate::plan::{Resolved, ResolvedScenario};

/// Marks what is complete in the resolved plan, so that it is left alone: a scenario whose
/// measurements all are. Returns how many scenarios that are.
///
/// # Errors
/// When the rows are not those of the bundle.
pub fn keep_complete(resumed: &Resumed, resolved: &mut Resolved) -> Result<usize, BundleError> {
    let rows = &resumed.contents.rows;
    let same = rows.len() == resolved.rows.len()
        && rows.iter().zip(&resolved.rows).all(|(then, now)| {
            let key = |result: &RowResult| {
                (result.name.clone(), result.environment.clone(), result.repeat, result.slice)
            };
            key(&then.result) == key(&now.result)
        });
    if !same {
        return Err(resumed.refuses("its rows differ from those of the plan on this machine".into()));
    }
    for scenario in &mut resolved.scenarios {
        let own = scenario.rows.clone();
        scenario.kept = rows[own.clone()].iter().all(|row| row.result.is_complete());
        if scenario.kept {
            own.for_each(|row| resolved.rows[row].result = rows[row].result.clone());
        }
    }
    for now in &mut resolved.plan.scenario {
        let name = now.name.clone();
        let own = |scenario: &&ResolvedScenario| Some(&scenario.name) == name.as_ref();
        let kept = resolved.scenarios.iter().filter(own).all(|scenario| scenario.kept);
        let then = resumed.contents.plan.scenario.iter().find(|then| then.name == name);
        if let Some(then) = then.filter(|_| kept) {
            *now = then.clone();
        }
    }
    Ok(resolved.scenarios.iter().filter(|scenario| scenario.kept).count())
}

/// Goes on with the bundle: what is kept stays, the rest is emptied.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn resumed_writer(resumed: &Resumed, resolved: &Resolved) -> Result<Writer, BundleError> {
    let results: Vec<_> = resolved.rows.iter().map(|row| row.result.clone()).collect();
    let is_kept =
        |row: &usize| resolved.scenarios.iter().any(|scenario| scenario.kept && scenario.rows.contains(row));
    let kept: Vec<bool> = (0..results.len()).map(|row| is_kept(&row)).collect();
    resumed.writer(&resolved.plan, &results, &kept)
}
