//! Environments that lie inside others: which programs they need there.

use tactus_environment::{self as environment, ENVIRONMENTS, Environment, Usable};
use tactus_model::plan::{self, Plan};
use tactus_system::System;

use super::resolved::ResolvedEnvironment;

/// The option of an environment that is made of files of this machine.
const PROGRAMS: &str = "programs";

/// A running one that is attached to has its own programs.
fn takes_programs(kind: &dyn Environment, spec: &plan::Environment) -> bool {
    spec.attach.is_none() && kind.options().iter().any(|option| option.name == PROGRAMS)
}

/// Why an environment cannot be put into one that is made of files of this machine.
pub(super) fn missing_program(
    kind: &dyn Environment,
    spec: &plan::Environment,
    outer: &ResolvedEnvironment,
    system: &dyn System,
) -> Option<String> {
    // Any other outer environment is asked when it is up.
    (takes_programs(outer.kind, &outer.spec) && kind.programs(spec, system).is_empty()).then(|| {
        match kind.usable(system) {
            Usable::No { reason, remedy } => format!("{reason}; {remedy}"),
            Usable::Yes { .. } => {
                let can = ENVIRONMENTS.iter().filter(|kind| !kind.programs(spec, system).is_empty());
                let can: Vec<&str> = can.map(|kind| kind.kind()).collect();
                format!(
                    "a {} environment needs a whole system around it, but this guest consists of single \
files. Put one of the kind {} into it, or use a machine that `ssh` reaches",
                    spec.kind,
                    can.join(" or ")
                )
            }
        }
    })
}

/// An environment made of files of this machine gets the programs that environments inside it need.
pub(super) fn add_programs(
    plan: &Plan,
    name: &str,
    kind: &dyn Environment,
    spec: &mut plan::Environment,
    system: &dyn System,
) {
    if !takes_programs(kind, spec) {
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
