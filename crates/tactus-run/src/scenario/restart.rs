//! An environment that died while it was measured, or made load, is started again, where the plan says so.

use std::time::{Duration, Instant};

use tactus_model::clock::ClockCheck;
use tactus_model::cpus::CpuSet;
use tactus_model::event::Event;
use tactus_model::message::{Activity, Note, What};
use tactus_model::outcome::{Ending, RowEnd, Yields};
use tactus_model::{Nanos, number::float};
use tactus_system::boottime_ns;

use super::host_side::{holds, outside};
use super::prepare::PREPARATION;
use super::{Failure, ScenarioRun};
use crate::context::Context;
use crate::session::Session;

/// How long one that is paused is waited for, at the least.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// An environment that is to be started again.
pub(super) struct Dead {
    /// The number of its session.
    pub session: usize,
    /// Why it died.
    pub words: String,
}

impl ScenarioRun<'_> {
    /// The stream of an environment has ended, or nothing comes any more, before it was done; `what` says which.
    pub(super) fn died(&mut self, context: &mut Context<'_>, at: usize, what: &str) -> Result<(), Failure> {
        let session = &mut self.sessions[at];
        session.ended = true;
        let (name, number, measures) = (session.name.clone(), session.number, session.measures);
        let words = session.last_words();
        let starts = self.restarts.get(&name).copied().unwrap_or(0);
        let mut reason = format!("{name} {what}: {words}");
        if self.collecting && self.planned.restart > 0 && !context.interrupt.asked() {
            let obstacle = self.obstacle(context, at);
            if starts < self.planned.restart && obstacle.is_none() {
                self.dead.push_back(Dead { session: number, words: format!("{what}: {words}") });
                return Ok(());
            }
            reason += &match obstacle {
                Some(why) => format!("; it is not started again: {why}"),
                None => format!("; it had been started {} times", starts + 1),
            };
        }
        if measures {
            self.finish(context, &name, &Ending::because(RowEnd::Failed, reason), None);
            return Ok(());
        }
        self.peer_ended(context, &name, &words);
        if self.collecting {
            let hint = "from then on the measurement ran without it";
            self.tell(context, [Note::obstacle(reason, hint)])?;
        }
        Ok(())
    }

    /// Whether to wait for an environment that has been silent for `silence`, because its runtime reports it as
    /// paused.
    /// The longest wait is the planned duration of the scenario, and at least ten minutes.
    pub(super) fn waits_for(
        &mut self,
        context: &mut Context<'_>,
        at: usize,
        silence: Duration,
    ) -> Result<bool, Failure> {
        let longest = Duration::from_nanos(self.planned.duration_ns).max(LONGEST_PAUSE);
        let session = &mut self.sessions[at];
        let Some(who) = session.running.paused().filter(|_| session.paused < longest) else {
            // One that has just been let run again has not had the time for a word.
            let resumes = std::mem::take(&mut session.stands);
            if resumes {
                session.heard = Instant::now();
            }
            return Ok(resumes);
        };
        let first = session.paused.is_zero();
        session.paused += silence;
        (session.heard, session.stands) = (Instant::now(), true);
        if first {
            let text =
                format!("{who} reports that it is paused: tactus waits for it, and that time is a gap");
            let hint = "resume it; tactus waits for the planned duration, at least ten minutes";
            let environment = Some(self.sessions[at].name.clone());
            context.emit(Event::Noted { environment, note: Note::obstacle(text, hint) })?;
        }
        Ok(true)
    }

    /// Why another start of an environment cannot continue its measurement; `None` if it can.
    fn obstacle(&self, context: &Context<'_>, at: usize) -> Option<&'static str> {
        let session = &self.sessions[at];
        let name = &session.name;
        let rows = || self.rows.clone().map(|row| &context.resolved.rows[row]);
        let own = || rows().filter(|row| row.result.environment == *name);
        let is_peer = rows().any(|row| row.peer.as_ref() == Some(name));
        if self.planned.lock_in.is_some() {
            return Some("the random times of injection in a separation are valid for one start only");
        }
        if own().any(|row| row.result.outcome.yields() != Yields::Latency) {
            return Some("a measurement of values cannot be continued");
        }
        if is_peer || self.is_to_be_on_a_path(name) || self.is_to_have_a_card(name) {
            return Some("other environments of the scenario are connected with it");
        }
        if self.sessions.iter().any(|other| other.inside.as_ref() == Some(name)) {
            return Some("other environments lie inside it");
        }
        if holds(self.planned, name).next().is_some() {
            return Some("its virtual CPUs are held from the host");
        }
        if self.planned.kvm_exits {
            return Some("the exits of its virtual CPUs are counted from the host");
        }
        if session.measures && self.left_ns(context, name) < self.planned.tick_ns {
            return Some("less than a report interval of the measurement was left");
        }
        (!session.running.hears()).then_some("it cannot be told when to begin")
    }

    /// How much of an environment's measurement is left, in ns.
    fn left_ns(&self, context: &Context<'_>, name: &str) -> u64 {
        let own = self.rows_in(context, name);
        let reached = own.iter().filter_map(|row| self.splices.get(row)).map(super::Splice::reached_ns).max();
        self.planned.duration_ns.saturating_sub(reached.unwrap_or(0))
    }

    /// The rows that are measured in an environment.
    fn rows_in(&self, context: &Context<'_>, name: &str) -> Vec<usize> {
        let own = |row: &usize| context.resolved.rows[*row].result.environment == name;
        self.rows.clone().filter(own).collect()
    }

    /// Starts an environment again and lets it measure what is left, or ends its rows with the reason that it cannot be.
    pub(super) fn restart(&mut self, context: &mut Context<'_>, dead: &Dead) -> Result<(), Failure> {
        let Some(at) = self.sessions.iter().position(|session| session.number == dead.session) else {
            return Ok(());
        };
        let name = self.sessions[at].name.clone();
        let (measures, since) = (self.sessions[at].measures, self.sessions[at].heard_ns);
        if measures {
            self.tell_holes(context, at)?;
        }
        let session = self.sessions.remove(at);
        self.end_dead(context, session)?;
        let mut why = String::new();
        while self.restarts.get(&name).copied().unwrap_or(0) < self.planned.restart {
            *self.restarts.entry(name.clone()).or_default() += 1;
            match self.start_again(context, at, &name, measures) {
                Ok(()) => return self.tell_restart(context, &name, dead, since),
                Err(Failure::Run(error)) => return Err(Failure::Run(error)),
                Err(failure) => {
                    if let Some(at) = self.sessions.iter().position(|session| session.name == name) {
                        let session = self.sessions.remove(at);
                        self.end_dead(context, session)?;
                    }
                    match failure {
                        Failure::Scenario(said) | Failure::Refused(said) => why = said,
                        Failure::Interrupted | Failure::Run(_) => {
                            let why = format!("interrupted while it was restarted; {}", dead.words);
                            self.finish(context, &name, &Ending::because(RowEnd::Interrupted, why), None);
                            return Ok(());
                        }
                    }
                }
            }
        }
        let reason = format!("{name} {}; it could not be started again: {why}", dead.words);
        if measures {
            self.finish(context, &name, &Ending::because(RowEnd::Failed, reason), None);
            return Ok(());
        }
        let hint = "from then on the measurement ran without it";
        self.tell(context, [Note::obstacle(reason, hint)])
    }

    /// Ends what is left of an environment, and takes back what its probe changed on a machine that lives on.
    fn end_dead(&mut self, context: &mut Context<'_>, session: Session) -> Result<(), Failure> {
        let (number, name) = (session.number, session.name.clone());
        // The host's recordings of its virtual CPUs belong to this start alone.
        while let Some(at) = self.watches.iter().position(|(of, _)| *of == number) {
            drop(self.watches.remove(at));
        }
        // One that died before it had its job takes nothing from what was reported.
        self.reported.extend(session.reported().map(|before| (name.clone(), before)));
        session.close();
        self.blocks.retain(|(of, _)| *of != number);
        let own: Vec<_> = self.promises.extract_if(.., |(of, _)| *of == number).collect();
        // The last that was changed is put back first.
        own.into_iter().rev().for_each(drop);
        Ok(context.tell_warnings(Some(&name))?)
    }

    /// Starts it, at its old place among the others, and tells it to go.
    fn start_again(
        &mut self,
        context: &mut Context<'_>,
        at: usize,
        name: &str,
        measures: bool,
    ) -> Result<(), Failure> {
        let left = if measures { self.left_ns(context, name) } else { self.planned.duration_ns };
        self.bring_up(context, self.number, name)?;
        if let Some(session) = self.sessions.pop() {
            self.sessions.insert(at.min(self.sessions.len()), session);
        }
        let Some(at) = self.sessions.iter().position(|session| session.name == name) else { return Ok(()) };
        // The proof holds its CPUs: that would add latency to environments that measure there meanwhile.
        let proves = !self.shares_cpus(context, name);
        self.give_job(context, at, left, proves)?;
        self.await_all(context, PREPARATION, "to prepare its job", |session| session.ready)?;
        self.prove(context)?;
        // One that has none is not held up by the others' order.
        self.go(at)
    }

    /// Whether another environment that measures has CPUs of the machine that this one measures on.
    fn shares_cpus(&self, context: &Context<'_>, name: &str) -> bool {
        let measured = |of: &str| {
            let measures = |activity: &&Activity| matches!(activity.what, What::Measure { .. });
            let cpus = self.activities(of).filter(measures).map(|own| outside(context, of, &own.cpus));
            cpus.fold(CpuSet::default(), |all, own| all.or(&own))
        };
        let own = measured(name);
        let others = self.sessions.iter().filter(|other| other.name != name && other.measures && !other.done);
        others.into_iter().any(|other| !measured(&other.name).and(&own).is_empty())
    }

    /// Tells that it is measured on, and after how long.
    fn tell_restart(
        &mut self,
        context: &mut Context<'_>,
        name: &str,
        dead: &Dead,
        since_ns: u64,
    ) -> Result<(), Failure> {
        let gap_ns = boottime_ns().saturating_sub(since_ns);
        let nth = format!(
            "start {} of at most {}",
            self.restarts.get(name).map_or(0, |starts| u64::from(*starts) + 1),
            u64::from(self.planned.restart) + 1
        );
        let hint = "check its console and its engine's log; the measurement up to then is kept";
        let rows = self.rows_in(context, name);
        let mut said = None;
        for row in &rows {
            let restart = self.splices.entry(*row).or_default().begin(gap_ns, &dead.words);
            said = Some(restart.sentence());
            context.emit(Event::Restarted { row: *row, restart })?;
        }
        if let Some(said) = said {
            let note = Note::obstacle(format!("{said} ({nth})"), hint);
            return Ok(context.emit(Event::Noted { environment: Some(name.to_owned()), note })?);
        }
        let seconds = float(gap_ns) / 1e9;
        let text = format!(
            "{name}, which is not measured, died ({}) and was started again: it was missing for {seconds:.1} \
                s ({nth})",
            dead.words
        );
        self.tell(context, [Note::obstacle(text, "the measurements of the others include that time")])
    }

    /// Tells when the clock of an environment stood still.
    pub(super) fn tell_holes(&mut self, context: &mut Context<'_>, at: usize) -> Result<(), Failure> {
        let clock = self.stood_still(context, at, 0);
        let environment = self.sessions[at].name.clone();
        if clock.holes.is_empty() { Ok(()) } else { self.clock_checked(context, environment, clock) }
    }

    /// The state of the clock of an environment at its end; `jump_ns` is its probe's report.
    pub(super) fn stood_still(&mut self, context: &Context<'_>, at: usize, jump_ns: u64) -> ClockCheck {
        let mut holes = self.sessions[at].stood_still();
        let rows = self.rows_in(context, &self.sessions[at].name);
        if let Some(splice) = rows.first().and_then(|row| self.splices.get(row)) {
            holes.iter_mut().for_each(|hole| *hole = splice.hole(*hole));
        }
        let stood = holes.iter().fold(0, |sum: u64, hole| sum.saturating_add(hole.length_ns));
        ClockCheck { holes, jump_ns: jump_ns.max(stood), ..ClockCheck::default() }
    }

    /// Whether what was measured in an environment is of several starts of it.
    pub(super) fn is_spliced(&self, context: &Context<'_>, name: &str) -> bool {
        let rows = self.rows_in(context, name);
        rows.iter().any(|row| self.splices.get(row).is_some_and(super::Splice::is_spliced))
    }
}

/// How long something was silent, in words.
pub(super) fn silent_for(silence: Duration) -> String {
    format!("was silent for {}", Nanos(u64::try_from(silence.as_nanos()).unwrap_or(u64::MAX)))
}
