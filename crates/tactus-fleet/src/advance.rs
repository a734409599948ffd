//! One step of a fleet: ask the engine, bring home finished bundles, and give it the next jobs. The caller waits
//! between two steps.

use std::collections::{BTreeMap, BTreeSet};

use tactus_system::System;

use crate::engine::{Engine, Ready, Submitted};
use crate::error::FleetError;
use crate::home::{Arrival, arrival, still_holds};
use crate::pending::JobState;
use crate::row::{Row, State};
use crate::store::Store;
use crate::waves;

/// The result of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Jobs that the engine was given.
    pub submitted: usize,
    /// Bundles that came home.
    pub arrived: usize,
    /// Jobs that are under way.
    pub under_way: usize,
    /// Machines whose turn it was: those whose jobs the engine refused among them.
    pub tried: usize,
}

impl Moved {
    /// Whether nothing is left to wait for, or to try.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.under_way == 0 && self.tried == 0
    }
}

/// Advances a fleet: starts jobs, asks how they are, and takes bundles home.
pub struct Advance<'a> {
    engine: &'a dyn Engine,
    system: &'a dyn System,
    /// Those that had a job since this began, by key.
    tried: BTreeSet<String>,
}

impl<'a> Advance<'a> {
    /// Uses this engine, whose client is called through `system`.
    #[must_use]
    pub fn new(engine: &'a dyn Engine, system: &'a dyn System) -> Self {
        Self { engine, system, tried: BTreeSet::new() }
    }

    /// Asks the engine, brings home what has come, and gives it jobs until `wave` are under way.
    ///
    /// # Errors
    /// Those of the engine's client, and of the fleet's files.
    pub fn step(&mut self, store: &mut Store, wave: usize) -> Result<Moved, FleetError> {
        let arrived = self.look(store, false)?;
        let before = self.tried.len();
        let submitted = self.submit(store, wave);
        store.save()?;
        let (submitted, tried) = (submitted?, self.tried.len() - before);
        Ok(Moved { submitted, arrived, under_way: under_way(store).len(), tried })
    }

    /// Asks the engine how its jobs are, and brings home what has come. With `everything` also what those had whose jobs have
    /// ended long ago, and what is here is verified once more. How many bundles came home.
    ///
    /// # Errors
    /// As [`Advance::step`].
    pub fn look(&mut self, store: &mut Store, everything: bool) -> Result<usize, FleetError> {
        if everything {
            verify(store)?;
        }
        let asked = under_way(store);
        // Before they are asked: an answer may take long.
        let (limit, now) = (self.engine.limit(&store.order), jiff::Timestamp::now());
        let jobs = self.jobs(store, &asked)?;
        let mut ended = Vec::new();
        for at in asked {
            let row = store.row(at);
            match jobs.get(&row.key) {
                Some(job) => row.heard(job),
                None => row.heard(&JobState::Ended("the engine no longer knows its job".into())),
            }
            if let Some(limit) = limit {
                row.limited(limit, now);
            }
            if !row.state.is_under_way() {
                ended.push(at);
            }
        }
        // Save now: if taking bundles home fails, the states of the jobs are kept.
        store.save()?;
        // Where files are shared a bundle is seen as soon as it is finished, whatever the engine says.
        let seen = everything || self.engine.shares_files();
        let wanted = |row: &Row| seen && row.state != State::Measured && row.attempts > 0;
        let late = (0..store.rows().len()).filter(|at| ended.contains(at) || wanted(&store.rows()[*at]));
        let late: Vec<usize> = late.collect();
        let obstacles = self.fetched(store, &late)?;
        let arrived = self.take_home(store, &late, &obstacles)?;
        store.save()?;
        Ok(arrived)
    }

    fn jobs(&self, store: &Store, asked: &[usize]) -> Result<BTreeMap<String, JobState>, FleetError> {
        if asked.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows: Vec<&Row> = asked.iter().map(|at| &store.rows()[*at]).collect();
        self.engine.jobs(&store.site(self.system), &rows)
    }

    fn fetched(&self, store: &Store, late: &[usize]) -> Result<BTreeMap<String, String>, FleetError> {
        if late.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows: Vec<&Row> = late.iter().map(|at| &store.rows()[*at]).collect();
        self.engine.fetch(&store.site(self.system), &rows)
    }

