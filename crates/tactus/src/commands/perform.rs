//! From a plan to a finished bundle: what `run` and `measure` have in common.

use std::path::{Path, PathBuf};

use tactus_host::bundle::{self, Trust, Writer};
use tactus_host::guardian::{self, Guardian};
use tactus_host::plan::{Choices, Resolved, Source, check, resolve, topology};
use tactus_host::run::{Interrupt, Recorder, Sink, run};
use tactus_host::system::{Real, System};
use tactus_model::bundle::{Contents, Machine};
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::plan::Plan;

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

/// Performs a resolved plan; `view` sees every event after the recorder.
pub fn perform(resolved: &Resolved, out: &Path, view: &mut dyn Sink) -> Result<Performed, Failure> {
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
    let writer = Writer::create(out, &resolved.plan, &results, describe(&Real))?;
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
        Err(tactus_host::run::RunError::Record(error)) => return Err(error.into()),
    };
    let dir = recorder.into_writer().finish(status)?;
    let contents = bundle::read(&dir, Trust::Whole)?;
    Ok(Performed { dir, contents })
}

/// How the program ends after a run.
pub fn exit(contents: &Contents) -> Exit {
    use tactus_model::document::Outcome;
    let document = tactus_report::analysis::document(contents);
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
fn describe(system: &dyn System) -> Machine {
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
