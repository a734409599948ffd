//! The runs of a repeated measurement in one line: the median of each figure, and its range.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::latency::{Corrected, Summary};
use tactus_model::number::{float, whole};
use tactus_model::outcome::{Outcome, Point, ValueResult};

use super::median::median;
use crate::row::figures;

/// With so many runs their range holds the median of all runs with more than 95 %: 1 - 2^(1 - n).
const RANGE_IS_AN_INTERVAL: usize = 6;

/// The runs of one measurement that have figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// How many.
    pub runs: usize,
    /// The smallest of each figure.
    pub lowest: Summary,
    /// The largest.
    pub highest: Summary,
}

/// The runs of every measurement of a bundle, found once.
pub struct Runs<'a> {
    repeated: BTreeMap<Key<'a>, Vec<&'a Row>>,
    alone: BTreeMap<*const RowResult, &'a Row>,
}

impl<'a> Runs<'a> {
    /// Finds them.
    #[must_use]
    pub fn new(contents: &'a Contents) -> Self {
        let mut repeated: BTreeMap<Key, Vec<&Row>> = BTreeMap::new();
        for row in contents.rows.iter().filter(|row| row.result.repeat.is_some()) {
            repeated.entry(key(&row.result)).or_default().push(row);
        }
        for runs in repeated.values_mut() {
            runs.sort_by_key(|row| row.result.repeat);
        }
        let alone = contents.rows.iter().map(|row| (&raw const row.result, row)).collect();
        Self { repeated, alone }
    }

    /// The rows of the same measurement as this one, in the order of their runs; itself alone where it is not repeated.
    #[must_use]
    pub fn of<'s>(&'s self, result: &'s RowResult) -> &'s [&'a Row] {
        let repeated = result.repeat.and_then(|_| self.repeated.get(&key(result)));
        let alone = || self.alone.get(&(&raw const *result)).map_or(&[][..], std::slice::from_ref);
        repeated.map_or_else(alone, Vec::as_slice)
    }

    /// Its values: of several runs the median of each item.
    #[must_use]
    pub fn values(&self, result: &RowResult) -> Vec<ValueResult> {
        values_of(self.of(result), result)
    }
}

/// The figures of these runs.
pub(super) fn figures_of(runs: &[&Row]) -> Option<Summary> {
    let all = summaries(runs);
    match all.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        all => Some(each(all, &|values| median(values).unwrap_or(0.0))),
    }
}

/// The range of these runs; `None` where it is one.
pub(super) fn spread(runs: &[&Row]) -> Option<Spread> {
    let all = summaries(runs);
    let least = |values: Vec<f64>| values.into_iter().fold(f64::INFINITY, f64::min);
    let most = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
    (all.len() > 1).then(|| Spread {
        runs: all.len(),
        lowest: each(&all, &least),
        highest: each(&all, &most),
    })
}

fn summaries<'a>(runs: &[&'a Row]) -> Vec<&'a Summary> {
    runs.iter().filter_map(|row| figures(&row.result)).collect()
}

/// One figure of all runs.
fn each(all: &[&Summary], one: &dyn Fn(Vec<f64>) -> f64) -> Summary {
    let count = |of: fn(&Summary) -> u64| whole(one(all.iter().map(|all| float(of(all))).collect()));
    let known = |of: fn(&Summary) -> Option<f64>| -> Option<f64> {
        let values: Vec<f64> = all.iter().filter_map(|all| of(all)).collect();
        (!values.is_empty()).then(|| one(values))
    };
    let ns = |of: fn(&Summary) -> Option<f64>| known(of).map(whole);
    Summary {
        cycles: count(|all| all.cycles),
        overruns: count(|all| all.overruns),
        lost: count(|all| all.lost),
        min_ns: ns(|all| all.min_ns.map(float)),
        mean_ns: known(|all| all.mean_ns),
        p50_ns: ns(|all| all.p50_ns.map(float)),
        p99_ns: ns(|all| all.p99_ns.map(float)),
        p999_ns: ns(|all| all.p999_ns.map(float)),
        p9999_ns: ns(|all| all.p9999_ns.map(float)),
        p99999_ns: ns(|all| all.p99999_ns.map(float)),
        max_ns: ns(|all| all.max_ns.map(float)),
        corrected: Corrected {
            count: count(|all| all.corrected.count),
            lost: count(|all| all.corrected.lost),
            p50_ns: ns(|all| all.corrected.p50_ns.map(float)),
            p99_ns: ns(|all| all.corrected.p99_ns.map(float)),
            p999_ns: ns(|all| all.corrected.p999_ns.map(float)),
            p9999_ns: ns(|all| all.corrected.p9999_ns.map(float)),
            p99999_ns: ns(|all| all.corrected.p99999_ns.map(float)),
        },
    }
}

/// The values of these runs, of which `result` is one: of several the median of each item, with their range for an
/// interval where there are enough.
pub(super) fn values_of(runs: &[&Row], result: &RowResult) -> Vec<ValueResult> {
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

/// What a value is of: an item, at a point of its curve.
pub(super) type Place<'a> = (&'a str, Option<Point>);

/// That of this one.
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

/// The first run with values of each measurement that yields them.
#[must_use]
pub fn valued(contents: &Contents) -> Vec<&Row> {
    let (mut firsts, mut repeated): (Vec<&Row>, BTreeSet<Key>) = Default::default();
    for row in contents.rows.iter().filter(|row| !row.result.values().is_empty()) {
        let key = key(&row.result);
        if !repeated.contains(&key) {
            firsts.push(row);
            if row.result.repeat.is_some() {
                repeated.insert(key);
            }
        }
    }
    firsts
}

/// What the runs of one measurement have in common.
type Key<'a> = (&'a str, &'a str, String);

fn key(result: &RowResult) -> Key<'_> {
    (&result.name, &result.environment, format!("{:?}", result.measurement))
}

/// The rows that yield values; runs of one measurement are one row, which has the median of each item.
#[must_use]
pub fn typical_rows(contents: &Contents) -> Vec<Row> {
    let runs = Runs::new(contents);
    let typical = |row: &Row| {
        let mut typical = row.clone();
        typical.result.outcome = Outcome::Values(runs.values(&row.result));
        typical.result.repeat = None;
        typical
    };
    valued(contents).into_iter().map(typical).collect()
}
