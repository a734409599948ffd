//! One scenario: bring its environments up, give every probe its job, collect what they measure,
//! and end them.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};

use tactus_model::activity::Fault;
use tactus_model::bundle::{INTERRUPTED, STOPPED};
use tactus_model::control::ControlBy;
use tactus_model::event::{Event, RowStatus, Ticked};
use tactus_model::facts::Facts;
use tactus_model::latency::histogram;
use tactus_model::message::{Activity, Done, End, FromProbe, Job, Note, PROTOCOL, Tick, ToProbe, What};
use tactus_model::partition::CacheUse;
use tactus_model::wire::Item;
use tactus_model::{CpuSet, Evidence};

use super::blocks::undos;
use super::engine::{Context, RunError};
use super::partition::{self, Divided};
use super::session::{Arrival, Session};
use super::settings::{Settings, settings};
use super::vcpus::{Hold, Watch};
use crate::environment::{Setting, StartError, Usable};
use crate::guardian::Promise;
use crate::plan::{Resolved, ResolvedActivity, ResolvedScenario};
use crate::system::System;

/// How long an environment may take until its probe's first word.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long a probe may take to prepare a job; one that hears nothing is booted with it.
const PREPARATION: Duration = Duration::from_secs(90);
/// How long a probe may be silent while it measures, beyond its ticks. Generous: an emulated guest
/// under load on a shared machine may be held up for seconds.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a probe may take to end its job after it was told to stop.
const FAREWELL: Duration = Duration::from_secs(10);
/// How many times longer everything may take over a narrow channel: facts are 100 KB or more.
const NARROW: u32 = 5;
/// How often the use of divided caches is read.
const LOOK: Duration = Duration::from_secs(1);
/// How often the interrupt is looked at.
const BEAT: Duration = Duration::from_millis(50);

/// Performs a scenario. Whatever goes wrong in it ends its rows with the reason.
pub(super) fn perform(
    context: &mut Context<'_>,
    number: usize,
    planned: &ResolvedScenario,
) -> Result<(), RunError> {
    let mut stage = Stage::new(planned);
    let result = stage.play(context, number);
    let refused = matches!(result, Err(Failure::Refused(_)));
    if refused {
        stage.withdraw(context);
    }
    stage.close(context, result.is_ok() || refused);
    match result {
        Ok(()) => stage.end(context),
        Err(Failure::Run(error)) => Err(error),
        Err(Failure::Scenario(reason)) => stage.end_all(context, RowStatus::Failed, &reason),
        // What the place does not allow was not tried: it is skipped, with the remedy.
        Err(Failure::Refused(reason)) => stage.end_all(context, RowStatus::Skipped, &reason),
        Err(Failure::Interrupted) => {
            stage.end_all(context, RowStatus::Skipped, "the run was interrupted before this was measured")
        }
    }
}

/// Why a scenario does not go on.
pub(super) enum Failure {
    /// The whole run ends.
    Run(RunError),
    /// This scenario ends, for this reason.
    Scenario(String),
    /// A probe may not do its job there, for this reason.
    Refused(String),
    /// Somebody asked the run to end before anything was measured.
    Interrupted,
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        Self::Scenario(format!("{}{hint}", error.reason))
    }
}

/// How a row ended.
struct Outcome {
    status: RowStatus,
    reason: Option<String>,
    /// Where the probe could not say it: how far its ticks came.
    measured_ns: Option<u64>,
}

/// What is on while a scenario is performed.
pub(super) struct Stage<'a> {
    planned: &'a ResolvedScenario,
    rows: Range<usize>,
    sessions: Vec<Session>,
    outcome: BTreeMap<usize, Outcome>,
    /// End of the last tick of each row, in ns since it began to measure.
    reached: BTreeMap<usize, u64>,
    /// For what a probe changes on this machine and puts back itself, if it lives.
    promises: Vec<Promise>,
    /// Over the virtual CPUs of environments, by their session's number.
    watches: Vec<(usize, Watch)>,
    /// Blocks on this machine of which nobody has said that they are taken back.
    blocks: usize,
    /// The partition of the caches, while it is on.
    divided: Option<Divided<Promise>>,
    /// When the caches' use was last read.
    looked: Instant,
}

