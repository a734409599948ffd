//! One scenario: bring its environments up, give every probe its job, collect what they measure,
//! and end them.

mod cards;
mod collect;
mod ending;
mod host_side;
mod load_note;
mod losses;
mod paths;
mod prepare;
mod restart;
mod splice;
mod start;
mod values;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use tactus_environment::StartError;
use tactus_model::CpuSet;
use tactus_model::event::Event;
use tactus_model::facts::Facts;
use tactus_model::message::{FromProbe, Note, ToProbe};
use tactus_model::outcome::{Ending, RowEnd};
use tactus_model::own_groups::Throttles;
use tactus_model::wire::Item;
use tactus_system::guardian::Promise;

use super::allowance::Before;
use super::context::{Context, RunError};
use super::cpu_counter::Counter;
use super::exit_counter::ExitCounter;
use super::partition::Divided;
use super::session::{Arrival, Session};
use super::vcpu_watch::Watch;
use crate::plan::{Resolved, ResolvedScenario};
use cards::Served;
use ending::Ended;
use losses::Losses;
use paths::Laid;
use restart::Dead;
use splice::Splice;
use values::Values;

/// How long a probe may take to end its job after it was told to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the interrupt is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Performs a scenario. Whatever goes wrong in it ends its rows with the reason.
pub(super) fn perform(
    context: &mut Context<'_>,
    number: usize,
    planned: &ResolvedScenario,
) -> Result<(), RunError> {
    let mut scenario = ScenarioRun::new(planned);
    let result = scenario.run(context, number);
    let refused = matches!(result, Err(Failure::Refused(_)));
    if refused {
        scenario.withdraw(context);
    }
    let closed = scenario.close(context, result.is_ok() || refused);
    if !matches!(result, Err(Failure::Run(_))) {
        closed?;
    }
    match result {
        Ok(()) => scenario.end(context),
        Err(Failure::Run(error)) => Err(error),
        Err(Failure::Scenario(reason)) => scenario.end_all(context, &Ending::because(RowEnd::Failed, reason)),
        // A measurement that the place does not allow was not tried: it is skipped, with the remedy.
        Err(Failure::Refused(reason)) => scenario.end_all(context, &Ending::because(RowEnd::Refused, reason)),
        Err(Failure::Interrupted) => {
            let reason = "the run was interrupted before this measurement";
            scenario.end_all(context, &Ending::because(RowEnd::Waiting, reason))
        }
    }
}

/// Why a scenario cannot continue.
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

/// The state of a scenario while it is performed.
pub(super) struct ScenarioRun<'a> {
    planned: &'a ResolvedScenario,
    rows: Range<usize>,
    sessions: Vec<Session>,
    ended: BTreeMap<usize, Ended>,
    /// The values of items of rows so far.
    values: Values,
    /// Its number in the plan.
    number: usize,
    /// Its measurements are being collected.
    collecting: bool,
    /// Environments that died and are to be started again.
    dead: VecDeque<Dead>,
    /// How often each environment was started again.
    restarts: BTreeMap<String, u32>,
    /// The reports of environments before they died.
    reported: BTreeMap<String, Before>,
    /// How far each row has come, over all starts of its environment.
    splices: BTreeMap<usize, Splice>,
    /// Until when each row was measured, in ns of measured time.
    reached: BTreeMap<usize, u64>,
    /// Rows with at least one number.
    counted: BTreeSet<usize>,
    /// Frames of environments that did not arrive.
    lost: Losses,
    /// For what a probe changes on this machine and puts back itself, if it lives; with its session's number.
    promises: Vec<(usize, Promise)>,
    /// Over the virtual CPUs of environments, by their session's number.
    watches: Vec<(usize, Watch)>,
    /// Counts the activity of the machine's CPUs while guests measure values.
    counter: Option<Counter>,
    /// Exits of the virtual CPUs of environments, by their session's number; or why they are not counted.
    exits: Vec<(usize, Result<ExitCounter, String>)>,
    /// How often the quotas of this machine's cgroups had stopped the virtual CPUs of environments, by their session's
    /// number, with one of their threads.
    throttles: Vec<(usize, u32, Throttles)>,
    /// Blocks on this machine that have not been reported as taken back: session and activity.
    blocks: BTreeSet<(usize, u32)>,
    /// The partition of the caches, while it is on.
    divided: Option<Divided<Promise>>,
    /// The network paths that are there.
    laid: Vec<Laid>,
    /// The interrupt cards that guests can take.
    served: Vec<Served>,
    /// When the caches' use was last read.
    looked: Instant,
}

