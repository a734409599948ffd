//! A measurement: its runs and their common result. It is computed once, and compared with many.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::outcome::ValueResult;

use super::typical::{Place, by_place, fullest, place, values_of};
use crate::row::Runs;

/// A measurement that yields values.
pub(super) struct Measured<'a> {
    /// The number in the bundle of the run that it is known by.
    pub(super) row: usize,
    /// That run.
    pub(super) first: &'a RowResult,
    /// All of its runs, in their order.
    pub(super) runs: Vec<Run<'a>>,
    /// Their result: of several runs the median of each item.
    pub(super) values: Vec<ValueResult>,
    /// The place of each item in it, once for each unit.
    places: BTreeMap<Place<'a>, Vec<usize>>,
}

/// One of its runs.
pub(super) struct Run<'a> {
    /// As the bundle has it.
    pub(super) result: &'a RowResult,
    /// Its values, by their key.
    pub(super) values: BTreeMap<Place<'a>, &'a ValueResult>,
}

impl<'a> Measured<'a> {
    /// The measurement of which this is a run, with its number in the bundle.
    pub(super) fn of(runs: &Runs<'a>, (row, first): (usize, &'a RowResult)) -> Self {
        let runs = runs.of(row);
        let values = values_of(runs, first);
        let mut places: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
        for (at, own) in fullest(runs, first).iter().enumerate() {
            let known = places.entry(place(own)).or_default();
            let is_same = |at: &usize| values.get(*at).is_some_and(|other| other.unit == own.unit);
            if !known.iter().any(is_same) {
                known.push(at);
            }
        }
        let run = |row: &&'a Row| Run { result: &row.result, values: by_place(row.result.values()) };
        Self { row, first, runs: runs.iter().map(run).collect(), values, places }
    }

    /// Each of these, by the number of the run that it is known by.
    pub(super) fn all(
        contents: &'a Contents,
        firsts: impl Iterator<Item = (usize, &'a RowResult)>,
    ) -> BTreeMap<usize, Self> {
        let (runs, mut all) = (Runs::new(contents), BTreeMap::new());
        for first in firsts {
            all.entry(first.0).or_insert_with(|| Self::of(&runs, first));
        }
        all
    }

    /// Its value of the same item, in the same unit.
    pub(super) fn value(&self, of: &ValueResult) -> Option<&ValueResult> {
        let mut known = self.places.get(&place(of))?.iter().filter_map(|at| self.values.get(*at));
        known.find(|own| own.unit == of.unit)
    }

    /// Its runs of a round.
    pub(super) fn round(&self, round: Option<u32>) -> &[Run<'a>] {
        let from = self.runs.partition_point(|run| run.result.repeat < round);
        let to = self.runs.partition_point(|run| run.result.repeat <= round);
        self.runs.get(from..to).unwrap_or_default()
    }
}