impl<'a> Stage<'a> {
    /// Nothing is on yet.
    pub(super) fn new(planned: &'a ResolvedScenario) -> Self {
        Self {
            planned,
            rows: planned.rows.clone(),
            sessions: Vec::new(),
            outcome: BTreeMap::new(),
            reached: BTreeMap::new(),
            promises: Vec::new(),
            watches: Vec::new(),
            blocks: 0,
            divided: None,
            looked: Instant::now(),
        }
    }

    /// After a refusal: takes the job back from everybody else, so that the next scenario may use them. What
    /// is said meanwhile belongs to no measurement.
    fn withdraw(&mut self, context: &Context<'_>) {
        for session in self.sessions.iter_mut().filter(|session| !session.done && !session.ended) {
            // A broken stream shows itself as an end of the stream.
            let _ = session.say(&ToProbe::Stop);
        }
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until && self.sessions.iter().any(|session| !session.done && !session.ended) {
            let Ok((number, arrival)) = context.arrivals.recv_timeout(BEAT) else { continue };
            let Some(session) = self.sessions.iter_mut().find(|session| session.number == number) else {
                continue;
            };
            match arrival {
                Arrival::Item(Item::Message(FromProbe::Done(_) | FromProbe::Refused(_))) => {
                    session.done = true;
                }
                Arrival::Ended => session.ended = true,
                Arrival::Item(_) => {}
            }
        }
    }

    /// Ends every environment; after a scenario that left nothing behind those stay up that the next one may use.
    pub(super) fn close(&mut self, context: &mut Context<'_>, well: bool) {
        let ended = |session: &Session| session.done && !session.refused;
        let all_done = self.blocks == 0 && self.sessions.iter().all(ended);
        let keep = well && !context.interrupt.asked();
        context.kept.append(&mut self.sessions);
        let reusable: Vec<String> =
            context.kept.iter().filter(|s| keep && s.is_reusable()).map(|s| s.name.clone()).collect();
        context.close_kept(|session| reusable.contains(&session.name));
        drop(self.divided.take());
        for promise in self.promises.drain(..) {
            // A probe that came to its end has put back what it set.
            if all_done {
                promise.settled();
            }
        }
    }

    /// What the probe of an environment has read so far.
    pub(super) fn facts(&self, name: &str) -> Facts {
        self.sessions
            .iter()
            .find(|session| session.name == name)
            .map_or_else(Facts::default, |s| s.facts.clone())
    }

    fn play(&mut self, context: &mut Context<'_>, number: usize) -> Result<(), Failure> {
        let resolved = context.resolved;
        let names = resolved.environments_of(self.planned);
        // What this scenario does not use must not disturb it.
        context.close_kept(|session| {
            names.contains(&session.name) && session.measured == self.measured(resolved, &session.name)
        });
        for name in names {
            if context.interrupt.asked() {
                return Err(Failure::Interrupted);
            }
            if let Some(at) = context.kept.iter().position(|session| session.name == name) {
                self.sessions.push(context.kept.swap_remove(at));
                context.emit(Event::EnvironmentKept { environment: name })?;
            } else {
                self.bring_up(context, number, &name)?;
            }
        }
        self.prepare(context)?;
        self.divide(context)?;
        self.prove(context)?;
        self.watch(context)?;
        self.start(context)?;
        let collected = self.collect(context);
        self.tell_waits(context)?;
        collected?;
        if let Some(divided) = self.divided.take() {
            let (after, note) = divided.take_back(context.system);
            self.tell_uses(context, vec![after])?;
            self.tell(context, note)?;
        }
        Ok(())
    }

