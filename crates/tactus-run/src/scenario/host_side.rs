//! Actions and observations on the machine itself while a scenario is measured: the partition of its caches, the
//! threads of virtual CPUs, and the use of its CPUs' time.

use std::time::{Duration, Instant};

use tactus_model::CpuSet;
use tactus_model::catalogue::Fault;
use tactus_model::event::Event;
use tactus_model::message::{Note, What};
use tactus_model::outcome::Yields;
use tactus_model::outcome::exits::KvmExits;
use tactus_model::own_groups::Throttles;
use tactus_model::partition::CacheUse;
use tactus_system::System;

use super::{Failure, ScenarioRun};
use crate::clock_exchange::MANY;
use crate::context::Context;
use crate::cpu_counter::Counter;
use crate::exit_counter::ExitCounter;
use crate::partition;
use crate::plan::{ResolvedActivity, ResolvedScenario};
use crate::session::Session;
use crate::vcpu_watch::{Hold, Watch};

/// How long answers of a clock are waited for.
const ANSWERS: Duration = Duration::from_secs(2);

impl ScenarioRun<'_> {
    /// Divides the machine's caches, where the scenario says so.
    pub(super) fn divide(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let Some(wanted) = self.planned.partition else { return Ok(()) };
        if self.planned.no_side_effects {
            let reason = "its `partition` changes the machine, but the system must be left as it is";
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

    pub(super) fn tell_uses(
        &mut self,
        context: &mut Context<'_>,
        uses: Vec<CacheUse>,
    ) -> Result<(), Failure> {
        self.looked = Instant::now();
        for event in partition::seen(uses) {
            context.emit(event)?;
        }
        Ok(())
    }

    /// Watches over the threads that run virtual CPUs, and begins to hold those that are to be held.
    pub(super) fn watch(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let mut unwatched = Vec::new();
        for session in &mut self.sessions {
            let holds: Vec<Hold> = holds(self.planned, &session.name).collect();
            let threads = session.running.vcpus();
            if threads.is_empty() && !holds.is_empty() {
                let why = "its virtual CPUs have no known threads that could be held";
                let hint = "`hold-vcpu` is for virtual machines that this tactus starts or attaches to";
                return Err(Failure::Refused(format!("{}: {why}; {hint}", session.name)));
            }
            if threads.is_empty() || (holds.is_empty() && !session.measures) {
                continue;
            }
            let layout = &context.resolved.environments[&session.name].layout;
            let housekeeping = context.resolved.housekeeping(context.machine);
            let (asked, blame) = (!holds.is_empty(), self.planned.blame_above.is_some());
            match Watch::start(
                context.system,
                context.guardian,
                &threads,
                layout,
                &housekeeping,
                holds,
                blame,
            ) {
                Ok(watch) => {
                    if let Some(why) = watch.blind() {
                        let words = format!(
                            "the threads on the CPUs of its virtual CPUs are not visible here: {why}"
                        );
                        unwatched.push((session.name.clone(), Note::info(words)));
                    }
                    self.watches.push((session.number, watch));
                }
                Err(why) if asked => return Err(Failure::Refused(format!("{}: {why}", session.name))),
                // Without the host's record the guest is measured all the same.
                Err(why) => {
                    let words = format!("unknown how long its virtual CPUs waited for the machine: {why}");
                    unwatched.push((session.name.clone(), Note::info(words)));
                }
            }
        }
        for (environment, note) in unwatched {
            context.emit(Event::Noted { environment: Some(environment), note })?;
        }
        Ok(())
    }

    /// Asks guests that measure for their clocks, whose virtual CPUs are watched: while nothing is measured, and `meanwhile`
    /// now and then. One that does not answer in time is not waited for.
    pub(super) fn ask_clocks(&mut self, context: &mut Context<'_>, meanwhile: bool) -> Result<(), Failure> {
        let asked: Vec<usize> = self.watches.iter().map(|(number, _)| *number).collect();
        for number in asked {
            let place = |own: &Session| own.number == number && own.measures && !own.ended;
            let Some(at) = self.sessions.iter().position(place) else { continue };
            if !self.sessions[at].has_a_clock(context.system) {
                continue;
            }
            if !self.sessions[at].ask_by_page() {
                self.sessions[at].ask(MANY);
            }
            let until = Instant::now() + ANSWERS;
            while !self.sessions[at].is_asked() && Instant::now() < until && !context.interrupt.asked() {
                self.receive(context)?;
            }
            self.sessions[at].stop_asking(meanwhile);
        }
        Ok(())
    }

    /// Counts the activity of the machine's CPUs, if values are measured and neither end can see that activity.
    pub(super) fn count(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        if self.rows_of_guests(context).next().is_none() {
            return Ok(());
        }
        let housekeeping = context.resolved.housekeeping(context.machine);
        match Counter::start(context.system, context.guardian, &housekeeping) {
            Ok(counter) => self.counter = Some(counter),
            Err(why) => {
                let words =
                    format!("unknown how the machine's CPUs spent the time of the measurement: {why}");
                self.tell(context, [Note::info(words)])?;
            }
        }
        Ok(())
    }

    /// Counts why the virtual CPUs of what is measured leave it, where the scenario asks for that.
    pub(super) fn count_exits(&mut self, context: &Context<'_>) -> Result<(), Failure> {
        if !self.planned.kvm_exits {
            return Ok(());
        }
        if self.planned.no_side_effects {
            let reason = "its `kvm_exits` makes each exit longer, but the system must be left as it is";
            return Err(Failure::Refused(reason.into()));
        }
        let housekeeping = context.resolved.housekeeping(context.machine);
        for session in self.sessions.iter_mut().filter(|session| session.measures) {
            // An environment that uses the machine's CPUs has no virtual ones.
            if !context.resolved.environments[&session.name].kind.numbers_cpus() {
                continue;
            }
            let threads = session.running.vcpus();
            let counter = ExitCounter::start(context.system, context.guardian, &threads, &housekeeping);
            self.exits.push((session.number, counter));
        }
        Ok(())
    }

    /// Tells why virtual CPUs left their guests.
    pub(super) fn tell_exits(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for (number, counter) in std::mem::take(&mut self.exits) {
            let Some(session) = self.sessions.iter().find(|session| session.number == number) else {
                continue;
            };
            let environment = session.name.clone();
            let exits = match counter.and_then(ExitCounter::finish) {
                Ok(counted) => KvmExits::Counted(counted),
                Err(why) => KvmExits::Unknowable(why),
            };
            context.emit(Event::ExitsCounted { environment, exits })?;
        }
        Ok(())
    }

    /// Reads how often quotas have stopped the threads of virtual CPUs. The probes read their own cgroups.
    pub(super) fn look_at_quotas(&mut self, context: &Context<'_>) {
        for session in self.sessions.iter_mut().filter(|session| session.measures) {
            // All of them are in the groups of one machine.
            let Some((_, thread)) = session.running.vcpus().first().copied() else { continue };
            self.throttles.push((session.number, thread, throttles(context.system, thread)));
        }
    }

    /// Tells how often quotas stopped them meanwhile.
    pub(super) fn tell_throttled(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for (number, thread, before) in std::mem::take(&mut self.throttles) {
            let Some(note) = throttles(context.system, thread).since(&before) else { continue };
            let Some(session) = self.sessions.iter().find(|session| session.number == number) else {
                continue;
            };
            context.emit(Event::Noted { environment: Some(session.name.clone()), note })?;
        }
        Ok(())
    }

    /// Tells where the time of the machine's CPUs went.
    pub(super) fn tell_cpu_time(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let Some(breakdown) = self.counter.take().and_then(Counter::finish) else { return Ok(()) };
        for row in self.rows_of_guests(context).collect::<Vec<_>>() {
            let breakdown = breakdown.clone();
            context.emit(Event::CpuTimeMeasured { row, environment: None, breakdown })?;
        }
        Ok(())
    }

    /// Rows of values in environments with a separate kernel that have no peer on this machine.
    fn rows_of_guests(&self, context: &Context<'_>) -> impl Iterator<Item = usize> {
        let resolved = context.resolved;
        let alone = |activity: u32| {
            let own = self.planned.activities.iter().find(|own| own.activity.id == activity);
            own.is_some_and(|own| own.path.is_none())
        };
        let of_a_guest = |row: &usize| {
            let planned = &resolved.rows[*row];
            planned.result.outcome.yields() == Yields::Values
                && resolved.environments[&planned.result.environment].kind.numbers_cpus()
                && resolved.environments[&planned.result.environment].elsewhere.is_none()
                && alone(planned.activity)
        };
        self.rows.clone().filter(of_a_guest).collect::<Vec<_>>().into_iter()
    }

    /// Tells how the clocks of environments run, ends the watches and tells what they saw.
    pub(super) fn tell_waits(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        // Of several starts of an environment no one clock is told: each has its own.
        let one_start = |session: &&Session| session.measures && !self.is_spliced(context, &session.name);
        let clocks: Vec<_> = (self.sessions.iter().filter(one_start))
            .filter_map(|session| Some((session.name.clone(), session.clock()?)))
            .collect();
        for (environment, clock) in clocks {
            context.emit(Event::ClockCompared { environment, clock })?;
        }
        for (number, watch) in std::mem::take(&mut self.watches) {
            let Some(session) = self.sessions.iter().find(|session| session.number == number) else {
                continue;
            };
            let environment = session.name.clone();
            let (waits, injected) = watch.finish(session.clock().as_ref());
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
}

/// How often the quotas of a thread's cgroups have stopped it.
fn throttles(system: &dyn System, thread: u32) -> Throttles {
    let table = system.text(&format!("/proc/{thread}/cgroup")).unwrap_or_default();
    Throttles::look(&table, |path| system.text(path))
}

/// The holds of an environment's virtual CPUs.
pub(super) fn holds<'a>(planned: &'a ResolvedScenario, name: &'a str) -> impl Iterator<Item = Hold> + 'a {
    planned.activities.iter().filter(move |at| at.environment == name).filter_map(|at| {
        match &at.activity.what {
            What::Fault(Fault::HoldVcpu(table)) => {
                let (activity, cpus, table) = (at.activity.id, at.activity.cpus.clone(), table.clone());
                Some(Hold { activity, cpus, table, seed: planned.lock_in.map_or(0, |lock_in| lock_in.seed) })
            }
            _ => None,
        }
    })
}

/// CPUs of the machine that CPUs of an environment run on.
pub(super) fn outside(context: &Context<'_>, environment: &str, cpus: &CpuSet) -> CpuSet {
    let laid_out = context.resolved.environments[environment].laid_out();
    laid_out.iter().filter(|(inside, _)| cpus.contains(*inside)).map(|(_, outside)| *outside).collect()
}
