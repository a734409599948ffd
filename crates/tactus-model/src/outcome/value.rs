//! A named value, put together from repeats.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Better, Point, Unit, median};
use crate::catalogue::Item;

/// One item of a measurement that yields values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueResult {
    /// The measured item, in the catalogue's words.
    pub item: String,
    /// The point on its curve; absent: the item has no curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Point>,
    /// Its unit.
    pub unit: Unit,
    /// Which of two values is the better one.
    pub better: Better,
    /// Repeats that count.
    pub samples: u64,
    /// Their median.
    pub value: f64,
    /// Lower end of the median's 95 % interval; `null`: there are too few repeats.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The smallest repeat.
    pub min: f64,
    /// The largest repeat.
    pub max: f64,
    /// Median of the repeats' distances from the value.
    pub deviation: f64,
    /// Their coefficient of variation: the standard deviation over the mean.
    #[serde(default)]
    pub variation: f64,
    /// Repeats left out because something else had the CPU meanwhile.
    pub dropped: u64,
    /// Number of times that the operation was done in each repeat.
    pub batch: u64,
}

/// The samples of one item so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeats {
    /// The value of each repeat that counts.
    pub kept: Vec<f64>,
    /// How many were left out.
    pub dropped: u64,
    /// Number of times that the operation is done in each.
    pub batch: u64,
}

impl ValueResult {
    /// The value of some repeats, which it orders; none where none counts.
    #[must_use]
    pub fn of(item: &Item, repeats: &mut Repeats) -> Option<Self> {
        let middle = median(&mut repeats.kept)?;
        Some(Self {
            item: item.name.to_owned(),
            at: None,
            unit: item.unit,
            better: item.better,
            samples: u64::try_from(repeats.kept.len()).ok()?,
            value: nine_digits(middle.value),
            low: middle.interval.map(|(low, _)| nine_digits(low)),
            high: middle.interval.map(|(_, high)| nine_digits(high)),
            min: nine_digits(middle.range.0),
            max: nine_digits(middle.range.1),
            deviation: nine_digits(middle.deviation),
            variation: nine_digits(variation(&repeats.kept)),
            dropped: repeats.dropped,
            batch: repeats.batch,
        })
    }

    /// Whether the other one is of the same item, at the same point of its curve.
    #[must_use]
    pub fn is_of(&self, other: &Self) -> bool {
        self.item == other.item && self.at == other.at
    }

    /// The item and, for a curve, its point.
    #[must_use]
    pub fn name(&self) -> String {
        self.at.map_or_else(|| self.item.clone(), |at| format!("{}, {at}", self.item))
    }
}

/// Puts values into the order of a measurement's items, and the points of a curve into theirs, whichever was there first.
/// Unknown items stand behind, as they came.
pub fn in_order(values: &mut [ValueResult], items: &[Item]) {
    values.sort_by_key(|value| {
        let place = items.iter().position(|item| item.name == value.item);
        (place.unwrap_or(items.len()), value.at.filter(|_| place.is_some()))
    });
}

/// The whole value of each item, in their order.
pub fn wholes(values: &[ValueResult]) -> impl Iterator<Item = &ValueResult> {
    let mut last: BTreeMap<&str, Option<Point>> = BTreeMap::new();
    for value in values {
        let at = last.entry(&value.item).or_insert(value.at);
        *at = value.at.max(*at);
    }
    values.iter().filter(move |value| last.get(value.item.as_str()) == Some(&value.at))
}

/// The whole value of an item; for a curve, that of its last point.
#[must_use]
pub fn value_of<'a>(values: &'a [ValueResult], item: &str) -> Option<&'a ValueResult> {
    values.iter().filter(|value| value.item == item).max_by_key(|value| value.at)
}

/// The standard deviation over the mean; 0 if that is not a number.
fn variation(samples: &[f64]) -> f64 {
    let n = crate::number::float(samples.len() as u64);
    let mean = samples.iter().sum::<f64>() / n;
    let squares: f64 = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum();
    let variation = (squares / (n - 1.0)).sqrt() / mean.abs();
    if variation.is_finite() { variation } else { 0.0 }
}

/// The number with nine digits: more than any measurement yields. Writing and reading it any number of times does not
/// change it.
fn nine_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let decimals = 8.0 - value.abs().log10().floor();
    // Powers of ten are exact, their inverses are not. By multiplication: pow(3) would bring 8 KB of tables into the probe.
    let scale = 10f64.powi(i32::try_from(crate::number::whole(decimals.abs().min(22.0))).unwrap_or(22));
    if decimals < 0.0 { (value / scale).round() * scale } else { (value * scale).round() / scale }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::measure::os::SYSTEM_CALL;

    #[test]
    fn a_curve_is_as_a_whole_what_its_last_point_is() {
        let at = |at| {
            let mut repeats = Repeats { kept: vec![1.0], ..Repeats::default() };
            ValueResult { at, ..ValueResult::of(&SYSTEM_CALL, &mut repeats).unwrap() }
        };
        let curve = [1024, 65_536, 2048].map(|bytes| at(Some(Point::Bytes(bytes))));
        assert_eq!(value_of(&curve, SYSTEM_CALL.name).unwrap().at, Some(Point::Bytes(65_536)));
        assert_eq!(value_of(&[at(None)], SYSTEM_CALL.name).unwrap().at, None);
        assert!(wholes(&curve).eq([&curve[1]]), "the rest of a curve is no whole");
        assert_eq!(value_of(&curve, "signal handler"), None);
    }

    #[test]
    fn values_stand_in_the_order_of_the_items_whichever_came_first() {
        let of = |item: &str, at: Option<u64>| {
            let mut repeats = Repeats { kept: vec![1.0], ..Repeats::default() };
            let value = ValueResult::of(&SYSTEM_CALL, &mut repeats).unwrap();
            ValueResult { item: item.into(), at: at.map(Point::Bytes), ..value }
        };
        let unknown = [of("z", Some(9)), of("a", Some(4))];
        let mut values = vec![of("signal handler", Some(2)), unknown[0].clone(), unknown[1].clone()];
        values.extend([of("signal handler", Some(1)), of(SYSTEM_CALL.name, None)]);
        in_order(&mut values, crate::catalogue::measure::Os::ITEMS);
        let names: Vec<String> = values.iter().map(ValueResult::name).collect();
        assert_eq!(names, ["system call", "signal handler, 1B", "signal handler, 2B", "z, 9B", "a, 4B"]);
    }

    #[test]
    fn the_coefficient_of_variation_is_that_of_a_sample() {
        // Mean 5, sum of squares 32 of 8.
        let known = variation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert!((known - (32.0_f64 / 7.0).sqrt() / 5.0).abs() < 1e-12);
        assert_eq!([variation(&[]), variation(&[3.0]), variation(&[0.0, 0.0])], [0.0; 3]);
    }

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