    /// Divides the machine's caches, where the scenario says so.
    fn divide(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let Some(wanted) = self.planned.partition else { return Ok(()) };
        if self.planned.no_side_effects {
            let reason = "its `partition` changes the machine, which was to be left as it is";
            return Err(Failure::Refused(reason.into()));
        }
        let measuring = |a: &&ResolvedActivity| matches!(a.activity.what, What::Measure { .. });
        let mut measured = CpuSet::default();
        for at in self.planned.activities.iter().filter(measuring) {
            measured = measured.or(&outside(context, &at.environment, &at.activity.cpus));
        }
        let (id, online) = (context.guardian.id(), &context.machine.online);
        let promise = |how| context.guardian.promise(how);
        let divided = partition::make(context.system, id, wanted, &measured, online, promise)
            .map_err(|reason| Failure::Refused(format!("`partition`: {reason}")))?;
        self.tell(context, divided.notes())?;
        self.tell_uses(context, vec![divided.before().clone()])?;
        self.divided = Some(divided);
        Ok(())
    }

    /// Says something of every environment that is measured.
    fn tell(&self, context: &mut Context<'_>, notes: impl IntoIterator<Item = Note>) -> Result<(), Failure> {
        for note in notes {
            for session in self.sessions.iter().filter(|session| session.measures) {
                let environment = Some(session.name.clone());
                context.emit(Event::Noted { environment, note: note.clone() })?;
            }
        }
        Ok(())
    }

    fn tell_uses(&mut self, context: &mut Context<'_>, uses: Vec<CacheUse>) -> Result<(), Failure> {
        self.looked = Instant::now();
        for event in partition::seen(uses) {
            context.emit(event)?;
        }
        Ok(())
    }

    /// Starts an environment and waits for its probe's hello and facts.
    pub(super) fn bring_up(
        &mut self,
        context: &mut Context<'_>,
        number: usize,
        name: &str,
    ) -> Result<(), Failure> {
        context.emit(Event::EnvironmentStarting { environment: name.to_owned() })?;
        let environment = &context.resolved.environments[name];
        let began = Instant::now();
        let slug = format!("{number:02}-{}", tactus_model::bundle::slug(name));
        let failed = |what: &str, error: std::io::Error| Failure::Scenario(format!("{what}: {error}"));
        let measured = self.measured(context.resolved, name);
        let housekeeping = context.resolved.housekeeping_around(name, context.machine);
        let outer = environment.spec.inside.clone();
        let ground = outer.as_ref().and_then(|outer| self.sessions.iter().position(|s| s.name == *outer));
        if let (Some(outer), None) = (&outer, ground) {
            return Err(Failure::Scenario(format!("{name} lies inside {outer}, which is not up")));
        }
        let nest = match ground {
            None => None,
            Some(at) => {
                let nest = self.sessions[at].nest(context.guardian);
                Some(nest.map_err(|error| failed("nothing can be put inside", error))?)
            }
        };
        let workspace = match nest {
            None => {
                let dir = context.workspace.join(slug);
                fs::create_dir_all(&dir).map(|()| dir)
            }
            Some(nest) => nest.workspace(&slug),
        };
        let workspace = workspace.map_err(|error| failed("no private directory", error))?;
        let system: &dyn System = nest.map_or(context.system, |nest| &nest.system);
        if nest.is_some()
            && let Usable::No { reason, remedy } = environment.kind.usable_as(&environment.spec, system)
        {
            let outer = outer.unwrap_or_default();
            return Err(Failure::Refused(format!("{name}, inside {outer}: {reason}; {remedy}")));
        }
        let console =
            context.consoles.join(format!("{:02}-{}.log", number + 1, tactus_model::bundle::slug(name)));
        let running = environment.kind.start(&Setting {
            system,
            guardian: nest.map_or(context.guardian, |nest| &nest.guardian),
            name,
            spec: &environment.spec,
            layout: &environment.near,
            housekeeping,
            measured: measured.clone(),
            workspace: &workspace,
            console,
            patience: PATIENCE,
        })?;
        let at = self.sessions.len();
        let inherited = ground.and_then(|at| self.sessions[at].evidence);
        let mut opened = context.open(name, running, measured);
        opened.inside = outer;
        self.sessions.push(opened);
        self.await_all(context, PATIENCE, "to say hello", |session| {
            session.hello.is_some() && session.facts_complete
        })?;
        let session = &mut self.sessions[at];
        let after_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(hello) = &session.hello
            && hello.protocol != PROTOCOL
        {
            return Err(Failure::Scenario(format!(
                "the probe speaks protocol {}, this tactus {PROTOCOL}",
                hello.protocol
            )));
        }
        // What lies inside stands on the ground of what is around it.
        let evidence = inherited.unwrap_or_else(|| session.running.evidence(&session.facts));
        session.evidence = Some(evidence);
        let facts = Box::new(session.facts.clone());
        let mut notes = session.running.settle()?;
        if let Some(outer) = &session.inside {
            let cpus = environment.near.outside();
            notes.insert(0, Note::info(format!("{} in {outer}, on its CPUs {cpus}", environment.spec.kind)));
        }
        context.emit(Event::EnvironmentUp { environment: name.to_owned(), evidence, after_ms })?;
        let readings = facts.0.len();
        context.emit(Event::FactsCollected { environment: name.to_owned(), readings, facts: Some(facts) })?;
        for note in notes {
            context.emit(Event::Noted { environment: Some(name.to_owned()), note })?;
        }
        Ok(())
    }

