//! Judges a requirement on values: a bound is kept or broken when the whole interval of the value is on one
//! side of it.

use tactus_model::bundle::RowResult;
use tactus_model::document::{LimitEntry, Side, Verdict};
use tactus_model::outcome::{Quantity, ValueResult, value_of};
use tactus_model::plan::Require;

use super::complete::too_short;
use super::grounds::{Doubt, Found, asked, evidence, measured, together};
use crate::units::{count, duration, quantity};

/// The verdict, or why there is no ground for one.
pub fn judge(result: &RowResult, require: &Require) -> Result<Verdict, Doubt> {
    measured(result)?;
    if result.values().is_empty() {
        return Err("nothing was measured".into());
    }
    evidence(result)?;
    let soft = require.warn.iter().flat_map(|warn| &warn.values).map(|bound| (bound, true));
    let limits: Vec<_> = require.values.iter().map(|bound| (bound, false)).chain(soft).collect();
    if limits.is_empty() {
        return Err("the requirement names no item".into());
    }
    let mut found = Vec::new();
    for ((item, bound), warns) in limits {
        let value = value_of(result.values(), item);
        let value = value.ok_or_else(|| format!("`{item}` was not measured"))?;
        found.push(one(value, *bound, warns)?);
    }
    let repeats = result.values().iter().map(|value| value.samples).min().unwrap_or(0);
    let base = format!(", over {} repeats and more in {}", count(repeats), duration(result.measured_ns));
    Ok(together(
        result,
        found,
        &base,
        too_short(result, require),
        "; another run may lie outside the intervals of this one",
    ))
}

fn one(value: &ValueResult, bound: Quantity, warns: bool) -> Result<Found, String> {
    let (item, ValueResult { unit, better, .. }) = (value.name(), value);
    let limit =
        bound.number_in(*unit).ok_or_else(|| format!("{item} is in {unit}, but {bound} is required"))?;
    let (Some(low), Some(high)) = (value.low, value.high) else {
        return Err(format!("{} repeats of {item} are too few for an interval", count(value.samples)));
    };
    let own = quantity(value.value, *unit);
    let asked = format!("the {} {}", asked(warns), quantity(limit, *unit));
    let (side, said) = match (better.keeps(low, limit), better.keeps(high, limit)) {
        (true, true) => (Side::Kept, format!("{item} {own} is within {asked}")),
        (false, false) => (Side::Broken, format!("{item} {own} is worse than {asked}")),
        _ => {
            let (low, high) = (quantity(low, *unit), quantity(high, *unit));
            (Side::Open, format!("{item} {own} may be above or below {asked} ({low} to {high})"))
        }
    };
    let entry = LimitEntry {
        quantity: item.to_owned(),
        limit,
        low,
        high,
        unit: unit.to_string(),
        warns,
        side,
        reason: String::new(),
    };
    Ok(Found::new(entry, said))
}
