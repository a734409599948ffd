//! A plan, resolved on this machine.

use std::collections::{BTreeMap, BTreeSet};

use tactus_bundle::size::{PLACE_BYTES, Size, recording_bytes, row_bytes};
use tactus_environment::{Environment, Layout};
use tactus_model::bundle::{Asked, Present, RowResult, Slice};
use tactus_model::catalogue::Measure;
use tactus_model::control::ControlBy;
use tactus_model::message::{Activity, LockIn, Peer, What};
use tactus_model::partition::Partition;
use tactus_model::plan::{self, Plan, Require};
use tactus_model::topology::Topology;
use tactus_model::{CpuSet, Nanos};

use super::results::beyond_the_period;

/// The user's choices on the command line.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// The plan's `[quick]` values.
    pub quick: bool,
    /// A duration for every scenario.
    pub duration: Option<Nanos>,
    /// The time between two wake-ups, for every scenario.
    pub interval: Option<Nanos>,
    /// How often every scenario is measured.
    pub repeat: Option<u32>,
    /// How long scenarios are measured at one go.
    pub interleave: Option<Nanos>,
    /// Without `interleave` and repeats: the scenarios of each environment take turns, if they last long enough.
    pub in_turn: bool,
    /// How often an environment that died while it was measured is started again, in every scenario.
    pub restart: Option<u32>,
    /// Above which latency all are kept with who had the CPU, wherever there is a system that can tell.
    pub blame_above: Option<Nanos>,
    /// The same, and which ends the measurements of wake-ups.
    pub stop_above: Option<Nanos>,
    /// Scenarios or environments, by name; empty: all.
    pub only: Vec<String>,
    /// The command as it was typed, word by word.
    pub command: Vec<String>,
    /// Leave the system as it is.
    pub no_side_effects: bool,
    /// The requirements for environments, by name. They come before those of the plan. The empty name is for all
    /// environments without an entry.
    pub require: BTreeMap<String, Require>,
    /// The state that the machine is in, where the plan declares states.
    pub state: Option<Present>,
    /// The seed of all random choices that the plan does not fix: moments of faults, the order of repeats.
    pub seed: u64,
}

impl Choices {
    /// The same, as a bundle keeps it.
    #[must_use]
    pub fn asked(&self) -> Asked {
        Asked {
            quick: self.quick,
            duration_ns: self.duration.map(|duration| duration.0),
            interval_ns: self.interval.map(|interval| interval.0),
            repeat: self.repeat,
            interleave_ns: self.interleave.map(|interleave| interleave.0),
            in_turn: self.in_turn,
            restart: self.restart,
            blame_above_ns: self.blame_above.map(|above| above.0),
            stop_above_ns: self.stop_above.map(|above| above.0),
            only: self.only.clone(),
            command: self.command.clone(),
            no_side_effects: self.no_side_effects,
            require: self.require.clone(),
        }
    }

    /// The requirements for an environment, before those of the plan: the user's for this environment, and where
    /// these say nothing, the user's for all.
    #[must_use]
    pub fn required(&self, environment: &str) -> Option<Require> {
        match (self.require.get(environment), self.require.get("")) {
            (Some(own), Some(all)) => Some(own.before(all)),
            (one, other) => one.or(other).cloned(),
        }
    }
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
    /// Whether its processor would be emulated.
    pub emulated: bool,
    /// Why it cannot be used, with the remedy.
    pub obstacle: Option<String>,
}

impl ResolvedEnvironment {
    /// For each of its CPUs the one of this machine that it runs on; empty when it lies on another machine.
    #[must_use]
    pub fn laid_out(&self) -> &[(u32, u32)] {
        if self.elsewhere.is_some() { &[] } else { &self.layout.cpus }
    }

    /// CPUs of this machine that are gone from it as long as the environment is up.
    #[must_use]
    pub fn taken(&self) -> CpuSet {
        match self.kind.takes_cpus() && self.obstacle.is_none() {
            true => self.laid_out().iter().map(|(_, outside)| *outside).collect(),
            false => CpuSet::default(),
        }
    }
}

/// An activity and where it runs.
#[derive(Clone, Debug)]
pub struct ResolvedActivity {
    /// Name of the environment.
    pub environment: String,
    /// The activity as the probe gets it.
    pub activity: Activity,
    /// The way to its peer: a path of the plan.
    pub path: Option<String>,
}

impl ResolvedActivity {
    /// The environments that must be up for it: its own, and its peer's.
    fn environments(&self) -> impl Iterator<Item = &str> {
        let peer = self.activity.peer.as_ref().map(Peer::environment);
        std::iter::once(self.environment.as_str()).chain(peer)
    }

    /// The guest that takes its interrupt card; `None` if it has none.
    pub fn card_goes_to(&self) -> Option<&str> {
        let What::Measure { measure: Measure::Interrupt(_), .. } = &self.activity.what else { return None };
        self.activity.peer.as_ref().map(Peer::environment)
    }
}