    /// CPUs inside an environment that this scenario measures.
    fn measured(&self, resolved: &Resolved, environment: &str) -> CpuSet {
        resolved.measured_by(&self.planned.activities, environment)
    }

    fn activities<'s>(&'s self, environment: &'s str) -> impl Iterator<Item = &'s Activity> {
        self.planned.activities.iter().filter(move |a| a.environment == environment).map(|a| &a.activity)
    }

    /// Gives every probe its job and waits until all are ready.
    fn prepare(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for at in 0..self.sessions.len() {
            let name = self.sessions[at].name.clone();
            let emulated = self.sessions[at].evidence == Some(Evidence::Emulated);
            let own = self.activities(&name).filter(|activity| !from_outside(activity));
            let activities: Vec<Activity> = own.map(|activity| as_there(activity, emulated)).collect();
            let measures = activities.iter().any(|a| matches!(a.what, What::Measure { .. }));
            let made = settings(context, self.planned, &name, &self.sessions[at].facts);
            let Settings { changes, restore, promises } =
                made.map_err(|reason| Failure::Scenario(format!("{name}: {reason}")))?;
            self.promises.extend(promises);
            let control = control(&self.planned.control, measures, emulated);
            self.promise_blocks(context, &name, &activities, &control)?;
            let environment = &context.resolved.environments[&name];
            self.sessions[at].sets = !changes.is_empty();
            let job = Job {
                // What only makes load goes on until those that measure are done, and is then told to stop.
                duration_ns: if measures { self.planned.duration_ns } else { u64::MAX / 4 },
                tick_ns: self.planned.tick_ns,
                control,
                no_side_effects: self.planned.no_side_effects,
                housekeeping: environment.housekeeping.clone(),
                activities,
                changes,
                restore,
                budget: self.sessions[at].running.budget().unwrap_or(0),
            };
            self.sessions[at].measures = measures;
            if let Err(error) = self.sessions[at].give(job) {
                return Err(self.broken(at, &error.to_string()));
            }
        }
        self.await_all(context, PREPARATION, "to prepare its job", |session| session.ready)?;
        // What was measured under are the settings that were made.
        for at in 0..self.sessions.len() {
            if self.sessions[at].sets {
                let (environment, facts) = (self.sessions[at].name.clone(), self.sessions[at].facts.clone());
                let readings = facts.0.len();
                let facts = Some(Box::new(facts));
                context.emit(Event::FactsCollected { environment, readings, facts })?;
            }
        }
        Ok(())
    }

