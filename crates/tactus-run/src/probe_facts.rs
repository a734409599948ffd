//! A look at an environment: bring it up, take its facts, end it. Nothing is measured.

use std::path::Path;

use tactus_model::facts::Facts;
use tactus_model::topology::Topology;
use tactus_system::System;
use tactus_system::guardian::Guardian;

use super::engine::{Context, RunError};
use super::interrupt::Interrupt;
use super::scenario::{Failure, ScenarioRun};
use crate::plan::Resolved;

/// Why an environment could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ProbeFactsError {
    /// What happens cannot be told.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It did not come up.
    #[error("{0}")]
    NotUp(String),
    /// Somebody asked for the end.
    #[error("interrupted")]
    Interrupted,
}

/// Brings up the environment of the first scenario of a resolved plan and returns its facts.
///
/// # Errors
/// When it does not come up, with its last words.
pub fn probe_facts(
    resolved: &Resolved,
    system: &dyn System,
    guardian: &Guardian,
    machine: &Topology,
    workspace: &Path,
    interrupt: &Interrupt,
) -> Result<Facts, ProbeFactsError> {
    let nothing = || ProbeFactsError::NotUp("the plan names no environment".into());
    let planned = resolved.scenarios.first().ok_or_else(nothing)?;
    if let Some(reason) = &planned.skip {
        return Err(ProbeFactsError::NotUp(reason.clone()));
    }
    let name = &planned.activities.first().ok_or_else(nothing)?.environment;
    let mut context =
        Context::new(resolved, system, guardian, machine, workspace, workspace, interrupt, Vec::new());
    let mut scenario = ScenarioRun::new(planned);
    let result = scenario.bring_up(&mut context, 0, name);
    let facts = scenario.facts(name);
    scenario.close(&mut context, false);
    match result {
        Ok(()) => Ok(facts),
        Err(Failure::Run(error)) => Err(error.into()),
        Err(Failure::Scenario(reason) | Failure::Refused(reason)) => Err(ProbeFactsError::NotUp(reason)),
        Err(Failure::Interrupted) => Err(ProbeFactsError::Interrupted),
    }
}
