//! From a plan to what this machine can do of it. What it cannot do keeps its row, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::activity::{Measure, Policy, Timer};
use tactus_model::bundle::{Present, RowResult};
use tactus_model::control::ControlBy;
use tactus_model::cpus::CpuRequest;
use tactus_model::event::RowStatus;
use tactus_model::message::{Activity, What};
use tactus_model::partition::Partition;
use tactus_model::plan::{self, Plan, Scenario};
use tactus_model::topology::Topology;
use tactus_model::{CpuSet, Nanos};

use super::written::written;
use super::{PlanError, Source, inside, separation, state};
use crate::environment::{self, Environment, Layout, Usable};
use crate::system::System;

/// What the user said on the command line.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// The plan's `[quick]` values.
    pub quick: bool,
    /// A duration for every scenario.
    pub duration: Option<Nanos>,
    /// Scenarios or environments, by name; empty: all.
    pub only: Vec<String>,
    /// Leave the system as it is.
    pub no_side_effects: bool,
    /// The state that the machine is in, where the plan declares states.
    pub state: Option<Present>,
}

/// An environment on this machine.
pub struct ResolvedEnvironment {
    /// Its kind.
    pub kind: &'static (dyn Environment + Sync),
    /// The plan's table.
    pub spec: plan::Environment,
    /// Its CPUs, and those of this machine that they are in the end.
    pub layout: Layout,
    /// The machine that it lies on, where that is another one.
    pub elsewhere: Option<Topology>,
    /// Its CPUs, and those of what is around it: this machine, or the environment that it lies inside.
    pub near: Layout,
    /// CPUs inside that are not measured in any scenario.
    pub housekeeping: CpuSet,
    /// Why it cannot be used, with the remedy.
    pub obstacle: Option<String>,
}

impl ResolvedEnvironment {
    /// For each of its CPUs the one of this machine that it runs on; empty when it lies on another machine.
    #[must_use]
    pub fn laid_out(&self) -> &[(u32, u32)] {
        if self.elsewhere.is_some() { &[] } else { &self.layout.cpus }
    }
}

/// An activity and where it runs.
#[derive(Clone, Debug)]
pub struct ResolvedActivity {
    /// Name of the environment.
    pub environment: String,
    /// What the probe there is told.
    pub activity: Activity,
}

/// A scenario on this machine.
#[derive(Clone, Debug)]
pub struct ResolvedScenario {
    /// Its name.
    pub name: String,
    /// How long it measures, in ns.
    pub duration_ns: u64,
    /// How often probes report, in ns.
    pub tick_ns: u64,
    /// What proves the instrument first.
    pub control: ControlBy,
    /// Whether the system is left as it is.
    pub no_side_effects: bool,
    /// How the machine's caches are divided meanwhile.
    pub partition: Option<Partition>,
    /// Why it is not done.
    pub skip: Option<String>,
    /// The state of the machine that it is for.
    pub host: Option<String>,
    /// It is complete in the bundle that the run goes on with, and is left alone.
    pub kept: bool,
    /// What runs together.
    pub activities: Vec<ResolvedActivity>,
    /// Settings that are made where it measures, for as long as it lasts, beside those of a profile:
    /// ids of checks, with `!` before those that are taken back.
    pub settings: Vec<String>,
    /// Its measurements: indices into [`Resolved::rows`].
    pub rows: std::ops::Range<usize>,
}

/// One measurement of one scenario.
#[derive(Clone, Debug)]
pub struct RowPlan {
    /// The activity's number within its scenario.
    pub activity: u32,
    /// What the result will say, filled in as far as it is known.
    pub result: RowResult,
}

/// A plan on this machine.
pub struct Resolved {
    /// The plan with every value filled in, as the bundle keeps it.
    pub plan: Plan,
    /// Its environments, by name.
    pub environments: BTreeMap<String, ResolvedEnvironment>,
    /// Its scenarios, in order.
    pub scenarios: Vec<ResolvedScenario>,
    /// Its measurements, in order.
    pub rows: Vec<RowPlan>,
    /// Every CPU of the machine that something is measured on.
    pub measured: CpuSet,
}

impl Resolved {
    /// CPUs of an environment, as seen inside, on which any scenario measures.
    #[must_use]
    pub fn measured_in(&self, environment: &str) -> CpuSet {
        let activities: Vec<_> =
            self.scenarios.iter().flat_map(|scenario| &scenario.activities).cloned().collect();
        self.measured_by(&activities, environment)
    }