    /// Promises that what a block changes of this machine's kernel is taken back.
    fn promise_blocks(
        &mut self,
        context: &Context<'_>,
        name: &str,
        activities: &[Activity],
        control: &ControlBy,
    ) -> Result<(), Failure> {
        if context.resolved.environments[name].kind.numbers_cpus() {
            return Ok(());
        }
        let faults: Vec<&Fault> = activities
            .iter()
            .filter_map(|activity| if let What::Fault(fault) = &activity.what { Some(fault) } else { None })
            .collect();
        self.blocks += faults.iter().filter(|fault| matches!(fault, Fault::Block(_))).count();
        let proving = if let ControlBy::Fault(fault) = control { Some(fault) } else { None };
        for how in faults.into_iter().chain(proving).flat_map(|fault| undos(fault, context.system)) {
            let promise = context.guardian.promise(how);
            let failed = |error| Failure::Scenario(format!("{name}: the guardian cannot be told: {error}"));
            self.promises.push(promise.map_err(failed)?);
        }
        Ok(())
    }

    /// Lets one instrument after the other prove itself. Environments share CPUs: what two of them hold them
    /// for at once would be seen at the size of both.
    fn prove(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for at in 0..self.sessions.len() {
            if self.sessions[at].proven {
                continue;
            }
            if let Err(error) = self.sessions[at].say(&ToProbe::Prove) {
                return Err(self.broken(at, &error.to_string()));
            }
            let number = self.sessions[at].number;
            let proven = |session: &Session| session.number != number || session.proven;
            self.await_all(context, PREPARATION, "to prove its instrument", proven)?;
        }
        Ok(())
    }

    /// Loads first, so that they are there when the measurement begins.
    fn start(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for measures in [false, true] {
            // What lies inside is spoken to through what is around it, which is busy once it has begun.
            for at in (0..self.sessions.len()).rev() {
                if self.sessions[at].measures != measures {
                    continue;
                }
                if measures {
                    self.sessions[at].running.measuring();
                }
                if let Err(error) = self.sessions[at].say(&ToProbe::Go) {
                    return Err(self.broken(at, &error.to_string()));
                }
            }
        }
        for row in self.rows.clone() {
            let planned = &context.resolved.rows[row].result;
            let (name, environment) = (planned.name.clone(), planned.environment.clone());
            let duration_ns = planned.planned_ns;
            context.emit(Event::RowStarted { row, name, environment, duration_ns })?;
        }
        Ok(())
    }

    /// Watches over the threads that run virtual CPUs, and begins to hold those that are to be held.
    fn watch(&mut self, context: &Context<'_>) -> Result<(), Failure> {
        for session in &mut self.sessions {
            let holds: Vec<Hold> = holds(self.planned, &session.name).collect();
            let threads = session.running.vcpus();
            if threads.is_empty() && !holds.is_empty() {
                let why = "no threads of virtual CPUs are known that could be held";
                let hint = "`hold-vcpu` is for virtual machines that this tactus starts or attaches to";
                return Err(Failure::Refused(format!("{}: {why}; {hint}", session.name)));
            }
            if threads.is_empty() || (holds.is_empty() && !session.measures) {
                continue;
            }
            let layout = &context.resolved.environments[&session.name].layout;
            let housekeeping = context.machine.housekeeping(&context.resolved.measured);
            let asked = !holds.is_empty();
            match Watch::start(context.system, context.guardian, &threads, layout, &housekeeping, holds) {
                Ok(watch) => self.watches.push((session.number, watch)),
                Err(why) if asked => return Err(Failure::Refused(format!("{}: {why}", session.name))),
                // Without the host's record the guest is measured all the same.
                Err(error) => tracing::debug!(%error, "no watch over virtual CPUs"),
            }
        }
        Ok(())
    }

