//! A named value, put together from repeats.

use serde::{Deserialize, Serialize};

use super::{Better, Unit, median};
use crate::catalogue::Item;

/// One item of a measurement that yields values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueResult {
    /// What was measured, in the catalogue's words.
    pub item: String,
    /// In which unit.
    pub unit: Unit,
    /// Which of two values is the better one.
    pub better: Better,
    /// Repeats that count.
    pub samples: u64,
    /// Their median.
    pub value: f64,
    /// Lower end of the median's 95 % interval; none: there are too few repeats for one.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The smallest repeat.
    pub min: f64,
    /// The largest repeat.
    pub max: f64,
    /// Median of the repeats' distances from the value.
    pub deviation: f64,
    /// Repeats left out because something else had the CPU meanwhile.
    pub dropped: u64,
    /// How often the operation was done in each repeat.
    pub batch: u64,
}

/// What was measured of one item so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeats {
    /// The value of each repeat that counts.
    pub kept: Vec<f64>,
    /// How many were left out.
    pub dropped: u64,
    /// How often the operation is done in each.
    pub batch: u64,
}

impl ValueResult {
    /// The value of some repeats, which it orders; none where none counts.
    #[must_use]
    pub fn of(item: &Item, repeats: &mut Repeats) -> Option<Self> {
        let middle = median(&mut repeats.kept)?;
        Some(Self {
            item: item.name.to_owned(),
            unit: item.unit,
            better: item.better,
            samples: u64::try_from(repeats.kept.len()).ok()?,
            value: nine_digits(middle.value),
            low: middle.interval.map(|(low, _)| nine_digits(low)),
            high: middle.interval.map(|(_, high)| nine_digits(high)),
            min: nine_digits(middle.range.0),
            max: nine_digits(middle.range.1),
            deviation: nine_digits(middle.deviation),
            dropped: repeats.dropped,
            batch: repeats.batch,
        })
    }
}

/// The number with nine digits: more than any measurement tells, and few enough for it to be the same number
/// after it was written and read, as often as that may be.
fn nine_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let decimals = 8.0 - value.abs().log10().floor();
    // Powers of ten are exact, their inverses are not.
    let scale = 10f64.powf(decimals.abs().min(22.0));
    if decimals < 0.0 { (value / scale).round() * scale } else { (value * scale).round() / scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_digits_are_kept() {
        for (value, kept) in [
            (0.0, 0.0),
            (1.0 / 3.0, 0.333_333_333),
            (85.123_456_789_12, 85.123_456_8),
            (972_316_044_415.714_5, 972_316_044_000.0),
            (-2.0, -2.0),
        ] {
            assert_eq!(nine_digits(value), kept, "{value}");
        }
    }
}