/// A scenario on this machine.
#[derive(Clone, Debug)]
pub struct ResolvedScenario {
    /// Its name.
    pub name: String,
    /// Which run of it this is, from 1, and of how many, where there are several.
    pub repeat: Option<(u32, u32)>,
    /// Which slice of that it is, where it is measured in several.
    pub slice: Option<Slice>,
    /// How long the machine is left alone between the changes that it makes and the measurement, in ns.
    pub settle_ns: u64,
    /// How long it measures, in ns.
    pub duration_ns: u64,
    /// How often probes report, in ns.
    pub tick_ns: u64,
    /// How often each of its environments is started again that dies while it is measured.
    pub restart: u32,
    /// How long each of them may say nothing while it is measured.
    pub dead_after: Option<Nanos>,
    /// The proof of the instrument before the measurement.
    pub control: ControlBy,
    /// Whether the system is left as it is.
    pub no_side_effects: bool,
    /// Whether misses of the last-level cache are counted; `None`: the plan does not ask for them.
    pub cache_misses: Option<bool>,
    /// Whether exits of guests to KVM are counted by reason.
    pub kvm_exits: bool,
    /// Latencies above this, in ns, are kept with who had the CPU; `None`: none are.
    pub blame_above: Option<u64>,
    /// Windows and draws, where it is to be known whether its disturbance is seen when it is made.
    pub lock_in: Option<LockIn>,
    /// How the machine's caches are divided meanwhile.
    pub partition: Option<Partition>,
    /// The requirements for its results.
    pub require: Option<Require>,
    /// Why it is not done.
    pub skip: Option<String>,
    /// The state of the machine that it is for.
    pub host: Option<String>,
    /// It is complete in the resumed bundle, and is left alone.
    pub kept: bool,
    /// Resources that are smaller on this machine than in the plan, in sentences.
    pub reduced: Vec<String>,
    /// The activities that run together.
    pub activities: Vec<ResolvedActivity>,
    /// Environments that are up meanwhile and do nothing.
    pub idle: Vec<String>,
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
    /// The environment at its other end.
    pub peer: Option<String>,
    /// The result so far: it is filled in as far as it is known.
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
    /// Limits of the plan that the user should know before it is measured, a sentence each.
    #[must_use]
    pub fn cautions(&self) -> BTreeSet<String> {
        self.rows.iter().filter_map(|row| beyond_the_period(&row.result)).collect()
    }

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
        measured_in(environment, activities, &self.environments)
    }

    /// The environments that must be up for a scenario: its places, their peers, and the environments left alone. An
    /// outer environment comes before the ones inside it.
    #[must_use]
    pub fn environments_of(&self, scenario: &ResolvedScenario) -> Vec<String> {
        let active = scenario.activities.iter().flat_map(ResolvedActivity::environments);
        let own: BTreeSet<&str> = active.chain(scenario.idle.iter().map(String::as_str)).collect();
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
        outer.map_or_else(|| self.housekeeping(machine), |outer| outer.housekeeping.clone())
    }

    /// CPUs of the machine for everything but measurements: none that a partition takes.
    #[must_use]
    pub fn housekeeping(&self, machine: &Topology) -> CpuSet {
        let taken = self.environments.values().map(ResolvedEnvironment::taken);
        machine.without(&taken.fold(CpuSet::default(), |all, own| all.or(&own))).housekeeping(&self.measured)
    }

    /// The time for all scenarios, in ns, without start-up.
    #[must_use]
    pub fn expected_ns(&self) -> u64 {
        self.scenarios.iter().fold(0, |all, scenario| all.saturating_add(scenario.expected_ns()))
    }
}

impl Resolved {
    /// The size of its bundle, in bytes, and the memory for recording it; only of rows that are measured now.
    #[must_use]
    pub fn size(&self) -> Size {
        let due = || self.scenarios.iter().filter(|scenario| scenario.expected_ns() > 0);
        let disk = due().flat_map(|own| {
            self.rows[own.rows.clone()].iter().map(move |row| row_bytes(&row.result, own.tick_ns))
        });
        let places = u64::try_from(self.environments.len()).unwrap_or(u64::MAX);
        let series = |own: &ResolvedScenario| -> usize {
            self.rows[own.rows.clone()]
                .iter()
                .map(|row| row.result.threads.as_ref().map_or(0, Vec::len))
                .sum()
        };
        Size {
            disk: disk.fold(places.saturating_mul(PLACE_BYTES), u64::saturating_add),
            memory: recording_bytes(due().map(series).max().unwrap_or(0)),
        }
    }
}

impl ResolvedScenario {
    /// Whether it stands for its scenario: of several runs and slices the first.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.repeat.is_none_or(|(run, _)| run == 1) && self.slice.is_none_or(|slice| slice.number == 1)
    }

    /// How long all of its slices measure, in ns.
    #[must_use]
    pub fn whole_ns(&self) -> u64 {
        self.slice.map_or(self.duration_ns, |slice| slice.whole_ns)
    }

    /// The time for it, in ns, without start-up; 0: it is skipped, or the bundle has it.
    #[must_use]
    pub const fn expected_ns(&self) -> u64 {
        if self.skip.is_some() || self.kept {
            return 0;
        }
        self.duration_ns.saturating_add(self.settle_ns)
    }
}

/// CPUs inside `environment` that the activities measure, in it or in what lies inside it.
pub(super) fn measured_in(
    environment: &str,
    activities: &[ResolvedActivity],
    environments: &BTreeMap<String, ResolvedEnvironment>,
) -> CpuSet {
    let own = activities
        .iter()
        .filter(|a| a.environment == environment && matches!(a.activity.what, What::Measure { .. }))
        .fold(CpuSet::default(), |all, a| all.or(&a.activity.cpus));
    let within = environments.iter().filter(|(_, e)| e.spec.inside.as_deref() == Some(environment));
    within.fold(own, |all, (name, inner)| {
        let measured = measured_in(name, activities, environments);
        let cpus = inner.near.cpus.iter().filter(|(cpu, _)| measured.contains(*cpu));
        all.or(&cpus.map(|(_, around)| *around).collect())
    })
}
