//! From a plan to a finished bundle: what `run` and `measure` have in common.

use std::path::{Path, PathBuf};

use tactus_bundle::{self as bundle, Resumed, Trust, Writer};
use tactus_model::bundle::{Asked, Contents, Machine, Present};
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::plan::{OTHER_STATE, Plan};
use tactus_run::plan::{Choices, Resolved, Source, check, resolve, state};
use tactus_run::{Interrupt, Recorder, Sink, run};
use tactus_system::guardian::{self, Guardian};
use tactus_system::{Real, System, topology};
use tactus_tune::profile;

use crate::exit::{Exit, Failure};

/// A run that has ended.
pub struct Performed {
    /// The bundle's directory.
    pub dir: PathBuf,
    /// The bundle, read back.
    pub contents: Contents,
}

/// Checks and resolves a plan on this machine.
pub fn prepare(plan: &Plan, source: &Source, choices: &Choices) -> Result<Resolved, Failure> {
    for sentence in guardian::recover(&Real) {
        eprintln!("note: {sentence}");
    }
    check(plan, source, &Real)?;
    Ok(resolve(plan, source, choices, &topology(&Real), &Real)?)
}

/// Where the results go.
pub enum Bundle<'a> {
    /// A new bundle in this directory, of this plan as the user wrote it.
    New(&'a Path, &'a Plan),
    /// On with this bundle, in this directory.
    Again(&'a Path, &'a Resumed),
}

/// Performs a resolved plan; `view` sees every event after the recorder.
pub fn perform(
    resolved: &Resolved,
    choices: &Choices,
    into: &Bundle<'_>,
    view: &mut dyn Sink,
) -> Result<Performed, Failure> {
    let interrupt = Interrupt::listen()?;
    let machine = topology(&Real);
    let results: Vec<_> = resolved.rows.iter().map(|row| row.result.clone()).collect();
    let unguarded = |error: std::io::Error| {
        Failure::new(
            error,
            "without a guardian nothing is changed: set TACTUS_CACHE_DIR to a directory that can be written",
        )
    };
    let guardian = Guardian::start(&Real).map_err(unguarded)?;
    let workspace = guardian.workspace().map_err(unguarded)?;
    let here = describe(&Real);
    let (mut writer, out) = match into {
        Bundle::New(out, plan) => {
            let mut writer = Writer::create(out, &resolved.plan, &results, here.clone())?;
            writer.keep_source(plan, asked(choices))?;
            (writer, out)
        }
        Bundle::Again(out, resumed) => (tactus_run::resumed_writer(resumed, resolved)?, out),
    };
    writer.begin_session(here, choices.state.clone())?;
    let consoles = out.join("console");
    std::fs::create_dir_all(&consoles)?;
    let mut recorder = Recorder::new(writer, resolved);
    let ended = run(
        resolved,
        &Real,
        &guardian,
        &machine,
        workspace.path(),
        &consoles,
        &interrupt,
        vec![&mut recorder, view],
    );
    drop(workspace);
    guardian.finish();
    let status = match ended {
        Ok(status) => status,
        Err(tactus_run::RunError::Record(error)) => return Err(error.into()),
    };
    let dir = recorder.into_writer().finish(status)?;
    let contents = bundle::read(&dir, Trust::Whole)?;
    Ok(Performed { dir, contents })
}

/// What the user asked for beside the plan, as a bundle keeps it.
pub fn asked(choices: &Choices) -> Asked {
    Asked {
        quick: choices.quick,
        duration_ns: choices.duration.map(|duration| duration.0),
        only: choices.only.clone(),
        no_side_effects: choices.no_side_effects,
    }
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
        Failure::new(error, "the probe is put into the cache: set TACTUS_CACHE_DIR to a directory that can be written and allows programs")
    })?;
    profile::complete(&mut facts, &Real);
    Ok(Some(state::present(plan, &facts, said)))
}

/// How the program ends after a run.
pub fn exit(contents: &Contents) -> Exit {
    use tactus_model::document::Outcome;
    let document = tactus_report::document(contents);
    let outcomes: Vec<Outcome> = document
        .scenarios
        .iter()
        .filter_map(|entry| entry.verdict.as_ref())
        .map(|verdict| verdict.outcome)
        .collect();
    let failed = document.scenarios.iter().any(|entry| entry.status == RowStatus::Failed);
    let measured = document.scenarios.iter().any(|entry| entry.status == RowStatus::Measured);
    if outcomes.contains(&Outcome::Fail) {
        Exit::Findings
    } else if failed || !measured || document.status == RunStatus::Interrupted {
        Exit::Unable
    } else if outcomes.contains(&Outcome::Inconclusive) {
        Exit::Inconclusive
    } else {
        Exit::Good
    }
}

/// The machine in one line's worth of facts.
pub fn describe(system: &dyn System) -> Machine {
    let text = |path: &str| system.text(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let field = |path: &str, key: &str, separator: char| {
        text(path)
            .lines()
            .filter_map(|line| line.split_once(separator))
            .find(|(found, _)| found.trim() == key)
            .map(|(_, value)| value.trim().trim_matches('"').to_owned())
            .unwrap_or_default()
    };
    Machine {
        name: text("/proc/sys/kernel/hostname"),
        processor: field("/proc/cpuinfo", "model name", ':'),
        cpus: text("/sys/devices/system/cpu/online"),
        kernel: format!("{} {}", text("/proc/sys/kernel/osrelease"), text("/proc/sys/kernel/version")),
        system: field("/etc/os-release", "PRETTY_NAME", '='),
    }
}
