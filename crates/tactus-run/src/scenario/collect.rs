//! Handling of the probes' messages, from the beginning of the measurement to its end.

use std::time::{Duration, Instant};

use tactus_model::Nanos;
use tactus_model::clock::ClockCheck;
use tactus_model::event::{Event, Ticked};
use tactus_model::latency::histogram;
use tactus_model::message::{Done, End, FromProbe, Note, Tick, ToProbe, What};
use tactus_model::outcome::{Ending, RowEnd};
use tactus_model::wire::Item;
use tactus_system::boottime_ns;

use super::host_side::outside;
use super::load_note::load_note;
use super::restart::silent_for;
use super::{Failure, POLL_INTERVAL, STOP_TIMEOUT, ScenarioRun};
use crate::allowance;
use crate::context::Context;
use crate::session::{Arrival, Session};
use crate::standstill;

/// How long a probe may be silent while it measures, beyond its ticks. Generous: an emulated guest
/// under load on a shared machine may be held up for seconds.
const SILENCE: Duration = Duration::from_secs(30);
/// How many times longer everything may take over a narrow channel: facts are 100 KB or more.
const NARROW: u32 = 5;
/// How often the use of divided caches is read.
const LOOK: Duration = Duration::from_secs(1);

impl ScenarioRun<'_> {
    /// Loads first, so that they are there when the measurement begins.
    pub(super) fn start(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for measures in [false, true] {
            // Inner environments come first: the outer one carries their messages, and is busy once it has begun.
            for at in (0..self.sessions.len()).rev() {
                if self.sessions[at].measures != measures {
                    continue;
                }
                self.go(at)?;
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

    /// Tells a probe to begin.
    pub(super) fn go(&mut self, at: usize) -> Result<(), Failure> {
        let session = &mut self.sessions[at];
        if session.measures {
            session.running.measuring();
        }
        if let Err(error) = session.go() {
            return Err(self.broken(at, &error.to_string()));
        }
        Ok(())
    }

    /// Takes in what the probes measure until all that measure are done, then ends the loads.
    pub(super) fn collect(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let mut stopping: Option<Instant> = None;
        let tick = Duration::from_nanos(self.planned.tick_ns);
        let silence = self
            .planned
            .dead_after
            .map_or(SILENCE + 5 * tick, |silence| Duration::from_nanos(silence.0).max(2 * tick));
        let planned = Duration::from_nanos(self.planned.duration_ns);
        let times = if self.is_narrow() { NARROW } else { 1 };
        loop {
            if let Some(dead) = self.dead.pop_front() {
                self.restart(context, &dead)?;
                continue;
            }
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
            if stopping.is_some_and(|since| since.elapsed() > self.patience(STOP_TIMEOUT)) {
                return Err(Failure::Scenario("it did not stop when told to, and was ended".into()));
            }
            let quiet =
                self.sessions.iter().position(|s| s.measures && open(&s) && s.heard.elapsed() > silence);
            if let Some(at) = quiet {
                if !self.waits_for(context, at, silence)? {
                    self.died(context, at, &silent_for(silence))?;
                }
                continue;
            }
            // Whatever it says meanwhile.
            let is_over = |s: &Session| {
                allowance::is_over(s.told_to_go.elapsed().saturating_sub(s.paused), planned, times)
            };
            if let Some(at) = self.sessions.iter().position(|s| s.measures && open(&s) && is_over(s)) {
                let (took, planned) =
                    (self.sessions[at].told_to_go.elapsed().as_secs(), planned.as_secs_f64());
                let why = format!(
                    "should measure for {planned} s, was still measuring after {took} s, and was ended"
                );
                return Err(self.broken(at, &why));
            }
            if self.looked.elapsed() >= LOOK
                && let Some(divided) = self.divided.as_mut().filter(|divided| divided.is_watched())
            {
                let uses = divided.uses(context.system);
                self.tell_uses(context, uses)?;
            }
            self.receive(context)?;
        }
    }

    /// A patience, longer where what is waited for passes a narrow channel.
    pub(super) fn patience(&self, usual: Duration) -> Duration {
        if self.is_narrow() { NARROW * usual } else { usual }
    }

    /// Whether what is waited for passes a narrow channel.
    fn is_narrow(&self) -> bool {
        self.sessions.iter().any(|session| session.running.budget().is_some())
    }

    /// Waits until a condition holds for every session.
    pub(super) fn await_all(
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
            self.receive(context)?;
        }
        Ok(())
    }

    /// The reason that an environment gave, with its last words.
    pub(super) fn broken(&mut self, at: usize, what: &str) -> Failure {
        let session = &mut self.sessions[at];
        let words = session.last_words();
        Failure::Scenario(format!("{} {what}: {words}", session.name))
    }

    /// Takes in what has arrived, or waits a moment.
    pub(super) fn receive(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let Ok((number, arrival)) = context.arrivals.recv_timeout(POLL_INTERVAL) else { return Ok(()) };
        // The last words of an environment that has been closed.
        let Some(at) = self.sessions.iter().position(|session| session.number == number) else {
            return Ok(());
        };
        // It was taken for dead.
        if self.sessions[at].ended {
            return Ok(());
        }
        self.sessions[at].heard = Instant::now();
        let (item, _room) = match arrival {
            Arrival::Item(item, room) => (item, room),
            Arrival::Ended => {
                self.sessions[at].ended = true;
                if !self.sessions[at].done {
                    let measures = self.sessions[at].measures;
                    let what =
                        if measures { "ended during the measurement" } else { "ended before it was told to" };
                    self.died(context, at, what)?;
                }
                return Ok(());
            }
        };
        let name = self.sessions[at].name.clone();
        let admitted = self.sessions[at].admit(item);
        match admitted.map_err(|excess| Failure::Scenario(format!("{name} {excess}")))? {
            Item::Message(message) => self.message(context, at, message),
            Item::Foreign(line) | Item::Unknown(line) => {
                self.sessions[at].keep_foreign(line);
                Ok(())
            }
            Item::Lost(frames) => {
                self.lost.add(&name, frames);
                self.tell_losses(context, false)
            }
        }
    }

    /// Tells of frames that were lost: those of a moment together, and at an end all.
    pub(super) fn tell_losses(&mut self, context: &mut Context<'_>, all: bool) -> Result<(), Failure> {
        for (environment, frames) in self.lost.due(Instant::now(), all) {
            context.emit(Event::FramesLost { environment, frames })?;
        }
        Ok(())
    }

    pub(super) fn message(
        &mut self,
        context: &mut Context<'_>,
        at: usize,
        message: FromProbe,
    ) -> Result<(), Failure> {
        let environment = self.sessions[at].name.clone();
        match message {
            FromProbe::Hello(hello) => {
                self.sessions[at].clocks.hello(boottime_ns(), hello.monotonic_ns);
                self.sessions[at].hello = Some(hello);
            }
            FromProbe::Facts { readings, last } => {
                self.sessions[at].facts.0.extend(readings.0);
                self.sessions[at].facts_complete |= last;
            }
            FromProbe::Ready => self.sessions[at].ready = true,
            FromProbe::Proven(proven) => {
                let session = &mut self.sessions[at];
                session.proven = true;
                // An environment that does not report when it was told cannot prove itself.
                session.proves &= proven.told_ns > 0;
                let mut clock = proven.clock.clone();
                // Where nothing is said to a probe, nothing follows from when it heard it, and a clock says nothing of itself.
                if session.running.hears() && !session.is_of_this_kernel(context.system) {
                    clock.add(session.clocks.proven(boottime_ns(), &proven));
                }
                self.clock_checked(context, environment, clock)?;
            }
            FromProbe::Refused(refusal) => {
                (self.sessions[at].done, self.sessions[at].refused) = (true, true);
                let hint = refusal.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                return Err(Failure::Refused(format!("{environment}: {}{hint}", refusal.reason)));
            }
            FromProbe::Trial(trial) => {
                if let Some(row) = self.row(context, at, trial.activity) {
                    context.emit(Event::Controlled { row, control: trial.control() })?;
                }
            }
            FromProbe::Tick(tick) => {
                if let Some(row) = self.row(context, at, tick.activity) {
                    let p99_ns = p99(&tick);
                    self.sessions[at].ticked(tick.at_ns);
                    let tick = self.splices.entry(row).or_default().tick(tick);
                    self.reached.insert(row, tick.at_ns);
                    self.counted(row, tick.total.cycles > 0);
                    context.emit(Event::Ticked(Ticked::of(row, tick, p99_ns)))?;
                }
            }
            FromProbe::Windows(windows) => {
                if let Some(row) = self.row(context, at, windows.activity) {
                    context.emit(Event::Windows { row, windows })?;
                }
            }
            FromProbe::Total(total) => {
                if let Some(row) = self.row(context, at, total.activity) {
                    let total = self.splices.entry(row).or_default().total(total);
                    self.reached.insert(row, total.at_ns);
                    self.counted(row, total.total.cycles > 0);
                    context.emit(Event::Counted { row, total })?;
                }
            }
            FromProbe::Outlier(outlier) => {
                if let Some(row) = self.row(context, at, outlier.activity) {
                    let outlier = self.splices.entry(row).or_default().outlier(outlier);
                    context.emit(Event::Outlier { row, outlier })?;
                }
            }
            FromProbe::Value(said) => {
                if let Some(row) = self.row(context, at, said.activity) {
                    self.counted(row, true);
                    if self.values.take(row, &said.value) {
                        context.emit(Event::ValueMeasured { row, value: said.value })?;
                    }
                }
            }
            FromProbe::Breakdown(of) => {
                if let Some(row) = self.row_of(context, of.activity) {
                    let (environment, breakdown) = (Some(environment), of.breakdown);
                    context.emit(Event::CpuTimeMeasured { row, environment, breakdown })?;
                }
            }
            FromProbe::Card(card) => {
                if let Some(row) = self.row_of(context, card.activity) {
                    context.emit(Event::CardCounted { row, counts: card.counts })?;
                }
            }
            FromProbe::Injected(mut injected) => {
                // Its counts from before its death are lost.
                if self.restarts.contains_key(&environment) {
                    injected.times = None;
                }
                let outside = outside(context, &environment, &injected.cpus);
                self.blocks.remove(&(self.sessions[at].number, injected.activity));
                context.emit(Event::Injected { environment, outside, injected })?;
            }
            // The line has taken these.
            FromProbe::Clock(_) | FromProbe::Answer(_) | FromProbe::Output(_) | FromProbe::Exited(_) => {}
            FromProbe::Note(note) => context.emit(Event::Noted { environment: Some(environment), note })?,
            FromProbe::Done(done) => {
                self.sessions[at].done = true;
                self.tell_losses(context, true)?;
                self.done(context, at, &done)?;
            }
        }
        Ok(())
    }

    /// Tells what was found of a clock, and of a hole in it.
    pub(super) fn clock_checked(
        &self,
        context: &mut Context<'_>,
        environment: String,
        clock: ClockCheck,
    ) -> Result<(), Failure> {
        if clock.jumped() {
            let text = if clock.holes.is_empty() {
                format!(
                    "CLOCK_MONOTONIC and other clocks moved apart by {} during the measurement: the system \
                     was suspended or paused, or its clock was set. No latency includes that time",
                    Nanos(clock.jump_ns)
                )
            } else {
                standstill::sentence(&clock.holes)
            };
            let hint = "do not suspend, pause or migrate the machine, or set its clock, while it measures";
            let environment = Some(environment.clone());
            context.emit(Event::Noted { environment, note: Note::obstacle(text, hint) })?;
        }
        Ok(context.emit(Event::ClockChecked { environment, clock })?)
    }

    pub(super) fn done(&mut self, context: &mut Context<'_>, at: usize, done: &Done) -> Result<(), Failure> {
        for (activity, rounds) in &done.load_rounds {
            let environment = &self.sessions[at].name;
            // Of the loads that it makes itself.
            let planned = self.activities(environment).find(|own| own.id == *activity);
            let Some(What::Load(load)) = planned.map(|own| &own.what) else { continue };
            let environment = Some(environment.clone());
            let note = load_note(load, *rounds, done.measured_ns);
            context.emit(Event::Noted { environment, note })?;
        }
        if self.sessions[at].measures {
            let clock = self.stood_still(context, at, done.jump_ns);
            self.clock_checked(context, self.sessions[at].name.clone(), clock)?;
            for mut note in self.sessions[at].running.measured() {
                // The counts belong to this measurement, and an environment may have several.
                note.text = format!("{}: {}", self.planned.name, note.text);
                let environment = Some(self.sessions[at].name.clone());
                context.emit(Event::Noted { environment, note })?;
            }
        }
        let name = self.sessions[at].name.clone();
        let own = self.rows.clone().find(|row| context.resolved.rows[*row].result.environment == name);
        let splice = own.and_then(|row| self.splices.get(&row));
        let measured_ns = splice.map_or(done.measured_ns, |splice| splice.at(done.measured_ns));
        let seconds = Nanos(measured_ns).seconds();
        let (ended, reason) = match done.end {
            End::Complete => (RowEnd::Complete, None),
            End::Stopped if context.interrupt.asked() => {
                (RowEnd::Interrupted, Some(format!("interrupted after {seconds:.1} s")))
            }
            End::Stopped => (RowEnd::Stopped, Some(format!("stopped after {seconds:.1} s"))),
            End::Break => (RowEnd::Broke, done.reason.clone()),
            End::Failed => (RowEnd::Failed, done.reason.clone()),
        };
        self.finish(context, &name, &Ending { ended, reason }, Some(measured_ns));
        Ok(())
    }
}

/// The 99th percentile of one tick, in ns; never above the tick's exact maximum.
fn p99(tick: &Tick) -> Option<u64> {
    let mut counts = histogram();
    tick.counts.add_to(&mut counts).ok()?;
    (!counts.is_empty()).then(|| counts.value_at_quantile(0.99).min(tick.now.max_ns))
}
