//! Drift over weeks.

use std::collections::BTreeMap;

use serde::Serialize;
use tactus_model::number::float;
use tactus_statistics::{ERROR, holm};

use super::DAY_US;
use super::deadline::counts;
use super::set::{PLAN, Set};
use super::trend::trend;

/// Fewer runs than this of a scenario on a machine say nothing of a drift.
pub const LEAST_RUNS: usize = 10;
/// Nor do runs of less time than this, in days.
pub const LEAST_DAYS: f64 = 14.0;
/// Most runs that are looked at, the last ones: all pairs of them are compared.
const MOST_RUNS: usize = 400;

/// Machine, environment, scenario, plan.
type Scenario<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

/// The scenarios that drifted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Drift {
    /// Scenarios of machines that had enough runs to ask.
    pub asked: usize,
    /// Those that had too few, or of too short a time.
    pub too_few: usize,
    /// Scenarios that drifted: with 95 % none of them is false.
    pub found: Vec<Drifted>,
}

/// A scenario on a machine that drifted.
#[derive(Clone, Debug, Serialize)]
pub struct Drifted {
    /// Key of the machine.
    pub machine: String,
    /// Its name.
    pub name: String,
    /// The environment.
    pub environment: String,
    /// The scenario.
    pub scenario: String,
    /// The factor by which its 99.9th percentile grows in 30 days.
    pub times_in_30_days: f64,
    /// Runs.
    pub runs: usize,
    /// From the first to the last of them, in days.
    pub days: f64,
    /// The first and the last value.
    pub first_ns: u64,
    /// The last.
    pub last_ns: u64,
    /// The chance of it without a drift, adjusted for the number of all that were tested.
    pub chance_of_all: f64,
}

/// Looks for a drift in the 99.9th percentile of each scenario on each machine.
pub fn drift(set: &Set) -> Drift {
    let called = set.called();
    let mut all: BTreeMap<Scenario<'_>, Vec<(i64, u64)>> = BTreeMap::new();
    for place in set.places.iter().filter(|place| counts(place)) {
        let run = &set.runs[place.run];
        if let Some(p999) = place.p999_ns.filter(|p999| *p999 > 0) {
            // Another plan may call another scenario so.
            let plan = run.properties.get(PLAN).and_then(Option::as_deref);
            let key = (run.machine.as_str(), place.environment.as_str(), place.scenario.as_str(), plan);
            all.entry(key).or_default().push((run.started_us, p999));
        }
    }
    let (mut own, mut found, mut chances) = (Drift::default(), Vec::new(), Vec::new());
    for ((machine, environment, scenario, _), mut values) in all {
        values.sort_unstable();
        let values = &values[values.len().saturating_sub(MOST_RUNS)..];
        let [(first_us, first_ns), .., (last_us, last_ns)] = values else {
            own.too_few += 1;
            continue;
        };
        let in_days = |us: i64| {
            float(u64::try_from(us.saturating_sub(*first_us)).unwrap_or(0)) / float(DAY_US.unsigned_abs())
        };
        let days = in_days(*last_us);
        let points: Vec<(f64, f64)> =
            values.iter().map(|(us, p999)| (in_days(*us), float(*p999).ln())).collect();
        let asked = trend(&points).filter(|_| values.len() >= LEAST_RUNS && days >= LEAST_DAYS);
        let Some(trend) = asked else {
            own.too_few += 1;
            continue;
        };
        chances.push(trend.chance);
        found.push(Drifted {
            machine: machine.to_owned(),
            name: called.get(machine).cloned().unwrap_or_default(),
            environment: environment.to_owned(),
            scenario: scenario.to_owned(),
            times_in_30_days: (trend.slope * 30.0).exp(),
            runs: values.len(),
            days,
            first_ns: *first_ns,
            last_ns: *last_ns,
            chance_of_all: 1.0,
        });
    }
    own.asked = found.len();
    for (one, chance) in found.iter_mut().zip(holm(&chances)) {
        one.chance_of_all = chance;
    }
    found.retain(|one| one.chance_of_all <= ERROR);
    found.sort_by(|one, other| other.times_in_30_days.ln().abs().total_cmp(&one.times_in_30_days.ln().abs()));
    own.found = found;
    own
}
