//! The runs of a repeated measurement in one line: the median of each figure, and its range.

use std::collections::BTreeSet;

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::latency::{Corrected, Summary};
use tactus_model::number::{float, whole};
use tactus_model::outcome::{Outcome, ValueResult};

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

/// The rows of the same measurement as this one, in the order of their runs; itself alone where it is not repeated.
#[must_use]
pub fn runs_of<'a>(contents: &'a Contents, result: &RowResult) -> Vec<&'a Row> {
    let same = |row: &&Row| {
        let other = &row.result;
        result.repeat.is_some()
            && other.repeat.is_some()
            && (&other.name, &other.environment) == (&result.name, &result.environment)
            && other.measurement == result.measurement
    };
    let mut runs: Vec<&Row> = contents.rows.iter().filter(same).collect();
    runs.sort_by_key(|row| row.result.repeat);
    if runs.is_empty() {
        runs.extend(contents.rows.iter().find(|row| std::ptr::eq(&raw const row.result, result)));
    }
    runs
}

/// Its figures: of several runs the median of each.
#[must_use]
pub fn typical(contents: &Contents, result: &RowResult) -> Option<Summary> {
    let all = summaries(contents, result);
    match all.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        all => Some(each(all, &|values| median(values).unwrap_or(0.0))),
    }
}

/// The range of its runs; `None` where it has one.
#[must_use]
pub fn spread(contents: &Contents, result: &RowResult) -> Option<Spread> {
    let all = summaries(contents, result);
    let least = |values: Vec<f64>| values.into_iter().fold(f64::INFINITY, f64::min);
    let most = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
    (all.len() > 1).then(|| Spread {
        runs: all.len(),
        lowest: each(&all, &least),
        highest: each(&all, &most),
    })
}

fn summaries<'a>(contents: &'a Contents, result: &RowResult) -> Vec<&'a Summary> {
    runs_of(contents, result).into_iter().filter_map(|row| figures(&row.result)).collect()
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

/// Its values: of several runs the median of each item, with their range for an interval where there are enough.
#[must_use]
pub fn typical_values(contents: &Contents, result: &RowResult) -> Vec<ValueResult> {
    let runs = runs_of(contents, result);
    let own = |first: &ValueResult| {
        let of = |row: &&Row| row.result.values().iter().find(|value| value.is_of(first)).map(|v| v.value);
        let values: Vec<f64> = runs.iter().filter_map(of).collect();
        let ranged = values.len() >= RANGE_IS_AN_INTERVAL;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        ValueResult {
            low: ranged.then_some(least),
            high: ranged.then_some(most),
            value: median(values).unwrap_or(first.value),
            ..first.clone()
        }
    };
    match runs.as_slice() {
        [] | [_] => result.values().to_vec(),
        // A run that broke off may lack items.
        all => {
            let fullest = all.iter().rev().max_by_key(|row| row.result.values().len());
            fullest.map(|row| row.result.values().iter().map(own).collect()).unwrap_or_default()
        }
    }
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
    let typical = |row: &Row| {
        let mut row = row.clone();
        row.result.outcome = Outcome::Values(typical_values(contents, &row.result));
        row.result.repeat = None;
        row
    };
    valued(contents).into_iter().map(typical).collect()
}
