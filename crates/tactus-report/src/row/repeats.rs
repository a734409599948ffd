//! The runs of a measurement that the plan repeats.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, Row, RowResult};

use super::summary::figures;

/// The runs of every measurement of a bundle, found once.
pub struct Runs<'a> {
    /// In the order of the bundle, each in the order of its runs.
    measurements: Vec<Vec<&'a Row>>,
    /// Which of them a row belongs to.
    places: BTreeMap<*const RowResult, usize>,
}

impl<'a> Runs<'a> {
    /// Finds them.
    #[must_use]
    pub fn new(contents: &'a Contents) -> Self {
        let mut all = Self { measurements: Vec::new(), places: BTreeMap::new() };
        let mut known: BTreeMap<_, usize> = BTreeMap::new();
        let mut seen: BTreeMap<_, usize> = BTreeMap::new();
        for row in &contents.rows {
            let result = &row.result;
            let key = result.repeat.map(|run| {
                let own = (&result.name, &result.environment, &result.to, &result.host);
                let own = (own, format!("{:?}", result.measurement));
                // A scenario may have several measurements of one kind in one environment.
                let nth = seen.entry((own.clone(), run)).and_modify(|nth| *nth += 1).or_default();
                (own, *nth)
            });
            let next = all.measurements.len();
            let place = key.map_or(next, |key| *known.entry(key).or_insert(next));
            all.places.insert(&raw const *result, place);
            match all.measurements.get_mut(place) {
                Some(runs) => runs.push(row),
                None => all.measurements.push(vec![row]),
            }
        }
        for runs in &mut all.measurements {
            runs.sort_by_key(|row| row.result.repeat);
        }
        all
    }

    /// The rows of the same measurement as this one, in the order of their runs; itself alone where it is not repeated.
    #[must_use]
    pub fn of<'s>(&'s self, result: &RowResult) -> &'s [&'a Row] {
        let runs = self.places.get(&(&raw const *result)).and_then(|place| self.measurements.get(*place));
        runs.map_or(&[], Vec::as_slice)
    }

    /// Every measurement, in the order in which the bundle has its first row.
    pub fn measurements(&self) -> impl Iterator<Item = &[&'a Row]> {
        self.measurements.iter().map(Vec::as_slice)
    }
}

/// One row for each measurement, where there is room for one: of several runs the one with the largest latency.
#[must_use]
pub fn worst_runs<'a>(contents: &'a Contents) -> Vec<&'a Row> {
    let largest = |row: &Row| figures(&row.result).and_then(|all| all.max_ns);
    // Of several that are alike the first.
    let worst = |runs: &[&'a Row]| runs.iter().rev().copied().max_by_key(|row| largest(row));
    Runs::new(contents).measurements().filter_map(worst).collect()
}