    /// Ends the watches and tells what they saw.
    fn tell_waits(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for (number, watch) in std::mem::take(&mut self.watches) {
            let Some(session) = self.sessions.iter().find(|session| session.number == number) else {
                continue;
            };
            let environment = session.name.clone();
            let (waits, injected) = watch.finish(session.began);
            if let Some(waits) = waits {
                context.emit(Event::Waited { environment: environment.clone(), waits })?;
            }
            for injected in injected {
                let outside = outside(context, &environment, &injected.cpus);
                context.emit(Event::Injected { environment: environment.clone(), outside, injected })?;
            }
        }
        Ok(())
    }

    /// Takes in what the probes measure until all that measure are done, then ends the loads.
    fn collect(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let mut stopping: Option<Instant> = None;
        let silence = SILENCE + 5 * Duration::from_nanos(self.planned.tick_ns);
        loop {
            let open = |session: &&Session| !session.done && !session.ended;
            let measuring = self.sessions.iter().filter(|s| s.measures).any(|s| open(&s));
            let anything = self.sessions.iter().any(|s| open(&s));
            if !anything {
                return Ok(());
            }
            if stopping.is_none() && (context.interrupt.asked() || !measuring) {
                stopping = Some(Instant::now());
                for session in self.sessions.iter_mut().filter(|s| !s.done && !s.ended) {
                    // A broken stream shows itself as an end of the stream.
                    let _ = session.say(&ToProbe::Stop);
                }
            }
            if stopping.is_some_and(|since| since.elapsed() > self.patience(FAREWELL)) {
                return Err(Failure::Scenario("it did not stop when it was told to, and was ended".into()));
            }
            let quiet =
                self.sessions.iter().position(|s| s.measures && open(&s) && s.heard.elapsed() > silence);
            if let Some(at) = quiet {
                let why = format!("said nothing for {} s", silence.as_secs());
                return Err(self.broken(at, &why));
            }
            if self.looked.elapsed() >= LOOK
                && let Some(divided) = self.divided.as_mut().filter(|divided| divided.is_watched())
            {
                let uses = divided.uses(context.system);
                self.tell_uses(context, uses)?;
            }
            self.hear(context)?;
        }
    }

    /// A patience, longer where what is waited for passes a narrow channel.
    fn patience(&self, usual: Duration) -> Duration {
        let narrow = self.sessions.iter().any(|session| session.running.budget().is_some());
        if narrow { NARROW * usual } else { usual }
    }

    /// Waits until a condition holds for every session.
    fn await_all(
        &mut self,
        context: &mut Context<'_>,
        patience: Duration,
        what: &str,
        holds: impl Fn(&Session) -> bool,
    ) -> Result<(), Failure> {
        let patience = self.patience(patience);
        let until = Instant::now() + patience;
        while let Some(at) = self.sessions.iter().position(|session| !holds(session)) {
            if context.interrupt.asked() {
                return Err(Failure::Interrupted);
            }
            if self.sessions[at].ended {
                return Err(self.broken(at, "ended before it could measure"));
            }
            if Instant::now() > until {
                return Err(self.broken(at, &format!("took more than {} s {what}", patience.as_secs())));
            }
            self.hear(context)?;
        }
        Ok(())
    }

    /// The reason that an environment gave, with its last words.
    fn broken(&mut self, at: usize, what: &str) -> Failure {
        let session = &mut self.sessions[at];
        let words = session.last_words();
        Failure::Scenario(format!("{} {what}: {words}", session.name))
    }

