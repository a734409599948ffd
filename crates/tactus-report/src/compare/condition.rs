//! A condition, and the runs of each of its scenarios.

use tactus_model::bundle::{Contents, Row};
use tactus_model::event::RowStatus;
use tactus_model::ticks::Ticks;
use tactus_model::windows::RowWindows;

use crate::row::place;

/// What is compared: one bundle, or several of the same.
#[derive(Clone, Debug)]
pub struct Condition {
    /// What it is called.
    pub name: String,
    /// Its bundles, in the order of their time.
    bundles: Vec<Contents>,
}

/// What tells a scenario from others, in whichever bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Its environment, with the state of the machine, and the guest at the other end of a card.
    pub environment: String,
    /// The measurement's word.
    pub measurement: &'static str,
    /// Which of several such measurements of one scenario.
    pub nth: usize,
}

/// A run: a row of a bundle.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The bundle.
    pub contents: &'a Contents,
    /// The row.
    pub row: &'a Row,
}

impl Condition {
    /// Of these bundles.
    #[must_use]
    pub fn new(name: impl Into<String>, mut bundles: Vec<Contents>) -> Self {
        bundles.sort_by(|one, other| one.manifest.started.cmp(&other.manifest.started));
        bundles.iter_mut().for_each(Self::reduce);
        Self { name: name.into(), bundles }
    }

    /// Takes out of a bundle what is not compared: what happened when in a run, and the histogram of each thread. Of many
    /// bundles that is much, so that it is done as soon as one has been read.
    pub fn reduce(contents: &mut Contents) {
        for row in &mut contents.rows {
            row.ticks = Ticks::planned(row.result.planned_ns);
            row.windows = RowWindows::default();
            row.histograms.join();
            row.missed.join();
        }
    }

    /// Its bundles, in the order of their time.
    #[must_use]
    pub fn bundles(&self) -> &[Contents] {
        &self.bundles
    }

    /// The runs of each scenario, in the order of their time; scenarios in the order in which they come up.
    pub(super) fn scenarios(&self) -> Vec<(Key, Vec<Run<'_>>)> {
        let mut scenarios: Vec<(Key, Vec<Run>)> = Vec::new();
        for contents in &self.bundles {
            let mut rows: Vec<&Row> = contents.rows.iter().collect();
            rows.sort_by_key(|row| row.result.repeat);
            for (n, row) in rows.iter().enumerate() {
                let like = |other: &&&Row| {
                    let (own, other) = (&row.result, &other.result);
                    own.repeat == other.repeat && named(own) == named(other)
                };
                let (name, environment, measurement) = named(&row.result);
                let nth = rows[..n].iter().filter(like).count();
                let key = Key { name, environment, measurement, nth };
                let run = Run { contents, row };
                match scenarios.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, runs)) => runs.push(run),
                    None => scenarios.push((key, vec![run])),
                }
            }
        }
        // Those of the plan's order, not those of the first round's lot.
        scenarios.sort_by_key(|(key, _)| self.place_in_plan(key));
        scenarios
    }

    fn place_in_plan(&self, key: &Key) -> usize {
        let scenarios = || self.bundles.iter().flat_map(|contents| &contents.plan.scenario);
        scenarios().position(|own| own.name.as_ref() == Some(&key.name)).unwrap_or(usize::MAX)
    }
}

fn named(result: &tactus_model::bundle::RowResult) -> (String, String, &'static str) {
    let state = result.host.as_ref().map(|state| format!("@{state}")).unwrap_or_default();
    (result.name.clone(), place(result) + &state, result.measurement.kind())
}

/// Whether nothing of it could be measured on that machine.
pub fn is_skipped(runs: &[Run]) -> bool {
    runs.iter().all(|run| run.row.result.status == RowStatus::Skipped)
}
