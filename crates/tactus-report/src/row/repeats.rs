//! The runs of a measurement that the plan repeats.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, Row};

use super::summary::figures;

/// The runs of every measurement of a bundle, found once.
pub struct Runs<'a> {
    /// In the order of the bundle, each in the order of its runs.
    measurements: Vec<Vec<&'a Row>>,
    /// The same rows by their numbers in the bundle.
    numbers: Vec<Vec<usize>>,
    /// The measurement to which each row of the bundle belongs.
    places: Vec<usize>,
}

impl<'a> Runs<'a> {
    /// Finds them.
    #[must_use]
    pub fn new(contents: &'a Contents) -> Self {
        let (mut all, mut places): (Vec<Vec<(usize, &Row)>>, _) = (Vec::new(), Vec::new());
        let mut known: BTreeMap<_, usize> = BTreeMap::new();
        let mut seen: BTreeMap<_, usize> = BTreeMap::new();
        for (number, row) in contents.rows.iter().enumerate() {
            let result = &row.result;
            let key = result.repeat.map(|run| {
                let own = (&result.name, &result.environment, &result.to, &result.host);
                let own = (own, format!("{:?}", result.measurement));
                // A scenario may have several measurements of one kind in one environment.
                let nth = seen.entry((own.clone(), run)).and_modify(|nth| *nth += 1).or_default();
                (own, *nth)
            });
            let next = all.len();
            let place = key.map_or(next, |key| *known.entry(key).or_insert(next));
            places.push(place);
            match all.get_mut(place) {
                Some(runs) => runs.push((number, row)),
                None => all.push(vec![(number, row)]),
            }
        }
        for runs in &mut all {
            runs.sort_by_key(|(_, row)| row.result.repeat);
        }
        let (numbers, measurements) = all.into_iter().map(|runs| runs.into_iter().unzip()).unzip();
        Self { measurements, numbers, places }
    }

    /// The rows of the same measurement as the row with this number in the bundle, in the order of their runs; that row
    /// alone where it is not repeated.
    #[must_use]
    pub fn of(&self, row: usize) -> &[&'a Row] {
        let runs = self.places.get(row).and_then(|place| self.measurements.get(*place));
        runs.map_or(&[], Vec::as_slice)
    }

    /// Whether the row with this number is the first run of its measurement.
    #[must_use]
    pub fn is_first(&self, row: usize) -> bool {
        let numbers = self.places.get(row).and_then(|place| self.numbers.get(*place));
        numbers.and_then(|numbers| numbers.first()) == Some(&row)
    }

    /// Every measurement, in the order in which the bundle has its first row.
    pub fn measurements(&self) -> impl Iterator<Item = &[&'a Row]> {
        self.measurements.iter().map(Vec::as_slice)
    }

    /// Of each of them the rows with their numbers in the bundle.
    pub fn numbered(&self) -> impl Iterator<Item = impl Iterator<Item = (usize, &'a Row)>> {
        let runs = self.numbers.iter().zip(&self.measurements);
        runs.map(|(numbers, rows)| numbers.iter().copied().zip(rows.iter().copied()))
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
