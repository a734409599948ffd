//! Settings that a scenario makes in an environment, and the promises that they are taken back.

use std::path::PathBuf;

use tactus_audit::{Intent, Subject};
use tactus_environment::profiled;
use tactus_model::change::{Change, Target};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_model::undo::{Tool, Undo};
use tactus_system::System;
use tactus_system::guardian::Promise;
use tactus_tune::transaction::task;
use tracing::info;

use super::context::Context;
use crate::plan::ResolvedScenario;
use crate::prove::changes;

/// The settings that a probe makes.
pub struct Settings {
    /// In this order: those of the profile, then those under test.
    pub changes: Vec<Change>,
    /// Whether the probe restores the former values. A virtual machine ends with its run; any other environment
    /// shares the machine's kernel, which is left as it was.
    pub restore: bool,
    /// For a probe that dies before it can.
    pub promises: Vec<Promise>,
}

/// The settings of one environment: those of its profile, and then those under test.
///
/// # Errors
/// When a profile cannot be had there, or a promise cannot be written down. Nothing is then set.
pub fn settings(
    context: &Context<'_>,
    name: &str,
    facts: &Facts,
    under_test: &[Change],
) -> Result<Settings, String> {
    let environment = &context.resolved.environments[name];
    // Another machine lives on, too.
    let elsewhere = environment.kind.elsewhere();
    let restore = !environment.kind.numbers_cpus() || elsewhere;
    // Inside another environment there is no guardian for settings: the probe alone puts them back.
    let guarded = restore && !elsewhere && environment.spec.inside.is_none();
    let profiled = profiled::of(&environment.spec, &environment.layout).map_err(|error| error.message)?;
    let mut changes = profiled.map(|profiled| profiled.changes(facts)).unwrap_or_default();
    changes.extend(under_test.iter().cloned());
    let mut promises = Vec::new();
    // The guardian cannot restore settings of another system: the probe there does that itself.
    if guarded {
        for how in changes.iter().filter_map(|change| former(change, context.system)) {
            let promise = context.guardian.promise(how);
            promises.push(
                promise
                    .map_err(|error| format!("the guardian process of tactus cannot be reached: {error}"))?,
            );
        }
    }
    for Change { check, target, now, then, .. } in &changes {
        info!(from = now, to = then, check, restore, "the probe in {name} changes {target}");
    }
    Ok(Settings { changes, restore, promises })
}

/// The settings that the scenario itself asks for, where it measures: it is measured with these or not at all. A container
/// has its host's kernel, and so its settings.
///
/// # Errors
/// Why one of them cannot be made there.
pub fn under_test(
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

/// The first of these settings that was not made, by the facts that were read afterwards. The probe only notes a
/// refused setting, and the measurement would not be the intended one. Only settings in files can be read back.
pub fn not_made<'a>(changes: &'a [Change], facts: &Facts) -> Option<&'a Change> {
    changes.iter().find(|change| {
        let Target::File { path, form } = &change.target else { return false };
        facts.text(path).is_some_and(|now| !form.same(now, &change.then))
    })
}

/// How to restore a setting of this machine, from its present value. A container's probe reports the change and the
/// former value, and is not trusted: the machine is read instead. Nothing is promised for a thread that is another
/// one here.
fn former(change: &Change, system: &dyn System) -> Option<Undo> {
    match &change.target {
        Target::File { path, form } => {
            let value = form.value(&system.text(path)?);
            Some(Undo::Write { path: PathBuf::from(path), value })
        }
        Target::Affinity(thread) => {
            let cpus = task(system, thread)?.cpus.parse().ok()?;
            Some(Undo::Tool(Tool::Affinity { thread: thread.clone(), cpus }))
        }
        Target::Scheduling(thread) => {
            let tool = Tool::Scheduling { thread: thread.clone(), was: task(system, thread)?.scheduling };
            tool.words().map(|_| Undo::Tool(tool))
        }
        Target::Kernel { .. } | Target::Module { .. } | Target::Service { .. } | Target::DropIn { .. } => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::CpuSet;
    use tactus_model::change::{Effect, Form, Thread};
    use tactus_system::Memory;

    use super::*;

    /// A machine with one thread, SCHED_OTHER on CPU 1.
    fn machine() -> Memory {
        let fields = "S 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 -5 0 1 0 4 0 0 18446744073709551615 0 0 0 0 0 0 0 \
                      2147483647 0 0 0 0 17 1 0 0 0 0 0 0 0";
        Memory::new()
            .file("/proc/16/stat", format!("16 (ktimers/1) {fields}\n"))
            .file("/proc/16/status", "Name:\tktimers/1\nCpus_allowed_list:\t1\n")
    }

    #[test]
    fn a_setting_that_the_kernel_did_not_take_is_seen_in_what_is_read_after_it() {
        let path = "/sys/kernel/mm/transparent_hugepage/enabled";
        let change = Change {
            check: "thp".into(),
            target: Target::File { path: path.into(), form: Form::Choice },
            now: Some("madvise".into()),
            then: "never".into(),
            effect: Effect::Runtime,
        };
        let read = |text: &str| {
            let mut facts = Facts::default();
            facts.keep(path, text);
            facts
        };
        let changes = [change];
        assert_eq!(not_made(&changes, &read("always madvise [never]")), None);
        assert_eq!(not_made(&changes, &read("always [madvise] never")), changes.first());
        assert_eq!(not_made(&changes, &Facts::default()), None, "what was not read is not known");
    }

    fn promised(target: Target, now: &str) -> Option<Undo> {
        let change = Change {
            check: "c".into(),
            target,
            now: Some(now.into()),
            then: "OTHER 0".into(),
            effect: Effect::Runtime,
        };
        former(&change, &machine())
    }

    #[test]
    fn what_a_thread_of_this_machine_gets_back_is_what_it_has_here_whatever_a_container_says() {
        let thread = |name: &str| Thread { tid: 16, name: name.into(), started: Some(4) };
        let own = thread("ktimers/1");
        assert_eq!(
            promised(Target::Scheduling(own.clone()), "FIFO 99"),
            Some(Undo::Tool(Tool::Scheduling { thread: own.clone(), was: "OTHER 0".into() }))
        );
        assert_eq!(
            promised(Target::Affinity(own.clone()), "0-63"),
            Some(Undo::Tool(Tool::Affinity { thread: own, cpus: CpuSet::one(1) }))
        );
        let later = Thread { started: Some(5), ..thread("ktimers/1") };
        for other in [thread("ksoftirqd/1"), Thread { tid: 17, ..thread("ktimers/1") }, later] {
            assert_eq!(promised(Target::Scheduling(other.clone()), "FIFO 99"), None, "{other:?}");
            assert_eq!(promised(Target::Affinity(other.clone()), "0"), None, "{other:?}");
        }
    }
}