    /// Takes in what has arrived, or waits a moment.
    fn hear(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let Ok((number, arrival)) = context.arrivals.recv_timeout(BEAT) else { return Ok(()) };
        // The last words of an environment that has been closed.
        let Some(at) = self.sessions.iter().position(|session| session.number == number) else {
            return Ok(());
        };
        self.sessions[at].heard = Instant::now();
        match arrival {
            Arrival::Item(Item::Message(message)) => self.message(context, at, message),
            Arrival::Item(Item::Foreign(line) | Item::Unknown(line)) => {
                self.sessions[at].keep_foreign(line);
                Ok(())
            }
            Arrival::Item(Item::Lost(frames)) => {
                let environment = self.sessions[at].name.clone();
                Ok(context.emit(Event::FramesLost { environment, frames })?)
            }
            Arrival::Ended => {
                self.sessions[at].ended = true;
                if self.sessions[at].measures && !self.sessions[at].done {
                    let words = self.sessions[at].last_words();
                    let reason = format!("{} ended while it measured: {words}", self.sessions[at].name);
                    self.finish(context, at, RowStatus::Failed, Some(&reason), None);
                }
                Ok(())
            }
        }
    }

    fn message(&mut self, context: &mut Context<'_>, at: usize, message: FromProbe) -> Result<(), Failure> {
        let environment = self.sessions[at].name.clone();
        match message {
            FromProbe::Hello(hello) => self.sessions[at].hello = Some(hello),
            FromProbe::Facts { readings, last } => {
                self.sessions[at].facts.0.extend(readings.0);
                self.sessions[at].facts_complete |= last;
            }
            FromProbe::Ready => self.sessions[at].ready = true,
            FromProbe::Proven => self.sessions[at].proven = true,
            FromProbe::Refused(refusal) => {
                (self.sessions[at].done, self.sessions[at].refused) = (true, true);
                let hint = refusal.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                return Err(Failure::Refused(format!("{environment}: {}{hint}", refusal.reason)));
            }
            FromProbe::Control(control) => {
                if let Some(row) = self.row(context, at, control.activity) {
                    context.emit(Event::Controlled { row, control })?;
                }
            }
            FromProbe::Tick(tick) => {
                if let Some(row) = self.row(context, at, tick.activity) {
                    let p99_ns = p99(&tick);
                    self.reached.insert(row, tick.at_ns);
                    self.sessions[at].ticked(tick.at_ns);
                    context.emit(Event::Ticked(Ticked::of(row, tick, p99_ns)))?;
                }
            }
            FromProbe::Outlier(outlier) => {
                if let Some(row) = self.row(context, at, outlier.activity) {
                    context.emit(Event::Outlier { row, outlier })?;
                }
            }
            FromProbe::Injected(injected) => {
                let outside = outside(context, &environment, &injected.cpus);
                let here = !context.resolved.environments[&environment].kind.numbers_cpus();
                if here && injected.kind == "block" {
                    self.blocks = self.blocks.saturating_sub(1);
                }
                context.emit(Event::Injected { environment, outside, injected })?;
            }
            // The line has taken these.
            FromProbe::Answer(_) | FromProbe::Output(_) | FromProbe::Exited(_) => {}
            FromProbe::Note(note) => context.emit(Event::Noted { environment: Some(environment), note })?,
            FromProbe::Done(done) => {
                self.sessions[at].done = true;
                self.done(context, at, &done)?;
            }
        }
        Ok(())
    }

    fn done(&mut self, context: &mut Context<'_>, at: usize, done: &Done) -> Result<(), Failure> {
        for (activity, rounds) in &done.load_rounds {
            let text = format!("the load of activity {activity} did {rounds} rounds");
            let environment = Some(self.sessions[at].name.clone());
            context.emit(Event::Noted { environment, note: Note::info(text) })?;
        }
        if self.sessions[at].measures {
            for note in self.sessions[at].running.measured() {
                let environment = Some(self.sessions[at].name.clone());
                context.emit(Event::Noted { environment, note })?;
            }
        }
        let seconds = tactus_model::Nanos(done.measured_ns).seconds();
        let (status, reason) = match done.end {
            End::Complete => (RowStatus::Measured, None),
            End::Stopped if context.interrupt.asked() => {
                (RowStatus::Measured, Some(format!("{INTERRUPTED}{seconds:.1} s")))
            }
            End::Stopped => (RowStatus::Measured, Some(format!("{STOPPED}{seconds:.1} s"))),
            End::Break => (RowStatus::Measured, done.reason.clone()),
            End::Failed => (RowStatus::Failed, done.reason.clone()),
        };
        self.finish(context, at, status, reason.as_ref(), Some(done.measured_ns));
        Ok(())
    }

