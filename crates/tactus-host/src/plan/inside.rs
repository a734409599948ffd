//! Environments that lie inside others: whose CPUs they measure on, and which programs they need there.

use std::collections::BTreeMap;

use tactus_model::CpuSet;
use tactus_model::message::What;
use tactus_model::plan::{self, Plan};

use super::resolved::{ResolvedActivity, ResolvedEnvironment};
use crate::environment::{self, Environment, Usable};
use crate::system::System;

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

/// The option of an environment that is made of files of this machine.
const PROGRAMS: &str = "programs";

fn takes_programs(kind: &dyn Environment) -> bool {
    kind.options().iter().any(|option| option.name == PROGRAMS)
}

/// Why an environment cannot be put into one that is made of files of this machine.
pub(super) fn missing_program(
    kind: &dyn Environment,
    spec: &plan::Environment,
    outer: &ResolvedEnvironment,
    system: &dyn System,
) -> Option<String> {
    // Any other outer environment is asked when it is up.
    (takes_programs(outer.kind) && kind.programs(spec, system).is_empty()).then(|| {
        match kind.usable(system) {
            Usable::No { reason, remedy } => format!("{reason}; {remedy}"),
            Usable::Yes { .. } => format!("a {} environment cannot be put into a guest", spec.kind),
        }
    })
}

/// What lies inside an environment that is made of files of this machine needs its programs there.
pub(super) fn add_programs(
    plan: &Plan,
    name: &str,
    kind: &dyn Environment,
    spec: &mut plan::Environment,
    system: &dyn System,
) {
    if !takes_programs(kind) {
        return;
    }
    let within = plan.environment.values().filter(|inner| inner.inside.as_deref() == Some(name));
    let needed = within.filter_map(|inner| Some(environment::find(&inner.kind)?.programs(inner, system)));
    let mut needed: Vec<serde_json::Value> = needed.flatten().map(Into::into).collect();
    if needed.is_empty() {
        return;
    }
    let programs =
        spec.options.entry(PROGRAMS.to_owned()).or_insert_with(|| serde_json::Value::Array(Vec::new()));
    if let Some(programs) = programs.as_array_mut() {
        needed.retain(|program| !programs.contains(program));
        programs.append(&mut needed);
    }
}
