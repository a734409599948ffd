//! Settings that a scenario makes in an environment, and the promises that they are taken back.

use std::path::PathBuf;

use tactus_audit::{Intent, Subject};
use tactus_environment::profiled;
use tactus_model::change::{Change, Target};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_model::undo::{Tool, Undo};
use tactus_system::guardian::Promise;

use super::context::Context;
use crate::plan::ResolvedScenario;
use crate::prove::changes;

/// What a probe is told to set.
pub struct Settings {
    /// In this order.
    pub changes: Vec<Change>,
    /// Whether the probe puts the former values back. A machine of its own ends with its run; any other
    /// environment shares the machine's kernel, which is left as it was.
    pub restore: bool,
    /// For a probe that dies before it can.
    pub promises: Vec<Promise>,
}

/// The settings of one environment: those of its profile, and then the scenario's own.
///
/// # Errors
/// When a profile cannot be had there, or a promise cannot be written down. Nothing is then set.
pub fn settings(
    context: &Context<'_>,
    planned: &ResolvedScenario,
    name: &str,
    facts: &Facts,
) -> Result<Settings, String> {
    let environment = &context.resolved.environments[name];
    // Another machine lives on, too.
    let elsewhere = environment.kind.elsewhere();
    let restore = !environment.kind.numbers_cpus() || elsewhere;
    // Inside another environment there is no guardian for settings: the probe alone puts them back.
    let guarded = restore && !elsewhere && environment.spec.inside.is_none();
    let profiled = profiled::of(&environment.spec, &environment.layout).map_err(|error| error.message)?;
    let mut changes = profiled.map(|profiled| profiled.changes(facts)).unwrap_or_default();
    changes.extend(own(context, planned, name, facts)?);
    let mut promises = Vec::new();
    // What is set elsewhere is out of the guardian's reach: the probe there puts it back by itself.
    if guarded {
        for how in changes.iter().filter_map(|change| former(change, context)) {
            let promise = context.guardian.promise(how);
            promises.push(promise.map_err(|error| format!("the guardian cannot be told: {error}"))?);
        }
    }
    Ok(Settings { changes, restore, promises })
}

/// The scenario's own settings, where it measures. A container has its host's kernel, and so its
/// settings.
fn own(
    context: &Context<'_>,
    planned: &ResolvedScenario,
    name: &str,
    facts: &Facts,
) -> Result<Vec<Change>, String> {
    let measured = context.resolved.measured_in(name);
    if planned.settings.is_empty() || measured.is_empty() {
        return Ok(Vec::new());
    }
    let role = match context.resolved.environments[name].kind.role() {
        Role::Container => Role::Host,
        role => role,
    };
    let intent = Intent::measuring(facts, measured);
    let subject = Subject::new(facts, role, &intent);
    let mut all = Vec::new();
    for word in &planned.settings {
        all.extend(changes(word, &subject).map_err(|error| format!("the setting {word}: {error}"))?);
    }
    Ok(all)
}

/// How a setting of this machine is taken back, from what it is now.
fn former(change: &Change, context: &Context<'_>) -> Option<Undo> {
    match &change.target {
        Target::File { path, form } => {
            let value = form.value(&context.system.text(path)?);
            Some(Undo::Write { path: PathBuf::from(path), value })
        }
        Target::Affinity(thread) => {
            let cpus = change.now.as_deref()?.parse().ok()?;
            Some(Undo::Tool(Tool::Affinity { thread: thread.clone(), cpus }))
        }
        Target::Scheduling(thread) => {
            let tool = Tool::Scheduling { thread: thread.clone(), was: change.now.clone()? };
            tool.words().map(|_| Undo::Tool(tool))
        }
        Target::Kernel { .. } | Target::Module { .. } | Target::Service { .. } | Target::DropIn { .. } => {
            None
        }
    }
}
