//! What a requirement says about values: a bound is kept or broken when the whole interval of the value is on one
//! side of it.

use tactus_model::bundle::RowResult;
use tactus_model::document::Verdict;
use tactus_model::outcome::{Quantity, ValueResult, value_of};
use tactus_model::plan::Require;

use super::grounds::{Found, evidence, measured, together};
use crate::units::{count, duration, quantity};

/// The verdict, or why there is no ground for one.
pub fn judge(result: &RowResult, require: &Require) -> Result<Verdict, String> {
    measured(result)?;
    if result.values().is_empty() {
        return Err("nothing was measured".into());
    }
    evidence(result)?;
    if require.values.is_empty() {
        return Err("the requirement names no item".into());
    }
    let mut found = Found::default();
    for (item, bound) in &require.values {
        let value = value_of(result.values(), item);
        let value = value.ok_or_else(|| format!("`{item}` was not measured"))?;
        one(value, *bound, &mut found)?;
    }
    let repeats = result.values().iter().map(|value| value.samples).min().unwrap_or(0);
    let base = format!(", over {} repeats and more in {}", count(repeats), duration(result.measured_ns));
    Ok(together(result, &found, &base, None, ""))
}

fn one(value: &ValueResult, bound: Quantity, found: &mut Found) -> Result<(), String> {
    let (item, ValueResult { unit, better, .. }) = (value.name(), value);
    let limit =
        bound.number_in(*unit).ok_or_else(|| format!("{item} is in {unit}, and {bound} is required"))?;
    let (Some(low), Some(high)) = (value.low, value.high) else {
        return Err(format!("{} repeats of {item} are too few for an interval", count(value.samples)));
    };
    let own = quantity(value.value, *unit);
    let required = quantity(limit, *unit);
    match (better.keeps(low, limit), better.keeps(high, limit)) {
        (true, true) => found.kept.push(format!("{item} {own} is within the required {required}")),
        (false, false) => found.broken.push(format!("{item} {own} is worse than the required {required}")),
        _ => found.open.push(format!(
            "{item} {own} may lie on either side of the required {required} ({} to {})",
            quantity(low, *unit),
            quantity(high, *unit)
        )),
    }
    Ok(())
}