    /// The same for some activities.
    #[must_use]
    pub fn measured_by(&self, activities: &[ResolvedActivity], environment: &str) -> CpuSet {
        inside::measured_in(environment, activities, &self.environments)
    }

    /// The environments that a scenario needs up; what is around others comes before them.
    #[must_use]
    pub fn environments_of(&self, scenario: &ResolvedScenario) -> Vec<String> {
        let own: BTreeSet<&str> = scenario.activities.iter().map(|a| a.environment.as_str()).collect();
        let outer = |name: &&str| self.environments.get(*name)?.spec.inside.as_deref();
        let around: BTreeSet<&str> = own.iter().filter_map(outer).collect();
        let all: BTreeSet<&str> = own.union(&around).copied().collect();
        let (first, then): (Vec<&str>, Vec<&str>) = all.into_iter().partition(|name| outer(name).is_none());
        first.into_iter().chain(then).map(str::to_owned).collect()
    }

    /// CPUs for everything but measurements, where the environment lies.
    #[must_use]
    pub fn housekeeping_around(&self, environment: &str, machine: &Topology) -> CpuSet {
        let outer =
            self.environments.get(environment).and_then(|e| self.environments.get(e.spec.inside.as_ref()?));
        outer.map_or_else(|| machine.housekeeping(&self.measured), |outer| outer.housekeeping.clone())
    }

    /// What all scenarios will take, in ns, without start-up.
    #[must_use]
    pub fn expected_ns(&self) -> u64 {
        self.scenarios.iter().filter(|s| s.skip.is_none() && !s.kept).map(|s| s.duration_ns).sum()
    }
}

const DEFAULT_DURATION: Nanos = Nanos::from_secs(600);
const DEFAULT_INTERVAL: Nanos = Nanos::from_us(200);
const DEFAULT_PRIORITY: u32 = 95;
/// Reports per scenario that a short one is cut into, so that its spread over time can be judged.
const TICKS_OF_A_SHORT_SCENARIO: u64 = 20;
const SHORTEST_TICK_NS: u64 = 100_000_000;
const LONGEST_TICK_NS: u64 = 1_000_000_000;

/// Resolves a checked plan.
///
/// # Errors
/// A CPU that the machine does not have, a name in `--only` that the plan does not have.
pub fn resolve(
    plan: &Plan,
    source: &Source,
    choices: &Choices,
    machine: &Topology,
    system: &dyn System,
) -> Result<Resolved, PlanError> {
    let plan = &expand(plan, source, choices, machine, system)?;
    let chosen = chosen(plan, source, choices)?;
    let mut resolver =
        Resolver { plan, source, choices, machine, environments: BTreeMap::new(), rows: Vec::new() };
    let used: BTreeSet<&str> = chosen.iter().flat_map(|(_, scenario)| resolver.names(scenario)).collect();
    let around = used.iter().filter_map(|name| plan.environment.get(*name)?.inside.as_deref());
    for name in around.chain(used.iter().copied()) {
        let environment = resolver.environment(name, system)?;
        resolver.environments.insert(name.to_owned(), environment);
    }
    let mut scenarios = Vec::new();
    for (at, scenario) in chosen {
        scenarios.push(resolver.scenario(at, scenario)?);
    }
    let Resolver { mut environments, rows, .. } = resolver;
    let mut measured = CpuSet::default();
    let activities: Vec<_> = scenarios.iter().flat_map(|scenario| &scenario.activities).cloned().collect();
    let measuring: Vec<CpuSet> =
        environments.keys().map(|name| inside::measured_in(name, &activities, &environments)).collect();
    for (environment, inside) in environments.values_mut().zip(measuring) {
        let rest = environment.layout.inside().minus(&inside);
        environment.housekeeping = if rest.is_empty() { environment.layout.inside() } else { rest };
        let laid = environment.laid_out();
        let outside = laid.iter().filter(|(cpu, _)| inside.contains(*cpu)).map(|(_, out)| *out);
        measured = measured.or(&outside.collect());
    }
    let plan = written(plan, &scenarios, &environments, &rows);
    Ok(Resolved { plan, environments, scenarios, rows, measured })
}

