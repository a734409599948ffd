//! A condition, and the runs of each of its scenarios.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, Row};
use tactus_model::event::RowStatus;
use tactus_model::plan::Scenario;
use tactus_model::ticks::Ticks;
use tactus_model::windows::RowWindows;

use crate::row::place;
use crate::units::clean;

/// One side of a comparison: one bundle, or several of the same kind.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Its name.
    pub name: String,
    /// Its bundles, in the order of their time.
    bundles: Vec<Contents>,
    /// For each bundle, the places of the scenarios of a name in its plan.
    planned: Vec<BTreeMap<String, Vec<usize>>>,
    /// Whether measurements under emulation are judged as well.
    judges_emulated: bool,
}

/// Tells a scenario from others, in any bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Its environment, with the state of the machine, and the guest at the other end of a card.
    pub environment: String,
    /// The measurement's word.
    pub measurement: &'static str,
    /// Its number among several measurements of one scenario.
    pub nth: usize,
}

/// A run: a row of a bundle.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The bundle.
    pub contents: &'a Contents,
    /// The row.
    pub row: &'a Row,
    /// The place of its bundle among those of its condition.
    pub sitting: usize,
    /// Where in the bundle's plan the scenarios of its name stand.
    planned: &'a [usize],
    /// Whether it is judged where it was emulated.
    pub judges_emulated: bool,
}

impl<'a> Run<'a> {
    /// The scenarios of its name in its bundle's plan.
    pub fn planned(self) -> impl Iterator<Item = &'a Scenario> {
        self.planned.iter().filter_map(move |place| self.contents.plan.scenario.get(*place))
    }
}

impl Condition {
    /// Of these bundles.
    #[must_use]
    pub fn new(name: impl Into<String>, mut bundles: Vec<Contents>) -> Self {
        bundles.sort_by(|one, other| one.manifest.started.cmp(&other.manifest.started));
        bundles.iter_mut().for_each(Self::reduce);
        let planned = bundles.iter().map(places).collect();
        Self { name: name.into(), bundles, planned, judges_emulated: false }
    }

    /// Judges emulated runs as well. Of two emulated kernels that shows which is slower under this emulator, and nothing
    /// about hardware.
    #[must_use]
    pub fn with_emulated(self, judges_emulated: bool) -> Self {
        Self { judges_emulated, ..self }
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
        let mut known: BTreeMap<Key, usize> = BTreeMap::new();
        for (sitting, (contents, planned)) in self.bundles.iter().zip(&self.planned).enumerate() {
            let mut rows: Vec<&Row> = contents.rows.iter().collect();
            rows.sort_by_key(|row| row.result.repeat);
            let mut alike: BTreeMap<(Option<u32>, Key), usize> = BTreeMap::new();
            for row in rows {
                let (name, environment, measurement) = named(&row.result);
                let first = Key { name, environment, measurement, nth: 0 };
                let before = alike.entry((row.result.repeat, first.clone())).or_default();
                let key = Key { nth: *before, ..first };
                *before += 1;
                let place = *known.entry(key.clone()).or_insert(scenarios.len());
                let planned = planned.get(&key.name).map_or(&[][..], Vec::as_slice);
                let run = Run { contents, row, sitting, planned, judges_emulated: self.judges_emulated };
                match scenarios.get_mut(place) {
                    Some((_, runs)) => runs.push(run),
                    None => scenarios.push((key, vec![run])),
                }
            }
        }
        // In the order of the plan, not in the random order of the first round.
        let place = |key: &Key| {
            let of = |planned: &BTreeMap<String, Vec<usize>>| planned.get(&key.name)?.first().copied();
            // In the first bundle that has it.
            self.planned.iter().enumerate().find_map(|(bundle, planned)| Some((bundle, of(planned)?)))
        };
        scenarios.sort_by_cached_key(|(key, _)| place(key).unwrap_or((usize::MAX, 0)));
        scenarios
    }
}

impl Key {
    /// Its name, with its environment where that is not in it.
    pub fn title(&self) -> String {
        match self.name.contains(&self.environment) {
            true => clean(&self.name),
            false => clean(&format!("{} ({})", self.name, self.environment)),
        }
    }
}

/// A scenario with the name of each condition and its runs there.
pub type Beside<'a> = (Key, Vec<(&'a str, Vec<Run<'a>>)>);

/// Each scenario of the first condition with its runs in every condition, in their order; a condition that lacks it has none.
pub fn side_by_side(conditions: &[Condition]) -> Vec<Beside<'_>> {
    let scenarios: Vec<_> = conditions.iter().map(|own| (own.name.as_str(), own.scenarios())).collect();
    let keys: Vec<Key> = scenarios
        .first()
        .map(|(_, own)| own.iter().map(|(key, _)| key.clone()).collect())
        .unwrap_or_default();
    let mut all: Vec<(&str, BTreeMap<Key, Vec<Run>>)> =
        scenarios.into_iter().map(|(name, own)| (name, own.into_iter().collect())).collect();
    keys.into_iter()
        .map(|key| {
            let runs =
                all.iter_mut().map(|(name, own)| (*name, own.remove(&key).unwrap_or_default())).collect();
            (key, runs)
        })
        .collect()
}

/// Where in a bundle's plan the scenarios of each name stand.
fn places(contents: &Contents) -> BTreeMap<String, Vec<usize>> {
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, scenario) in contents.plan.scenario.iter().enumerate() {
        if let Some(name) = &scenario.name {
            places.entry(name.clone()).or_default().push(place);
        }
    }
    places
}

fn named(result: &tactus_model::bundle::RowResult) -> (String, String, &'static str) {
    let state = result.host.as_ref().map(|state| format!("@{state}")).unwrap_or_default();
    (result.name.clone(), place(result) + &state, result.measurement.kind())
}

/// Whether nothing of it could be measured on that machine.
pub fn is_skipped(runs: &[Run]) -> bool {
    runs.iter().all(|run| run.row.result.status == RowStatus::Skipped)
}
