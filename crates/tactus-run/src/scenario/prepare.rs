//! Every probe has its job, and has shown that it can be believed.

use std::time::{Duration, Instant};

use tactus_model::Evidence;
use tactus_model::catalogue::{Fault, Measure};
use tactus_model::control::ControlBy;
use tactus_model::event::Event;
use tactus_model::message::{Activity, Job, What};
use tactus_model::outcome::Yields;
use tactus_model::undo::block::{undo_of_blame, undo_of_timerlat, undos};
use tactus_system::System;
use tactus_system::guardian::Guardian;

use super::{Failure, ScenarioRun};
use crate::context::Context;
use crate::session::Session;
use crate::settings::{Settings, not_made, settings, under_test};

/// How long a probe may take to prepare a job; one that hears nothing is booted with it.
pub(super) const PREPARATION: Duration = Duration::from_secs(90);
/// How long a probe may take for its self-test again.
const AGAIN: Duration = Duration::from_secs(20);

impl ScenarioRun<'_> {
    /// Gives every probe its job and waits until all are ready.
    pub(super) fn prepare(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for at in 0..self.sessions.len() {
            self.give_job(context, at, self.planned.duration_ns, true)?;
        }
        self.await_all(context, PREPARATION, "to prepare its job", |session| session.ready)?;
        // Record the settings that were made: they apply to the measurement.
        for at in 0..self.sessions.len() {
            if self.sessions[at].sets {
                let (environment, facts) = (self.sessions[at].name.clone(), self.sessions[at].facts.clone());
                let readings = facts.0.len();
                let facts = Some(Box::new(facts));
                context.emit(Event::FactsCollected { environment, readings, facts })?;
            }
            let session = &self.sessions[at];
            if let Some(change) = not_made(&session.under_test, &session.facts) {
                return Err(Failure::Refused(format!(
                    "{}: the setting {} was not made: {} could not be set to {}",
                    session.name, change.check, change.target, change.then
                )));
            }
        }
        Ok(())
    }

    /// Gives one probe its job, in which it measures for `duration_ns`, and proves its instrument first.
    pub(super) fn give_job(
        &mut self,
        context: &Context<'_>,
        at: usize,
        duration_ns: u64,
        proves: bool,
    ) -> Result<(), Failure> {
        let name = self.sessions[at].name.clone();
        let emulated = self.sessions[at].evidence == Some(Evidence::Emulated);
        let own = self.activities(&name).filter(|activity| !from_outside(activity));
        let mut activities: Vec<Activity> = own
            .map(|activity| {
                self.with_card(context, &name, self.linked(context, as_there(activity, emulated)))
            })
            .collect();
        let measures = activities.iter().any(|a| matches!(a.what, What::Measure { .. }));
        let latency = activities.iter().any(|a| a.what.yields() == Some(Yields::Latency));
        activities.extend(self.answers(context, &name));
        activities.extend(self.answers_to_cards(context, &name));
        let facts = &self.sessions[at].facts;
        let under_test = under_test(context, self.planned, &name, facts)
            .map_err(|reason| Failure::Refused(format!("{name}: {reason}")))?;
        let Settings { changes, restore, promises } = settings(context, &name, facts, &under_test)
            .map_err(|reason| Failure::Scenario(format!("{name}: {reason}")))?;
        let number = self.sessions[at].number;
        self.promises.extend(promises.into_iter().map(|promise| (number, promise)));
        // A value is an average over much that disturbs it: nothing known would be seen at its size.
        let control = control(&self.planned.control, latency && proves, emulated);
        self.promise_tracers(context, at, &activities, &control)?;
        let environment = &context.resolved.environments[&name];
        self.sessions[at].sets = !changes.is_empty();
        self.sessions[at].under_test = under_test;
        let job = Job {
            // A job that only makes load runs until the measurements are done, and is then told to stop.
            duration_ns: if measures { duration_ns } else { u64::MAX / 4 },
            tick_ns: self.planned.tick_ns,
            control,
            no_side_effects: self.planned.no_side_effects,
            housekeeping: environment.housekeeping.clone(),
            activities,
            changes,
            restore,
            budget: self.sessions[at].running.budget().unwrap_or(0),
            cache_misses: self.planned.cache_misses == Some(true),
            blame_above: self.planned.blame_above.filter(|_| latency),
            blame_by: None,
            lock_in: self.planned.lock_in,
        };
        self.sessions[at].measures = measures;
        if let Err(error) = self.sessions[at].give(job, self.reported.get(&name)) {
            return Err(self.broken(at, &error.to_string()));
        }
        Ok(())
    }

    /// Promises that what a block or timerlat change of a kernel that lives on is taken back.
    pub(super) fn promise_tracers(
        &mut self,
        context: &Context<'_>,
        at: usize,
        activities: &[Activity],
        control: &ControlBy,
    ) -> Result<(), Failure> {
        let (name, number) = (&self.sessions[at].name.clone(), self.sessions[at].number);
        if context.resolved.environments[name].kind.numbers_cpus() {
            return Ok(());
        }
        let faults: Vec<&Fault> = activities
            .iter()
            .filter_map(|activity| if let What::Fault(fault) = &activity.what { Some(fault) } else { None })
            .collect();
        self.blocks.extend(blocks(activities).map(|activity| (number, activity)));
        let proving = if let ControlBy::Fault(fault) = control { Some(fault) } else { None };
        let failed = |error| {
            Failure::Scenario(format!("{name}: the guardian process of tactus cannot be reached: {error}"))
        };
        // A container inside another machine has that one's kernel.
        let outer = context.resolved.environments[name].spec.inside.as_ref();
        let outer = outer.and_then(|outer| self.sessions.iter().position(|session| session.name == *outer));
        let (guardian, system): (&Guardian, &dyn System) = match outer {
            Some(at) => {
                let nest = self.sessions[at].nest(context.guardian).map_err(failed)?;
                (&nest.guardian, &nest.system)
            }
            None => (context.guardian, context.system),
        };
        let run = guardian.id();
        let undos = |fault: &Fault| undos(fault, run, |path: &str| system.text(path));
        let traces = |activity: &&Activity| {
            matches!(&activity.what, What::Measure { measure: Measure::Timerlat(_), .. })
        };
        let timerlat = activities.iter().find(traces);
        let timerlat = timerlat.and_then(|_| undo_of_timerlat(run, |path: &str| system.text(path)));
        // Where BPF is refused who had the CPU is kept there.
        let blames = self.planned.blame_above.is_some() && !self.planned.no_side_effects;
        let blame = blames.then(|| undo_of_blame(run, |path: &str| system.text(path))).flatten();
        for how in faults.into_iter().chain(proving).flat_map(undos).chain(timerlat).chain(blame) {
            self.promises.push((number, guardian.promise(how).map_err(failed)?));
        }
        Ok(())
    }

    /// Lets one instrument after the other prove itself. Environments share CPUs: what two of them hold them
    /// for at once would be seen at the size of both.
    pub(super) fn prove(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for at in 0..self.sessions.len() {
            if self.sessions[at].proven {
                continue;
            }
            if let Err(error) = self.sessions[at].prove() {
                return Err(self.broken(at, &error.to_string()));
            }
            let number = self.sessions[at].number;
            let proven = |session: &Session| session.number != number || session.proven;
            self.await_all(context, PREPARATION, "for its self-test", proven)?;
        }
        Ok(())
    }

    /// The same once more when all have measured: an instrument that no longer sees what it saw before may have been blind
    /// for any part of it.
    pub(super) fn prove_again(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for at in 0..self.sessions.len() {
            // The guest of a card answers until it is told to stop, which it has been by now.
            if self.has_a_card_to_raise(&self.sessions[at].name) {
                continue;
            }
            let session = &mut self.sessions[at];
            if !(session.measures && session.proves && session.done)
                || session.ended
                || !session.running.hears()
            {
                continue;
            }
            // A stream that broke ends, and that is heard.
            let _ = session.prove();
            let until = Instant::now() + self.patience(AGAIN);
            while !self.sessions[at].proven && !self.sessions[at].ended && Instant::now() < until {
                if context.interrupt.asked() {
                    break;
                }
                self.receive(context)?;
            }
            if !self.sessions[at].proven {
                // Its messages on this scenario must not count for the next one.
                self.sessions[at].self_test_timed_out();
            }
        }
        Ok(())
    }

    pub(super) fn activities<'s>(&'s self, environment: &'s str) -> impl Iterator<Item = &'s Activity> {
        self.planned.activities.iter().filter(move |a| a.environment == environment).map(|a| &a.activity)
    }
}

/// The blocks among them.
fn blocks(activities: &[Activity]) -> impl Iterator<Item = u32> {
    let blocks = |activity: &&Activity| matches!(&activity.what, What::Fault(Fault::Block(_)));
    activities.iter().filter(blocks).map(|activity| activity.id)
}

/// Whether the host side carries an activity out.
fn from_outside(activity: &Activity) -> bool {
    matches!(&activity.what, What::Fault(fault) if fault.from_outside())
}

/// An activity as it is in an environment whose processor is emulated, or is not.
fn as_there(activity: &Activity, emulated: bool) -> Activity {
    match &activity.what {
        What::Fault(fault) if emulated => {
            Activity { what: What::Fault(fault.emulated()), ..activity.clone() }
        }
        _ => activity.clone(),
    }
}

/// The proof for the instrument of a probe.
fn control(planned: &ControlBy, latency: bool, emulated: bool) -> ControlBy {
    match planned {
        _ if !latency => ControlBy::Nothing,
        ControlBy::Fault(fault) if emulated => ControlBy::Fault(fault.emulated()),
        planned => planned.clone(),
    }
}