/// The layout of a running environment, with the CPUs to measure on that the plan asks for: it gets no
/// others than it has.
fn narrowed(found: Layout, asked: &CpuRequest, running: &str) -> Result<Layout, String> {
    let inside = found.inside();
    let own = Topology {
        online: inside.clone(),
        allowed: inside.clone(),
        preferred: found.measuring.clone(),
        ..Topology::default()
    };
    match own.resolve(asked) {
        Ok(_) if *asked == CpuRequest::Auto => Ok(found),
        Ok(measuring) => Ok(Layout { measuring, ..found }),
        Err(_) => Err(format!(
            "`{running}` runs on CPUs {inside} and the plan asks for {asked}; leave out `cpus`, or name some of these"
        )),
    }
}

/// The scenarios that `--only` leaves.
fn chosen<'p>(
    plan: &'p Plan,
    source: &Source,
    choices: &Choices,
) -> Result<Vec<(usize, &'p Scenario)>, PlanError> {
    let name = |scenario: &Scenario| scenario.name.clone().unwrap_or_default();
    let known: Vec<String> = plan.scenario.iter().map(name).chain(plan.environment.keys().cloned()).collect();
    let mut only = Vec::new();
    for text in &choices.only {
        only.extend(names_in(text, &known).map_err(|stranger| PlanError {
            file: source.file.clone(),
            line: None,
            key: None,
            message: format!("--only {stranger}: no scenario or environment of this plan has that name"),
            hint: Some(format!("use one of `{}`", known.join("`, `"))),
        })?);
    }
    let wanted = |scenario: &Scenario| {
        only.is_empty()
            || only.iter().any(|only| {
                name(scenario) == *only
                    || scenario.environment.as_ref().or(plan.defaults.environment.as_ref()) == Some(only)
                    || scenario.activity.iter().any(|a| a.measure.is_some() && a.environment == *only)
            })
    };
    Ok(plan.scenario.iter().enumerate().filter(|(_, scenario)| wanted(scenario)).collect())
}

/// The names in a list with commas between them. Names may have commas of their own: the longest
/// known name counts. What is no name comes back as the error.
fn names_in(text: &str, known: &[String]) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let ends = |name: &&String| {
            rest.strip_prefix(name.as_str()).is_some_and(|r| r.is_empty() || r.trim_start().starts_with(','))
        };
        let Some(name) = known.iter().filter(ends).max_by_key(|name| name.len()) else {
            return Err(rest.split(',').next().unwrap_or(rest).trim().to_owned());
        };
        rest = rest[name.len()..].trim_start().trim_start_matches(',').trim_start();
        names.push(name.clone());
    }
    Ok(names)
}

/// The plan with one kind for each environment that has several to choose from: the first one that can be
/// used here, or the first one where none can.
fn with_kinds(plan: &Plan, system: &dyn System) -> Plan {
    let mut plan = plan.clone();
    for spec in plan.environment.values_mut() {
        let others = std::mem::take(&mut spec.or);
        let usable = |word: &&String| {
            let own = plan::Environment { kind: (*word).clone(), ..spec.clone() };
            let kind = environment::find(word);
            kind.is_some_and(|kind| matches!(kind.usable_as(&own, system), Usable::Yes { .. }))
        };
        if !others.is_empty()
            && let Some(word) = std::iter::once(&spec.kind).chain(&others).find(usable).cloned()
        {
            spec.kind = word;
        }
    }
    plan
}

/// The plan with the scenarios of its separation.
fn expand(
    plan: &Plan,
    source: &Source,
    choices: &Choices,
    machine: &Topology,
    system: &dyn System,
) -> Result<Plan, PlanError> {
    let plan = &with_kinds(plan, system);
    let resolver =
        Resolver { plan, source, choices, machine, environments: BTreeMap::new(), rows: Vec::new() };
    separation::expand(plan, machine, |name| resolver.environment(name, system))
}

struct Resolver<'a> {
    plan: &'a Plan,
    source: &'a Source,
    choices: &'a Choices,
    machine: &'a Topology,
    environments: BTreeMap<String, ResolvedEnvironment>,
    rows: Vec<RowPlan>,
}

