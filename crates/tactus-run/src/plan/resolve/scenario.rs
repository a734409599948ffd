//! A scenario of a plan, and its rows.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::bundle::{RowResult, Slice};
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::{Spin, Timer};
use tactus_model::cpus::CpuRequest;
use tactus_model::finding::Role;
use tactus_model::message::{Activity, Note, Peer, What};
use tactus_model::outcome::{Outcome, Yields};
use tactus_model::plan::{self, Plan, Scenario};
use tactus_model::scheduling::Policy;
use tactus_model::series::Thread;
use tactus_model::topology::CpuRequestError;
use tactus_model::{CpuSet, Nanos};

use super::Resolver;
use super::order::Parts;
use crate::plan::resolved::{ResolvedActivity, ResolvedEnvironment, ResolvedScenario, RowPlan};
use crate::plan::results::beyond_the_period;
use crate::plan::{PlanError, card, state};

const DEFAULT_DURATION: Nanos = Nanos::from_secs(600);
/// Most slices of a scenario: the most pairs that are judged together.
const MOST_SLICES: u64 = 1000;
/// The shortest turn of scenarios that take turns by default, in ns.
const SHORTEST_TURN_NS: u64 = 1_000_000_000;
/// Fewer turns decide nothing: three quantities of three environments need nine pairs.
const LEAST_TURNS: u64 = 9;
/// More turns decide little more, and each has a start and an end.
const MOST_TURNS: u64 = 30;
/// How long the machine is left alone before a repeat, in ns: effects of the former state last for a while.
const REST_NS: u64 = 1_000_000_000;
const DEFAULT_INTERVAL: Nanos = Nanos::from_us(200);
const DEFAULT_PRIORITY: u32 = 95;
/// Reports per scenario that a short one is cut into, so that its spread over time can be judged.
const TICKS_OF_A_SHORT_SCENARIO: u64 = 20;
const SHORTEST_TICK_NS: u64 = 100_000_000;
const LONGEST_TICK_NS: u64 = 1_000_000_000;

/// The environments that a scenario needs up.
pub(super) fn names<'s>(plan: &'s Plan, scenario: &'s Scenario) -> Vec<&'s str> {
    let shorthand = scenario.environment.as_ref().or(plan.defaults.environment.as_ref());
    let placed = scenario.load.iter().filter_map(|l| l.environment.as_ref());
    let faults = scenario.fault.iter().filter_map(|f| f.environment.as_ref());
    let full = scenario.activity.iter().flat_map(|a| [Some(&a.environment), a.to.as_ref(), a.from.as_ref()]);
    let full = full.flatten();
    let shorthand = shorthand.filter(|_| scenario.activity.is_empty());
    let all = shorthand.into_iter().chain(placed).chain(faults).chain(full);
    all.chain(&scenario.idle).map(String::as_str).collect()
}