impl<'a> ScenarioRun<'a> {
    /// Nothing is on yet.
    pub(super) fn new(planned: &'a ResolvedScenario) -> Self {
        Self {
            planned,
            rows: planned.rows.clone(),
            sessions: Vec::new(),
            ended: BTreeMap::new(),
            values: Values::default(),
            number: 0,
            collecting: false,
            dead: VecDeque::new(),
            restarts: BTreeMap::new(),
            reported: BTreeMap::new(),
            splices: BTreeMap::new(),
            reached: BTreeMap::new(),
            counted: BTreeSet::new(),
            lost: Losses::default(),
            promises: Vec::new(),
            watches: Vec::new(),
            counter: None,
            exits: Vec::new(),
            throttles: Vec::new(),
            blocks: BTreeSet::new(),
            divided: None,
            laid: Vec::new(),
            served: Vec::new(),
            looked: Instant::now(),
        }
    }
}

impl ScenarioRun<'_> {
    /// After a refusal: takes the job back from all other environments, so that the next scenario may use them.
    /// Messages that arrive meanwhile belong to no measurement.
    fn withdraw(&mut self, context: &Context<'_>) {
        for session in self.sessions.iter_mut().filter(|session| !session.done && !session.ended) {
            // A broken stream shows itself as an end of the stream.
            let _ = session.say(&ToProbe::Stop);
        }
        let until = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < until && self.sessions.iter().any(|session| !session.done && !session.ended) {
            let Ok((number, arrival)) = context.arrivals.recv_timeout(POLL_INTERVAL) else { continue };
            let Some(session) = self.sessions.iter_mut().find(|session| session.number == number) else {
                continue;
            };
            match arrival {
                Arrival::Item(Item::Message(FromProbe::Done(_) | FromProbe::Refused(_)), _) => {
                    session.done = true;
                }
                Arrival::Ended => session.ended = true,
                Arrival::Item(..) => {}
            }
        }
    }

    /// Ends every environment; after a scenario that left nothing behind those stay up that the next one may use.
    ///
    /// # Errors
    /// When what they say at their end cannot be told; they have been ended then.
    pub(super) fn close(&mut self, context: &mut Context<'_>, well: bool) -> Result<(), RunError> {
        let ended = |session: &Session| session.done && !session.refused;
        let all_done = self.blocks.is_empty() && self.sessions.iter().all(ended);
        let keep = well && !context.interrupt.asked();
        context.kept.append(&mut self.sessions);
        let reusable: Vec<String> =
            context.kept.iter().filter(|s| keep && s.is_reusable()).map(|s| s.name.clone()).collect();
        let closed = context.close_kept(|session| reusable.contains(&session.name));
        self.laid.clear();
        self.served.clear();
        drop(self.divided.take());
        // The last that was changed is put back first.
        for (_, promise) in self.promises.drain(..).rev() {
            // A probe that came to its end has put back what it set, or says that it could not.
            if all_done {
                promise.confirm();
            }
        }
        closed.and(context.tell_warnings(None))
    }

    /// The facts that the probe of an environment has read so far.
    pub(super) fn facts(&self, name: &str) -> Facts {
        self.sessions
            .iter()
            .find(|session| session.name == name)
            .map_or_else(Facts::default, |s| s.facts.clone())
    }

    fn run(&mut self, context: &mut Context<'_>, number: usize) -> Result<(), Failure> {
        self.number = number;
        let resolved = context.resolved;
        let names = resolved.environments_of(self.planned);
        // An environment that this scenario does not use must not disturb it.
        context.close_kept(|session| {
            names.contains(&session.name)
                && !self.is_to_be_on_a_path(&session.name)
                && !self.is_to_have_a_card(&session.name)
                && session.measured == self.measured(resolved, &session.name)
        })?;
        self.lay_paths(context)?;
        self.serve_cards(context, number)?;
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
        self.settle(context)?;
        self.watch(context)?;
        self.count(context)?;
        self.count_exits(context)?;
        self.ask_clocks(context, self.planned.blame_above.is_some())?;
        self.look_at_quotas(context);
        self.start(context)?;
        self.collecting = true;
        let collected = self.collect(context);
        self.collecting = false;
        if collected.is_ok() && !context.interrupt.asked() {
            self.ask_clocks(context, false)?;
        }
        self.tell_waits(context)?;
        self.tell_exits(context)?;
        self.tell_throttled(context)?;
        self.tell_cpu_time(context)?;
        collected?;
        if !context.interrupt.asked() {
            self.prove_again(context)?;
        }
        if let Some(divided) = self.divided.take() {
            let (after, note) = divided.take_back(context.system);
            self.tell_uses(context, vec![after])?;
            self.tell(context, note)?;
        }
        Ok(())
    }

    /// Lets what was changed come to rest, where runs are compared with each other.
    fn settle(&self, context: &Context<'_>) -> Result<(), Failure> {
        let began = Instant::now();
        let rest = Duration::from_nanos(self.planned.settle_ns);
        while let Some(left) = rest.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            if context.interrupt.asked() {
                return Err(Failure::Interrupted);
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
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

    /// CPUs inside an environment that this scenario measures, or whose interrupts a card measures.
    fn measured(&self, resolved: &Resolved, environment: &str) -> CpuSet {
        let own = resolved.measured_by(&self.planned.activities, environment);
        if self.is_to_be_interrupted(environment) {
            return own.or(&resolved.environments[environment].layout.measuring);
        }
        own
    }
}