impl<'a> Resolver<'a> {
    /// The environments that a scenario needs up.
    fn names(&self, scenario: &'a Scenario) -> Vec<&'a str> {
        let shorthand = scenario.environment.as_ref().or(self.plan.defaults.environment.as_ref());
        let placed = scenario.load.iter().filter_map(|l| l.environment.as_ref());
        let faults = scenario.fault.iter().filter_map(|f| f.environment.as_ref());
        let full = scenario.activity.iter().map(|a| &a.environment);
        let shorthand = shorthand.filter(|_| scenario.activity.is_empty());
        shorthand.into_iter().chain(placed).chain(faults).chain(full).map(String::as_str).collect()
    }

    fn environment(&self, name: &str, system: &dyn System) -> Result<ResolvedEnvironment, PlanError> {
        let key = format!("environment.{name}.cpus");
        let wrong = |message: String| self.source.error(&key, message, "use CPUs of this machine, or `auto`");
        let mut spec =
            self.plan.environment.get(name).ok_or_else(|| wrong("it is not defined".into()))?.clone();
        let kind = environment::find(&spec.kind).ok_or_else(|| wrong("its kind is unknown".into()))?;
        let asked = spec.cpus.clone().unwrap_or(CpuRequest::Auto);
        let outer = spec.inside.as_ref().map(|outer| self.environment(outer, system)).transpose()?;
        let around = outer.as_ref().map(|outer| self.inside(outer));
        let (elsewhere, unreachable) = self.elsewhere(kind, &spec, system);
        let machine = around.as_ref().or(elsewhere.as_ref()).unwrap_or(self.machine);
        inside::add_programs(self.plan, name, kind, &mut spec, system);
        let cpus = match (&asked, kind.numbers_cpus()) {
            // A machine of its own: one CPU that keeps house, and those to measure on.
            (CpuRequest::Auto, true) => {
                let measuring = machine.measuring();
                machine.housekeeping(&measuring).take(1).or(&measuring)
            }
            (CpuRequest::Auto, false) => machine.allowed.or(&machine.isolated),
            (other, _) => machine.resolve(other).map_err(|error| wrong(error.to_string()))?,
        };
        let near = kind.layout(&cpus, asked != CpuRequest::Auto, machine);
        let mut layout = outer.as_ref().map_or_else(|| near.clone(), |outer| near.through(&outer.layout));
        let usable = match kind.usable_as(&spec, system) {
            Usable::Yes { .. } => None,
            Usable::No { reason, remedy } => Some(format!("{reason}; {remedy}")),
        };
        let obstacle = if let Some(outer) = &outer {
            outer.obstacle.clone().or_else(|| inside::missing_program(kind, &spec, outer, system))
        } else if usable.is_some() {
            usable
        } else if let Some(running) = &spec.attach {
            match kind.attached(&spec, system, self.machine).map(|found| narrowed(found, &asked, running)) {
                Ok(Ok(found)) => {
                    layout = found;
                    None
                }
                Ok(Err(obstacle)) => Some(obstacle),
                Err(error) => Some(match error.hint {
                    Some(hint) => format!("{}; {hint}", error.reason),
                    None => error.reason,
                }),
            }
        } else {
            let profiled = environment::profiled::of(&spec, &layout);
            profiled.err().map(|error| format!("{}; {}", error.message, error.hint))
        };
        let obstacle = obstacle.or(unreachable);
        let near = if outer.is_some() { near } else { layout.clone() };
        Ok(ResolvedEnvironment {
            kind,
            spec,
            housekeeping: CpuSet::default(),
            layout,
            near,
            elsewhere,
            obstacle,
        })
    }

    /// The other machine that an environment lies on, if it lies on one, and why it cannot be asked for its
    /// CPUs; then it has those that the plan names.
    fn elsewhere(
        &self,
        kind: &(dyn Environment + Sync),
        spec: &plan::Environment,
        system: &dyn System,
    ) -> (Option<Topology>, Option<String>) {
        if !kind.elsewhere() {
            return (None, None);
        }
        let named = || {
            let online = match &spec.cpus {
                Some(CpuRequest::List(cpus)) => cpus.clone(),
                _ => CpuSet::one(0),
            };
            Topology { allowed: online.clone(), online, ..Topology::default() }
        };
        if spec.attach.is_some() || matches!(kind.usable_as(spec, system), Usable::No { .. }) {
            return (Some(named()), None);
        }
        match kind.topology(spec, system) {
            Ok(there) => (Some(there), None),
            Err(error) => {
                let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                (Some(named()), Some(format!("{}{hint}", error.reason)))
            }
        }
    }

    /// The value of a scenario key: what was said on the command line has been taken before; then
    /// `[quick]` if asked for, the scenario, `[defaults]`.
    fn value<T>(&self, scenario: &Scenario, key: impl Fn(&Scenario) -> Option<T>) -> Option<T> {
        let quick = self.choices.quick.then(|| key(&self.plan.quick)).flatten();
        quick.or_else(|| key(scenario)).or_else(|| key(&self.plan.defaults))
    }

    fn scenario(&mut self, at: usize, scenario: &Scenario) -> Result<ResolvedScenario, PlanError> {
        let path = format!("scenario[{at}]");
        let name = scenario.name.clone().unwrap_or_default();
        let duration = self
            .choices
            .duration
            .or_else(|| self.value(scenario, |s| s.duration))
            .unwrap_or(DEFAULT_DURATION);
        let tick = self.value(scenario, |s| s.tick).map_or_else(
            || (duration.0 / TICKS_OF_A_SHORT_SCENARIO).clamp(SHORTEST_TICK_NS, LONGEST_TICK_NS),
            |tick| tick.0,
        );
        let mut resolved = ResolvedScenario {
            name,
            duration_ns: duration.0,
            tick_ns: tick,
            control: self.value(scenario, |s| s.control.clone()).unwrap_or_default(),
            no_side_effects: self.choices.no_side_effects
                || self.value(scenario, |s| s.no_side_effects).unwrap_or(false),
            partition: self.value(scenario, |s| s.partition),
            skip: self.host(scenario).and_then(|host| {
                state::obstacle(&host, self.plan, self.choices.state.as_ref(), &self.machine.measuring())
            }),
            host: self.host(scenario),
            kept: false,
            activities: Vec::new(),
            settings: scenario.settings.clone(),
            rows: self.rows.len()..self.rows.len(),
        };
        let written =
            if scenario.activity.is_empty() { self.expand(scenario) } else { scenario.activity.clone() };
        for (number, activity) in (0..).zip(&written) {
            self.activity(&path, number, activity, scenario, &mut resolved)?;
        }
        self.add_rows(scenario, &mut resolved);
        Ok(resolved)
    }

    /// The state of the machine that a scenario is for.
    fn host(&self, scenario: &Scenario) -> Option<String> {
        scenario.host.clone().or_else(|| self.plan.defaults.host.clone())
    }

    /// The shorthand as a list of activities.
    fn expand(&self, scenario: &Scenario) -> Vec<plan::Activity> {
        let place = scenario
            .environment
            .clone()
            .or_else(|| self.plan.defaults.environment.clone())
            .unwrap_or_default();
        let measure = self
            .value(scenario, |s| s.measurement.clone())
            .unwrap_or_else(|| Measure::Timer(Timer::default()));
        let cpus = self.value(scenario, |s| s.cpus.clone());
        let measure = plan::Activity {
            measure: Some(measure),
            environment: place.clone(),
            cpus,
            ..plan::Activity::default()
        };
        let loads = scenario.load.iter().map(|load| plan::Activity {
            load: Some(load.what.clone()),
            environment: load.environment.clone().unwrap_or_else(|| place.clone()),
            cpus: load.cpus.clone(),
            ..plan::Activity::default()
        });
        let faults = scenario.fault.iter().map(|fault| plan::Activity {
            fault: Some(fault.what.clone()),
            environment: fault.environment.clone().unwrap_or_else(|| place.clone()),
            cpus: fault.cpus.clone(),
            ..plan::Activity::default()
        });
        std::iter::once(measure).chain(loads).chain(faults).collect()
    }

    fn activity(
        &self,
        path: &str,
        number: u32,
        activity: &plan::Activity,
        scenario: &Scenario,
        resolved: &mut ResolvedScenario,
    ) -> Result<(), PlanError> {
        let Some(environment) = self.environments.get(&activity.environment) else { return Ok(()) };
        let what = if let Some(measure) = &activity.measure {
            let interval = activity
                .interval
                .or_else(|| self.value(scenario, |s| s.interval))
                .unwrap_or(DEFAULT_INTERVAL);
            What::Measure {
                measure: measure.clone(),
                interval_ns: interval.0,
                priority: activity
                    .priority
                    .or_else(|| self.value(scenario, |s| s.priority))
                    .unwrap_or(DEFAULT_PRIORITY),
                policy: activity
                    .policy
                    .or_else(|| self.value(scenario, |s| s.policy))
                    .unwrap_or(Policy::Fifo),
            }
        } else if let Some(load) = &activity.load {
            What::Load(load.clone())
        } else if let Some(fault) = &activity.fault {
            What::Fault(fault.clone())
        } else {
            return Ok(());
        };
        // Loads run everywhere unless told otherwise; measurements and faults where it is measured.
        let asked = activity.cpus.clone().unwrap_or(match what {
            What::Load(_) => CpuRequest::All,
            What::Measure { .. } | What::Fault(_) => CpuRequest::Auto,
        });
        let place = self.inside(environment);
        let cpus = match place.resolve(&asked) {
            Ok(cpus) => cpus,
            // What a study asks for may exceed a machine; what a plan names must be there.
            Err(error) if matches!(asked, CpuRequest::List(_) | CpuRequest::Not(_)) => {
                return Err(self.source.error(
                    &format!("{path}.activity[{number}].cpus"),
                    format!("in `{}`: {error}", activity.environment),
                    format!("`{}` has CPUs {}", activity.environment, environment.layout.inside()),
                ));
            }
            Err(error) => {
                resolved.skip.get_or_insert(format!("in `{}`: {error}", activity.environment));
                CpuSet::default()
            }
        };
        if let Some(obstacle) = &environment.obstacle {
            resolved.skip.get_or_insert(obstacle.clone());
        }
        resolved.activities.push(ResolvedActivity {
            environment: activity.environment.clone(),
            activity: Activity { id: number, cpus, what },
        });
        Ok(())
    }

    /// The CPUs of an environment as its own small machine.
    fn inside(&self, environment: &ResolvedEnvironment) -> Topology {
        let inside = environment.layout.inside();
        let own = environment.kind.numbers_cpus();
        let machine = environment.elsewhere.as_ref().unwrap_or(self.machine);
        Topology {
            online: inside.clone(),
            isolated: if own { environment.layout.measuring.clone() } else { machine.isolated.and(&inside) },
            nohz_full: CpuSet::default(),
            cores: if own { Vec::new() } else { machine.cores.clone() },
            preferred: environment.layout.measuring.clone(),
            allowed: inside,
        }
    }

    fn add_rows(&mut self, scenario: &Scenario, resolved: &mut ResolvedScenario) {
        let table = |what: &What, at: &ResolvedActivity| {
            let mut value = match what {
                What::Load(load) => serde_json::to_value(load),
                What::Fault(fault) => serde_json::to_value(fault),
                What::Measure { .. } => return None,
            }
            .ok()?;
            let map = value.as_object_mut()?;
            map.insert("in".into(), at.environment.clone().into());
            map.insert("cpus".into(), at.activity.cpus.to_string().into());
            Some(value)
        };
        let of = |load: bool| -> Vec<serde_json::Value> {
            let kept =
                resolved.activities.iter().filter(|a| matches!(a.activity.what, What::Load(_)) == load);
            kept.filter_map(|a| table(&a.activity.what, a)).collect()
        };
        let (loads, faults) = (of(true), of(false));
        let start = self.rows.len();
        for at in &resolved.activities {
            let What::Measure { measure, interval_ns, priority, policy } = &at.activity.what else {
                continue;
            };
            let result = RowResult {
                name: resolved.name.clone(),
                environment: at.environment.clone(),
                kind: self.environments[&at.environment].kind.kind().to_owned(),
                evidence: None,
                measurement: measure.clone(),
                interval_ns: *interval_ns,
                priority: *priority,
                policy: *policy,
                load: loads.clone(),
                fault: faults.clone(),
                status: RowStatus::Skipped,
                reason: resolved.skip.clone(),
                started: None,
                planned_ns: resolved.duration_ns,
                measured_ns: 0,
                start_up_ms: None,
                series: Vec::new(),
                all: None,
                control: Vec::new(),
                notes: Vec::new(),
                frames_lost: 0,
                require: self.value(scenario, |s| s.require),
                host: self
                    .host(scenario)
                    .or_else(|| Some(self.choices.state.as_ref()?.name.clone()))
                    .filter(|_| !self.plan.host_state.is_empty()),
                layout: self.environments[&at.environment].laid_out().to_vec(),
                injected: Vec::new(),
                waits: None,
            };
            self.rows.push(RowPlan { activity: at.activity.id, result });
        }
        resolved.rows = start..self.rows.len();
    }
}
