//! The values of a repeated measurement: of its runs the median of each item, and its range.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::outcome::{Outcome, Point, ValueResult};
use tactus_statistics::median;

use crate::row::Runs;

/// From this many runs on, their range contains the median of all runs with more than 95 %: 1 - 2^(1 - n).
const RANGE_IS_AN_INTERVAL: usize = 6;

/// The values of these runs, of which `result` is one. Of several runs: the median of each item, with their
/// range as its interval if there are enough.
pub fn values_of(runs: &[&Row], result: &RowResult) -> Vec<ValueResult> {
    let own = fullest(runs, result);
    if runs.len() < 2 {
        return own.to_vec();
    }
    let mut of_all: BTreeMap<Place, Vec<f64>> = BTreeMap::new();
    for row in runs {
        for (place, value) in by_place(row.result.values()) {
            of_all.entry(place).or_default().push(value.value);
        }
    }
    let middles = of_all.into_iter().map(|(place, values)| {
        let ranged = values.len() >= RANGE_IS_AN_INTERVAL;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (place, (median(values), ranged.then_some(least), ranged.then_some(most)))
    });
    let middles: BTreeMap<Place, _> = middles.collect();
    let value = |first: &ValueResult| {
        let (value, low, high) = middles.get(&place(first)).copied().unwrap_or_default();
        ValueResult { low, high, value: value.unwrap_or(first.value), ..first.clone() }
    };
    own.iter().map(value).collect()
}

/// The values of the run that has the most: one that broke off may lack items.
pub(super) fn fullest<'a>(runs: &[&'a Row], result: &'a RowResult) -> &'a [ValueResult] {
    match runs {
        [] | [_] => result.values(),
        all => {
            let fullest = all.iter().rev().max_by_key(|row| row.result.values().len());
            fullest.map_or(&[], |row| row.result.values())
        }
    }
}

/// The key of a value: an item, at a point of its curve.
pub(super) type Place<'a> = (&'a str, Option<Point>);

/// The key of this one.
pub(super) fn place(value: &ValueResult) -> Place<'_> {
    (&value.item, value.at)
}

/// The first value of each.
pub(super) fn by_place(values: &[ValueResult]) -> BTreeMap<Place<'_>, &ValueResult> {
    let mut all = BTreeMap::new();
    for value in values {
        all.entry(place(value)).or_insert(value);
    }
    all
}

/// The first run with values of each measurement that yields them, with its number in the bundle.
#[must_use]
pub fn valued(contents: &Contents) -> Vec<(usize, &Row)> {
    let has_values = |(_, row): &(usize, &Row)| !row.result.values().is_empty();
    Runs::new(contents).numbered().filter_map(|mut runs| runs.find(has_values)).collect()
}

/// The rows that yield values; runs of one measurement are one row, which has the median of each item.
#[must_use]
pub fn typical_rows(contents: &Contents) -> Vec<Row> {
    let runs = Runs::new(contents);
    let typical = |(number, row): (usize, &Row)| {
        let mut typical = row.clone();
        typical.result.outcome = Outcome::Values(values_of(runs.of(number), &row.result));
        typical.result.repeat = None;
        typical
    };
    valued(contents).into_iter().map(typical).collect()
}