    fn take_home(
        &self,
        store: &mut Store,
        late: &[usize],
        obstacles: &BTreeMap<String, String>,
    ) -> Result<usize, FleetError> {
        let mut arrived = 0;
        for at in late {
            let came = arrival(store, &store.rows()[*at]);
            let row = store.row(*at);
            match came {
                // An error in the files of one machine must not keep the other bundles from home.
                Err(error) => row.reason = Some(with(row.reason.as_deref(), &error.to_string())),
                Ok(Arrival::Here(home)) => {
                    row.measured(home);
                    arrived += 1;
                }
                Ok(Arrival::Refused(reason)) => row.refused(reason),
                Ok(Arrival::Nothing | Arrival::Unfinished) if row.state.is_under_way() => {}
                Ok(Arrival::Unfinished) => {
                    row.reason = Some(with(row.reason.as_deref(), "its bundle is not finished"));
                }
                Ok(Arrival::Nothing) => {
                    if let Some(obstacle) = obstacles.get(&row.key) {
                        row.reason = Some(with(row.reason.as_deref(), obstacle));
                    }
                }
            }
            store.save_row(*at)?;
        }
        Ok(arrived)
    }

    fn submit(&mut self, store: &mut Store, wave: usize) -> Result<usize, FleetError> {
        let open = |row: &Row| {
            !matches!(row.state, State::Measured)
                && !row.state.is_under_way()
                && !self.tried.contains(&row.key)
        };
        if !store.rows().iter().any(open) || under_way(store).len() >= wave {
            return Ok(0);
        }
        let machines = self.engine.machines(&store.site(self.system))?;
        let ready: BTreeMap<String, Ready> =
            machines.into_iter().map(|machine| (machine.name, machine.ready)).collect();
        for at in 0..store.rows().len() {
            let row = store.row(at);
            match ready.get(&row.machine) {
                Some(Ready::Away(reason)) => row.away(reason.clone()),
                None => row.away("the engine no longer lists it".into()),
                Some(_) => {}
            }
        }
        let chosen = waves::next(store.rows(), &ready, &self.tried, wave);
        if chosen.is_empty() {
            return Ok(0);
        }
        let rows: Vec<&Row> = chosen.iter().map(|at| &store.rows()[*at]).collect();
        let site = store.site(self.system);
        store.objects(&self.engine.render(&site, &rows))?;
        let outcomes = self.engine.submit(&site, &rows)?;
        let (now, mut submitted) = (jiff::Timestamp::now().to_string(), 0);
        for (at, outcome) in chosen.into_iter().zip(outcomes) {
            let row = store.row(at);
            let key = row.key.clone();
            match outcome {
                Submitted::As(job) => {
                    row.submitted(job, now.clone());
                    submitted += 1;
                }
                Submitted::Refused(reason) => (row.state, row.reason) = (State::Failed, Some(reason)),
                Submitted::Away(reason) => (row.state, row.reason) = (State::Away, Some(reason)),
            }
            self.tried.insert(key);
        }
        Ok(submitted)
    }
}

/// Verifies the bundles that are here once more; a machine whose bundle is damaged is measured again.
fn verify(store: &mut Store) -> Result<(), FleetError> {
    for at in 0..store.rows().len() {
        if store.rows()[at].state != State::Measured {
            continue;
        }
        let reason = match still_holds(store, &store.rows()[at]) {
            Ok(None) => continue,
            Ok(Some(reason)) => reason,
            Err(error) => error.to_string(),
        };
        store.row(at).refused(reason);
        store.row(at).state = State::Refused;
        store.save_row(at)?;
    }
    Ok(())
}

fn under_way(store: &Store) -> Vec<usize> {
    (0..store.rows().len()).filter(|at| store.rows()[*at].state.is_under_way()).collect()
}

/// A reason, and another one.
fn with(reason: Option<&str>, other: &str) -> String {
    match reason {
        Some(reason) if reason.ends_with(other) => reason.to_owned(),
        Some(reason) => format!("{reason}; {other}"),
        None => other.to_owned(),
    }
}

#[cfg(test)]
mod tests;