impl Resolver<'_> {
    /// The value of a scenario key. The command line has been applied before; then come `[quick]` if asked for, the
    /// scenario, `[defaults]`.
    pub(super) fn value<T>(&self, scenario: &Scenario, key: impl Fn(&Scenario) -> Option<T>) -> Option<T> {
        let quick = self.choices.quick.then(|| key(&self.plan.quick)).flatten();
        quick.or_else(|| key(scenario)).or_else(|| key(&self.plan.defaults))
    }

    /// A scenario of a separation.
    fn separated<'s>(&self, scenario: &'s Scenario) -> Option<&'s String> {
        let separation =
            self.plan.separation.iter().flat_map(|own| {
                own.rest.iter().chain(own.disturbed.iter().map(|disturbed| &disturbed.scenario))
            });
        let mut names = separation.into_iter();
        scenario.name.as_ref().filter(|name| names.any(|own| own == *name))
    }

    /// How many runs are made of a scenario. Those of a separation have their own order.
    fn repeats(&self, scenario: &Scenario) -> u32 {
        if self.separated(scenario).is_some() {
            return 1;
        }
        self.choices.repeat.or_else(|| self.value(scenario, |s| s.repeat)).unwrap_or(1).max(1)
    }

    /// In how many parts a scenario is measured.
    pub(super) fn parts(&self, scenario: &Scenario) -> Parts {
        let asked = self.choices.interleave.or_else(|| self.value(scenario, |s| s.interleave));
        let slice = asked.filter(|slice| slice.0 > 0 && self.can_be_sliced(scenario));
        let slices = slice.map_or(1, |slice| {
            let whole = self.duration(scenario).0;
            (whole.saturating_add(slice.0 / 2) / slice.0).clamp(1, MOST_SLICES)
        });
        Parts { repeats: self.repeats(scenario), slices: u32::try_from(slices).unwrap_or(1), place: 0 }
    }

    /// The parts of all chosen scenarios. Of scenarios that take turns, those in one environment are measured in
    /// rounds: it stays up, and no other environment is idle beside them.
    pub(super) fn all_parts(&self, chosen: &[(usize, &Scenario)]) -> Vec<Parts> {
        let own = |scenario: &Scenario| self.parts(scenario);
        let mut parts: Vec<Parts> = chosen.iter().map(|(_, scenario)| own(scenario)).collect();
        if !self.choices.in_turn {
            return parts;
        }
        // Emulated guests show nothing about hardware, and slices of them start slowly.
        let can = |own: &ResolvedEnvironment| own.obstacle.is_none() && !own.emulated;
        let usable: BTreeSet<&str> =
            self.environments.iter().filter(|(_, own)| can(own)).map(|(name, _)| name.as_str()).collect();
        let mut groups: BTreeMap<(BTreeSet<&str>, Nanos), Vec<usize>> = BTreeMap::new();
        for (at, (_, scenario)) in chosen.iter().enumerate() {
            let names: BTreeSet<&str> = names(self.plan, scenario).into_iter().collect();
            if parts[at].all() == 1 && self.can_be_sliced(scenario) && names.is_subset(&usable) {
                groups.entry((names, self.duration(scenario))).or_default().push(at);
            }
        }
        for ((_, duration), group) in groups {
            let slices = duration.0 / SHORTEST_TURN_NS;
            if group.len() < 2 || slices < LEAST_TURNS {
                continue;
            }
            for at in &group {
                parts[*at].slices = u32::try_from(slices.min(MOST_TURNS)).unwrap_or(1);
                parts[*at].place = group[0];
            }
        }
        parts
    }

    /// Whether its slices can be added up: those of latencies can. Values are medians, a separation has a fixed
    /// order, and counts of exits, cards and caches belong to one time only.
    fn can_be_sliced(&self, scenario: &Scenario) -> bool {
        let shorthand = || self.value(scenario, |s| s.measurement.clone());
        let measures: Vec<Measure> = match scenario.activity.is_empty() {
            true => shorthand().into_iter().collect(),
            false => scenario.activity.iter().filter_map(|activity| activity.measure.clone()).collect(),
        };
        let adds_up = |of: &Measure| of.yields() == Yields::Latency && !matches!(of, Measure::Interrupt(_));
        self.separated(scenario).is_none()
            && measures.iter().all(adds_up)
            && self.value(scenario, |s| s.partition).is_none()
            && !self.value(scenario, |s| s.kvm_exits).unwrap_or(false)
            && scenario.skip.is_none()
    }

    /// How long all of it measures.
    fn duration(&self, scenario: &Scenario) -> Nanos {
        let separation = self.plan.separation.as_ref();
        let name = scenario.name.as_deref().unwrap_or_default();
        let disturbed = separation.filter(|of| self.choices.quick && of.disturbance(name).is_some());
        self.choices
            .duration
            .or_else(|| disturbed?.quick)
            .or_else(|| self.value(scenario, |s| s.duration))
            .unwrap_or(DEFAULT_DURATION)
    }

    /// A scenario, or one of several runs of it, or one of several slices of that.
    pub(super) fn scenario(
        &mut self,
        at: usize,
        scenario: &Scenario,
        repeat: Option<(u32, u32)>,
        slice: Option<(u32, u32)>,
    ) -> Result<ResolvedScenario, PlanError> {
        let path = format!("scenario[{at}]");
        let name = scenario.name.clone().unwrap_or_default();
        let separation = self.plan.separation.as_ref();
        let duration = self.duration(scenario);
        let tick = self.value(scenario, |s| s.tick).map_or_else(
            || (duration.0 / TICKS_OF_A_SHORT_SCENARIO).clamp(SHORTEST_TICK_NS, LONGEST_TICK_NS),
            |tick| tick.0,
        );
        let lock_in = separation.and_then(|separation| separation.lock_in(&name));
        let slice = slice.map(|(number, of)| Slice { number, of, whole_ns: duration.0, tick_ns: tick });
        let mut resolved = ResolvedScenario {
            name,
            lock_in,
            repeat,
            slice,
            // Before a slice nothing runs in the 0.1 s of its preparation and self-test.
            settle_ns: if slice.is_none() && (repeat.is_some() || !self.plan.proof.is_empty()) {
                REST_NS
            } else {
                0
            },
            duration_ns: slice.map_or(duration.0, |slice| duration.0 / u64::from(slice.of)),
            tick_ns: tick,
            restart: self.choices.restart.or_else(|| self.value(scenario, |s| s.restart)).unwrap_or(0),
            dead_after: self.value(scenario, |s| s.dead_after),
            control: self.value(scenario, |s| s.control.clone()).unwrap_or_default(),
            no_side_effects: self.choices.no_side_effects
                || self.value(scenario, |s| s.no_side_effects).unwrap_or(false),
            cache_misses: self.value(scenario, |s| s.cache_misses).or_else(|| self.shows_caches_of(scenario)),
            kvm_exits: self.value(scenario, |s| s.kvm_exits).unwrap_or(false),
            blame_above: self.value(scenario, |s| s.blame_above.or(s.stop_above)).map(|above| above.0),
            partition: self.value(scenario, |s| s.partition),
            require: self.value(scenario, |s| s.require.clone()),
            skip: scenario.skip.clone().or_else(|| self.obstacle(scenario)),
            idle: scenario.idle.clone(),
            host: self.host(scenario),
            kept: false,
            reduced: Vec::new(),
            activities: Vec::new(),
            settings: scenario.settings.clone(),
            rows: self.rows.len()..self.rows.len(),
        };
        let written =
            if scenario.activity.is_empty() { self.expand(scenario) } else { scenario.activity.clone() };
        for (number, activity) in (0..).zip(&written) {
            self.activity(&path, number, activity, scenario, &mut resolved)?;
        }
        // An option of the command line applies to every scenario whose activities can all record it.
        if let Some(above) = self.choices.blame_above.or(self.choices.stop_above)
            && written.iter().all(|activity| self.has_system(activity))
        {
            resolved.blame_above = Some(above.0);
        }
        self.add_rows(scenario, &mut resolved);
        Ok(resolved)
    }

    /// Whether an operating system is where an activity is.
    fn has_system(&self, activity: &plan::Activity) -> bool {
        self.environments.get(&activity.environment).is_none_or(|environment| environment.kind.has_system())
    }

    /// A measurement that ends with the first latency above what is asked for, where it can.
    fn stopped(&self, measure: &Measure, scenario: &Scenario) -> Measure {
        let mut measure = measure.clone();
        let (Measure::Timer(Timer { break_at, .. }) | Measure::Spin(Spin { break_at, .. })) = &mut measure
        else {
            return measure;
        };
        let of_plan = || break_at.or_else(|| self.value(scenario, |s| s.stop_above));
        *break_at = self.choices.stop_above.or_else(of_plan);
        measure
    }

    /// An obstacle to the whole scenario on this machine: the state of the machine, or one of the environments that
    /// are left alone in it.
    fn obstacle(&self, scenario: &Scenario) -> Option<String> {
        let state = |host: String| {
            state::obstacle(&host, self.plan, self.choices.state.as_ref(), &self.machine.measuring())
        };
        let idle = || scenario.idle.iter().find_map(|name| self.environments.get(name)?.obstacle.clone());
        self.host(scenario).and_then(state).or_else(idle)
    }

    /// `true` where a page shows how a scenario uses the caches.
    fn shows_caches_of(&self, scenario: &Scenario) -> Option<bool> {
        let name = scenario.name.as_ref()?;
        let shows =
            |page: &plan::Page| page.show.contains(&plan::Shown::Caches) && page.scenarios.contains(name);
        self.plan.page.iter().any(shows).then_some(true)
    }

    /// The state of the machine that a scenario is for.
    pub(super) fn host(&self, scenario: &Scenario) -> Option<String> {
        scenario.host.clone().or_else(|| self.plan.defaults.host.clone())
    }

    /// The shorthand as a list of activities.
    pub(super) fn expand(&self, scenario: &Scenario) -> Vec<plan::Activity> {
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

    /// CPUs of this machine on which virtual CPUs of a scenario's environments run.
    fn guests(&self, scenario: &Scenario) -> CpuSet {
        let places = names(self.plan, scenario).into_iter().filter_map(|name| self.environments.get(name));
        let guests = places.filter(|place| place.kind.numbers_cpus());
        guests.flat_map(ResolvedEnvironment::laid_out).map(|(_, outside)| *outside).collect()
    }

    pub(super) fn activity(
        &self,
        path: &str,
        number: u32,
        activity: &plan::Activity,
        scenario: &Scenario,
        resolved: &mut ResolvedScenario,
    ) -> Result<(), PlanError> {
        let Some(environment) = self.environments.get(&activity.environment) else { return Ok(()) };
        let at = format!("{path}.activity[{number}]");
        let what = if let Some(measure) = &activity.measure {
            let asked = self.choices.interval;
            let interval = asked
                .or(activity.interval)
                .or_else(|| self.value(scenario, |s| s.interval))
                .unwrap_or(DEFAULT_INTERVAL);
            let table = if scenario.activity.is_empty() {
                format!("{path}.measurement")
            } else {
                format!("{at}.measure")
            };
            What::Measure {
                measure: self.sized(self.stopped(measure, scenario), environment, &table)?,
                interval_ns: interval.0,
                priority: activity
                    .priority
                    .or_else(|| self.value(scenario, |s| s.priority))
                    .unwrap_or(DEFAULT_PRIORITY),
                policy: activity.policy.or_else(|| self.value(scenario, |s| s.policy)).unwrap_or(
                    match measure.yields() {
                        // Its thread reads; the program's own is the program's.
                        Yields::Latency if measure.only_reads() => Policy::Other,
                        Yields::Latency => Policy::Fifo,
                        // A service is measured as an ordinary program would use it.
                        Yields::Values => Policy::Other,
                    },
                ),
            }
        } else if let Some(load) = &activity.load {
            What::Load(load.clone())
        } else if let Some(fault) = &activity.fault {
            What::Fault(fault.clone())
        } else {
            return Ok(());
        };
        self.can(path, number, activity, &what, resolved)?;
        card::check(self.plan, activity, &resolved.activities, &at, self.source)?;
        // Loads run everywhere unless told otherwise; measurements and faults where it is measured.
        let asked = activity.cpus.clone().unwrap_or(match what {
            What::Load(_) => CpuRequest::All,
            What::Measure { .. } | What::Fault(_) => CpuRequest::Auto,
        });
        let place = self.inside(environment);
        // Of others their own layout says which CPUs they have.
        let is_machine = environment.kind.role() == Role::Host && place.cpuset.is_some();
        let cpus = match place.resolve(&asked) {
            Ok(cpus) => cpus,
            // A study may ask for more than a machine has; CPUs that a plan names must exist.
            Err(error) if matches!(asked, CpuRequest::List(_) | CpuRequest::Not(_)) => {
                let hint = match &error {
                    CpuRequestError::NotAllowed { .. } if is_machine => error.hint(),
                    _ => format!("use CPUs of `{}`: {}", activity.environment, environment.layout.inside()),
                };
                let at = format!("{path}.activity[{number}].cpus");
                return Err(self.source.error(&at, format!("in `{}`: {error}", activity.environment), hint));
            }
            Err(error) => {
                let hint = match &error {
                    CpuRequestError::NotAllowed { .. } if is_machine => format!("; {}", error.hint()),
                    _ => String::new(),
                };
                resolved.skip.get_or_insert(format!("in `{}`: {error}{hint}", activity.environment));
                CpuSet::default()
            }
        };
        if asked == CpuRequest::Neighbour && !cpus.is_empty() && place.measuring().and(&cpus).is_empty() {
            resolved.reduced.push(format!(
                "reduced: `{}` has no second CPU to measure on; the neighbour is CPU {cpus}, which is also a \
                    housekeeping CPU",
                activity.environment
            ));
        }
        let spared = place.out_of_reach();
        let by_itself = matches!(asked, CpuRequest::Auto | CpuRequest::First);
        if by_itself
            && matches!(what, What::Measure { .. })
            && is_machine
            && !spared.is_empty()
            && cpus.and(&place.isolated).is_empty()
        {
            let why = place.not_allowed(spared.clone());
            resolved.reduced.push(format!(
                "reduced: it is measured on CPU {cpus}, which is not isolated. CPUs {spared} are isolated, \
                 but may not be used from here: {}",
                why.hint()
            ));
        }
        let far = || activity.to.as_ref().and_then(|to| self.environments.get(to));
        let cpus = match (&activity.measure, far()) {
            (Some(Measure::Interrupt(table)), Some(guest)) => {
                if let Some(obstacle) =
                    guest.kind.obstacle_to_answer(table.answer(), &guest.spec, self.system)
                {
                    resolved.skip.get_or_insert(obstacle);
                }
                let auto = asked == CpuRequest::Auto;
                card::cpu(&cpus, auto, environment, guest, &self.guests(scenario)).unwrap_or_else(|| {
                    let guest = activity.to.as_deref().unwrap_or_default();
                    let why = format!("the card needs a CPU besides those of `{guest}`, but no CPU is left");
                    resolved.skip.get_or_insert(why);
                    cpus
                })
            }
            // The handler of a device is one thread: on the first of those that are to be measured.
            (Some(Measure::Interrupt(table)), None) if table.card.is_some() => match asked {
                CpuRequest::List(_) => cpus,
                _ => cpus.take(1),
            },
            _ => cpus,
        };
        let far = activity.to.iter().chain(&activity.from).filter_map(|name| self.environments.get(name));
        for obstacle in std::iter::once(environment).chain(far).filter_map(|place| place.obstacle.as_ref()) {
            resolved.skip.get_or_insert(obstacle.clone());
        }
        if let Some(obstacle) = activity.path.as_ref().and_then(|path| self.paths.get(path)?.clone()) {
            resolved.skip.get_or_insert(obstacle);
        }
        resolved.activities.push(ResolvedActivity {
            environment: activity.environment.clone(),
            path: activity.path.clone(),
            activity: Activity { id: number, cpus, peer: peer(activity), link: None, card: None, what },
        });
        Ok(())
    }

    pub(super) fn add_rows(&mut self, scenario: &Scenario, resolved: &mut ResolvedScenario) {
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
            let environment = &self.environments[&at.environment];
            let mut result = RowResult {
                measurement: measure.clone(),
                outcome: Outcome::empty(measure.yields()),
                interval_ns: *interval_ns,
                priority: *priority,
                policy: *policy,
                load: loads.clone(),
                fault: faults.clone(),
                reason: resolved.skip.clone(),
                planned_ns: resolved.duration_ns,
                require: match (self.choices.required(&at.environment), &resolved.require) {
                    (Some(asked), Some(plan)) => asked.before(plan).on(measure.yields()),
                    (one, other) => one.as_ref().or(other.as_ref()).and_then(|of| of.on(measure.yields())),
                },
                host: self
                    .host(scenario)
                    .or_else(|| Some(self.choices.state.as_ref()?.name.clone()))
                    .filter(|_| !self.plan.host_state.is_empty()),
                threads: threads(measure, &at.activity.cpus),
                layout: environment.laid_out().to_vec(),
                window_ns: resolved.lock_in.map(|lock_in| lock_in.window_ns),
                repeat: resolved.repeat.map(|(run, _)| run),
                slice: resolved.slice,
                notes: resolved.reduced.iter().map(Note::info).collect(),
                to: at.card_goes_to().map(str::to_owned),
                ..RowResult::unmeasured(&resolved.name, &at.environment, environment.kind.kind())
            };
            result.notes.extend(beyond_the_period(&result).map(Note::info));
            let peer = at.activity.peer.as_ref().map(|peer| peer.environment().to_owned());
            self.rows.push(RowPlan { activity: at.activity.id, peer, result });
        }
        resolved.rows = start..self.rows.len();
    }
}

/// The threads that measure latency on these CPUs; `None` if it yields values.
pub(crate) fn threads(measure: &Measure, cpus: &CpuSet) -> Option<Vec<Thread>> {
    if measure.yields() == Yields::Values {
        return None;
    }
    let each = if let Measure::Timer(timer) = measure { timer.threads() } else { 1 };
    Some(cpus.iter().flat_map(|cpu| (0..each).map(move |thread| Thread { cpu, thread })).collect())
}

/// The other end of an activity, in another environment.
fn peer(activity: &plan::Activity) -> Option<Peer> {
    let to = activity.to.clone().map(Peer::To);
    to.or_else(|| activity.from.clone().map(Peer::From))
}
