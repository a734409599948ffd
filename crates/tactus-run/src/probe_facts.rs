//! A look at an environment: bring it up, take its facts, end it. Nothing is measured.

use std::io;

use tactus_model::facts::Facts;
use tactus_model::message::Note;
use tactus_system::guardian::{Ended, Guardian};
use tactus_system::{Directory, System, topology};

use super::context::{Context, Resources, RunError};
use super::interrupt::Interrupt;
use super::scenario::{Failure, ScenarioRun};
use super::sink::Emitter;
use crate::plan::Resolved;

/// Why an environment could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ProbeFactsError {
    /// An event cannot be reported.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Without a guardian the changes would not be taken back.
    #[error("{0}")]
    Guardian(#[source] io::Error),
    /// It did not come up.
    #[error("{0}")]
    NotUp(String),
    /// Somebody asked for the end.
    #[error("interrupted")]
    Interrupted,
}

/// Brings up the environment of the first scenario of a resolved plan and returns its facts. If it does not come up,
/// the error has its last words. The notes say what could not be taken back.
pub fn probe_facts(
    resolved: &Resolved,
    system: &dyn System,
    interrupt: &Interrupt,
) -> (Result<Facts, ProbeFactsError>, Vec<Note>) {
    let guardian = match Guardian::start(system) {
        Ok(guardian) => guardian,
        Err(error) => return (Err(ProbeFactsError::Guardian(error)), Vec::new()),
    };
    let facts = guarded(resolved, system, interrupt, &guardian);
    let Ended { notes, killed } = guardian.finish();
    let facts = killed.map_or(Ok(()), |error| Err(ProbeFactsError::Guardian(error))).and(facts);
    (facts, notes)
}

fn guarded(
    resolved: &Resolved,
    system: &dyn System,
    interrupt: &Interrupt,
    guardian: &Guardian,
) -> Result<Facts, ProbeFactsError> {
    let nothing = || ProbeFactsError::NotUp("the plan names no environment".into());
    let planned = resolved.scenarios.first().ok_or_else(nothing)?;
    if let Some(reason) = &planned.skip {
        return Err(ProbeFactsError::NotUp(reason.clone()));
    }
    let name = &planned.activities.first().ok_or_else(nothing)?.environment;
    if !resolved.environments[name].kind.has_system() {
        return Err(ProbeFactsError::NotUp("it has no operating system to examine".into()));
    }
    let workspace = guardian.workspace().map_err(ProbeFactsError::Guardian)?;
    let (machine, dir) = (topology(system), workspace.path());
    let consoles = &Directory::open(dir).map_err(ProbeFactsError::Guardian)?;
    let resources = Resources { system, guardian, machine: &machine, workspace: dir, consoles, interrupt };
    let mut context = Context::new(resolved, resources, Emitter::silent());
    let mut scenario = ScenarioRun::new(planned);
    let result = scenario.bring_up(&mut context, 0, name);
    let facts = scenario.facts(name);
    scenario.close(&mut context, false)?;
    match result {
        Ok(()) => Ok(facts),
        Err(Failure::Run(error)) => Err(error.into()),
        Err(Failure::Scenario(reason) | Failure::Refused(reason)) => Err(ProbeFactsError::NotUp(reason)),
        Err(Failure::Interrupted) => Err(ProbeFactsError::Interrupted),
    }
}
