//! Resolves a plan on this machine. A row that the machine cannot measure stays, with the reason.

mod order;
mod place;
mod refusal;
mod scenario;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use tactus_environment::{self as environment, Usable, network};
use tactus_model::CpuSet;
use tactus_model::plan::{self, MOST_MEASURED, NetworkPath, Plan};
use tactus_model::size::Cache;
use tactus_model::topology::Topology;
use tactus_system::System;

pub(crate) use order::Lot;
pub(crate) use scenario::threads;

use super::filter::chosen;
use super::resolved::{Choices, Resolved, ResolvedEnvironment, RowPlan, measured_in};
use super::serialize::written;
use super::{PlanError, Source, separation};
use crate::log;

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
    let paths = plan.path.iter().map(|(name, path)| (name.clone(), obstacle(name, path, system))).collect();
    let mut resolver = Resolver { paths, ..Resolver::new(plan, source, choices, machine, system) };
    let used: BTreeSet<&str> =
        chosen.iter().flat_map(|(_, scenario)| scenario::names(plan, scenario)).collect();
    let around = used.iter().filter_map(|name| plan.environment.get(*name)?.inside.as_deref());
    for name in around.chain(used.iter().copied()) {
        let environment = resolver.environment(name)?;
        resolver.environments.insert(name.to_owned(), environment);
    }
    let seed = plan.seed.unwrap_or(choices.seed);
    let parts = resolver.all_parts(&chosen);
    let mut scenarios = Vec::new();
    for (which, repeat, slice) in order::of(&parts, seed) {
        let (at, scenario) = chosen[which];
        scenarios.push(resolver.scenario(at, scenario, repeat, slice)?);
        if resolver.rows.len() > MOST_MEASURED {
            return Err(source.error(
                "scenario",
                format!(
                    "the plan has more than {MOST_MEASURED} measurements; each run and slice of a scenario \
                        counts"
                ),
                "use fewer repeats (`repeat`), longer slices (`interleave`), or several plans",
            ));
        }
    }
    let Resolver { mut environments, rows, .. } = resolver;
    if !choices.require.is_empty() && rows.iter().all(|row| row.result.require.is_none()) {
        return Err(nothing_to_require(source));
    }
    let mut measured = CpuSet::default();
    let activities: Vec<_> = scenarios.iter().flat_map(|scenario| &scenario.activities).cloned().collect();
    let measuring: Vec<CpuSet> =
        environments.keys().map(|name| measured_in(name, &activities, &environments)).collect();
    for (environment, inside) in environments.values_mut().zip(measuring) {
        let rest = environment.layout.inside().minus(&inside);
        environment.housekeeping = if rest.is_empty() { environment.layout.inside() } else { rest };
        let laid = environment.laid_out();
        let outside = laid.iter().filter(|(cpu, _)| inside.contains(*cpu)).map(|(_, out)| *out);
        measured = measured.or(&outside.collect());
    }
    let mut plan = written(plan, &scenarios, &environments);
    plan.seed = scenarios.iter().any(|one| one.repeat.is_some() || one.slice.is_some()).then_some(seed);
    let resolved = Resolved { plan, environments, scenarios, rows, measured };
    log::resolved(&resolved);
    Ok(resolved)
}

/// Limits were asked for, and nothing that is measured has what they limit.
fn nothing_to_require(source: &Source) -> PlanError {
    let hint = "limits like --max are on latencies; values have bounds in a plan: \
                `require = { values = { \"system call\" = \"1us\" } }`";
    PlanError {
        file: source.file.clone(),
        line: None,
        key: None,
        message: "limits are given, but no measurement has a latency".into(),
        hint: Some(hint.into()),
    }
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
            tracing::info!(others = others.join(" "), "{word} is chosen, the first kind that is usable here");
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
    let resolver = Resolver::new(plan, source, choices, machine, system);
    separation::expand(plan, machine, choices.seed, |name| resolver.environment(name))
}

/// Why a path cannot be made here.
fn obstacle(name: &str, path: &NetworkPath, system: &dyn System) -> Option<String> {
    match network::usable(path, system) {
        Usable::Yes { .. } => None,
        Usable::No { reason, remedy } => Some(format!("the path {name}: {reason}; {remedy}")),
    }
}

struct Resolver<'a> {
    plan: &'a Plan,
    source: &'a Source,
    choices: &'a Choices,
    machine: &'a Topology,
    system: &'a dyn System,
    environments: BTreeMap<String, ResolvedEnvironment>,
    /// Paths, and why each cannot be made here.
    paths: BTreeMap<String, Option<String>>,
    rows: Vec<RowPlan>,
    /// The last-level cache of this machine, when it was looked for.
    cache: OnceCell<Cache>,
}

impl<'a> Resolver<'a> {
    const fn new(
        plan: &'a Plan,
        source: &'a Source,
        choices: &'a Choices,
        machine: &'a Topology,
        system: &'a dyn System,
    ) -> Self {
        Self {
            plan,
            source,
            choices,
            machine,
            system,
            environments: BTreeMap::new(),
            paths: BTreeMap::new(),
            rows: Vec::new(),
            cache: OnceCell::new(),
        }
    }
}
