//! A plan becomes what this machine can do, and is run: what `run`, `measure` and `prove` have in common.

use tactus_model::bundle::Present;
use tactus_model::event::RunStatus;
use tactus_model::plan::{OTHER_STATE, Plan};
use tactus_run::plan::{Choices, Resolved, Source, check, resolve, state};
use tactus_run::{Destination, Executed, Interrupt, Marks, Request, Sink, execute};
use tactus_system::{Real, System, cache_dir, guardian, topology};
use tactus_tune::profile;
use tempfile::TempDir;

use super::lock::Turn;
use crate::exit::{CACHE_HINT, Failure};
use crate::options;
use crate::say::say;
use crate::watching::Watching;

/// Checks and resolves a plan on this machine.
pub fn prepare(plan: &Plan, source: &Source, choices: &Choices) -> Result<Resolved, Failure> {
    for sentence in guardian::recover(&Real) {
        say(format_args!("note: {sentence}"));
    }
    // Of a plan that has no text the keys are options.
    let wrong = |error| if source.text.is_empty() { options::named(error) } else { Failure::from(error) };
    check(plan, source, &Real).map_err(wrong)?;
    let resolved = resolve(plan, source, choices, &topology(&Real), &Real).map_err(wrong)?;
    for sentence in resolved.cautions() {
        say(format_args!("note: {sentence}"));
    }
    Ok(resolved)
}

/// Runs what was prepared; `view` follows.
pub fn run(
    turn: &Turn,
    resolved: &Resolved,
    choices: &Choices,
    into: Destination<'_>,
    view: impl Sink + 'static,
) -> Result<Executed, Failure> {
    watched(turn, resolved, choices, into, view, &Watching::nobody())
}

/// The same, with those who watch it.
pub fn watched(
    turn: &Turn,
    resolved: &Resolved,
    choices: &Choices,
    into: Destination<'_>,
    view: impl Sink + 'static,
    watching: &Watching,
) -> Result<Executed, Failure> {
    let machine = topology(&Real);
    // Before any thread starts: threads that record and show the run inherit the housekeeping CPUs.
    let _house = Real.pin_to_housekeeping(&resolved.housekeeping(&machine));
    watching.serve()?;
    let interrupt = Interrupt::listen()?;
    let marks = Marks::default();
    if let Some(remark) = turn.remark() {
        marks.note(remark);
    }
    // Words that are not valid text cannot be stored in a bundle.
    let command = std::env::args_os().filter_map(|word| word.into_string().ok()).collect();
    let choices = &Choices { command, ..choices.clone() };
    let request =
        Request { resolved, choices, into, interrupt: &interrupt, marks: &marks, machine: &machine };
    let mut sinks: Vec<Box<dyn Sink>> = vec![Box::new(view)];
    sinks.extend(watching.sink(resolved));
    let screen = watching.screen(&interrupt, &marks);
    let executed = execute(&request, &Real, sinks);
    drop(screen);
    let executed = executed?;
    if executed.dropped > 0 {
        say(format_args!(
            "note: {} events came too fast to print; the bundle has them all",
            executed.dropped
        ));
    }
    Ok(executed)
}

/// A directory for a bundle that is not kept: an initramfs may have no /tmp, and then it lies in the cache.
pub fn scratch_directory() -> Result<TempDir, Failure> {
    let in_the_cache = || {
        let cache = cache_dir(&Real)?;
        Real.make_own_dir(&cache)?;
        tempfile::tempdir_in(cache)
    };
    tempfile::tempdir().or_else(|_| in_the_cache()).map_err(|error| Failure::new(error, CACHE_HINT))
}

/// The last message of an interrupted run: the state of its bundle, and of its changes.
pub fn interrupted(executed: &Executed) -> Option<String> {
    let contents = &executed.contents;
    if contents.manifest.status != RunStatus::Interrupted {
        return None;
    }
    let restored = if executed.restored {
        "everything is restored"
    } else {
        "not everything is restored: see the notes for what is left"
    };
    let made = contents.rows.iter().filter(|row| row.result.is_complete()).count();
    Some(format!(
        "interrupted: {restored}; {made} of {} measurements are complete, and what was measured is kept",
        contents.rows.len()
    ))
}

/// The state that this machine is in, where the plan declares states.
pub fn present(plan: &Plan, said: Option<&str>) -> Result<Option<Present>, Failure> {
    if plan.host_state.is_empty() {
        return Ok(None);
    }
    if let Some(said) = said
        && said != OTHER_STATE
        && !plan.host_state.contains_key(said)
    {
        let known: Vec<&str> = plan.host_state.keys().map(String::as_str).collect();
        return Err(Failure::say(
            format!("--host-state {said}: the plan has no such state"),
            format!("use {OTHER_STATE}, {}", known.join(", ")),
        ));
    }
    let mut facts = tactus_system::facts(&Real, &topology(&Real), std::process::id()).map_err(|error| {
        Failure::new(error, format!("tactus writes the probe to its cache: {CACHE_HINT}"))
    })?;
    profile::complete(&mut facts, &Real);
    Ok(Some(state::present(plan, &facts, said)))
}