    /// Notes how the rows of a session ended; the first word counts.
    fn finish(
        &mut self,
        context: &Context<'_>,
        at: usize,
        status: RowStatus,
        reason: Option<&String>,
        measured_ns: Option<u64>,
    ) {
        for row in self.rows.clone() {
            if context.resolved.rows[row].result.environment == self.sessions[at].name {
                self.outcome.entry(row).or_insert_with(|| Outcome {
                    status,
                    reason: reason.cloned(),
                    measured_ns,
                });
            }
        }
    }

    /// Tells how every row ended that has an outcome.
    fn end(&mut self, context: &mut Context<'_>) -> Result<(), RunError> {
        for (row, outcome) in std::mem::take(&mut self.outcome) {
            let Outcome { status, reason, measured_ns } = outcome;
            let measured_ns = measured_ns.or_else(|| self.reached.get(&row).copied()).unwrap_or(0);
            context.emit(Event::RowFinished { row, status, reason, measured_ns })?;
        }
        Ok(())
    }

    /// Ends every row; those without an outcome of their own end with this one.
    fn end_all(
        &mut self,
        context: &mut Context<'_>,
        status: RowStatus,
        reason: &str,
    ) -> Result<(), RunError> {
        for row in self.rows.clone() {
            let reason = Some(reason.to_owned());
            self.outcome.entry(row).or_insert(Outcome { status, reason, measured_ns: None });
        }
        self.end(context)
    }

    /// The row of an activity of a session.
    fn row(&self, context: &Context<'_>, at: usize, activity: u32) -> Option<usize> {
        let name = &self.sessions.get(at)?.name;
        self.rows.clone().find(|row| {
            let planned = &context.resolved.rows[*row];
            planned.activity == activity && planned.result.environment == *name
        })
    }
}

/// What is to be done to the virtual CPUs of an environment.
fn holds<'a>(planned: &'a ResolvedScenario, name: &'a str) -> impl Iterator<Item = Hold> + 'a {
    planned.activities.iter().filter(move |at| at.environment == name).filter_map(|at| {
        match &at.activity.what {
            What::Fault(Fault::HoldVcpu(table)) => {
                Some(Hold { activity: at.activity.id, cpus: at.activity.cpus.clone(), table: table.clone() })
            }
            _ => None,
        }
    })
}

/// CPUs of the machine that CPUs of an environment run on.
fn outside(context: &Context<'_>, environment: &str, cpus: &CpuSet) -> CpuSet {
    let laid_out = context.resolved.environments[environment].laid_out();
    laid_out.iter().filter(|(inside, _)| cpus.contains(*inside)).map(|(_, outside)| *outside).collect()
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

/// What proves the instrument of a probe.
fn control(planned: &ControlBy, measures: bool, emulated: bool) -> ControlBy {
    match planned {
        _ if !measures => ControlBy::Nothing,
        ControlBy::Fault(fault) if emulated => ControlBy::Fault(fault.emulated()),
        planned => planned.clone(),
    }
}

/// The 99th percentile of one tick, in ns; never above the tick's exact maximum.
fn p99(tick: &Tick) -> Option<u64> {
    let mut counts = histogram();
    tick.counts.add_to(&mut counts).ok()?;
    (!counts.is_empty()).then(|| counts.value_at_quantile(0.99).min(tick.now.max_ns))
}
