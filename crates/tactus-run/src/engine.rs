//! A run from its first scenario to its last.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use tactus_bundle::BundleError;
use tactus_environment::Running;
use tactus_model::CpuSet;
use tactus_model::event::{Event, RunStatus, Stamped};
use tactus_model::outcome::{Ending, RowEnd};
use tactus_model::topology::Topology;
use tactus_system::System;
use tactus_system::guardian::Guardian;

use super::interrupt::Interrupt;
use super::scenario;
use super::session::{Arrival, Session};
use crate::plan::Resolved;

/// Somebody who takes in the events of a run.
pub trait Sink {
    /// Takes in an event.
    ///
    /// # Errors
    /// When the run should end because of it (the recorder: the disk is full).
    fn take(&mut self, event: &Stamped) -> Result<(), BundleError>;
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// What happens cannot be recorded.
    #[error(transparent)]
    Record(#[from] BundleError),
}

/// Everything a scenario needs from its run.
pub(super) struct Context<'a> {
    pub resolved: &'a Resolved,
    pub system: &'a dyn System,
    pub guardian: &'a Guardian,
    pub machine: &'a Topology,
    /// A private directory that exists.
    pub workspace: &'a Path,
    /// Where consoles are kept.
    pub consoles: &'a Path,
    pub interrupt: &'a Interrupt,
    /// What the probes of all environments say, with the number of their session.
    pub arrivals: Receiver<(usize, Arrival)>,
    sender: Sender<(usize, Arrival)>,
    /// Environments of the last scenario that are still up: the next one may use them again.
    pub kept: Vec<Session>,
    opened: usize,
    sinks: Vec<&'a mut dyn Sink>,
}

impl<'a> Context<'a> {
    #[expect(clippy::too_many_arguments, reason = "a run is put together here and nowhere else")]
    pub fn new(
        resolved: &'a Resolved,
        system: &'a dyn System,
        guardian: &'a Guardian,
        machine: &'a Topology,
        workspace: &'a Path,
        consoles: &'a Path,
        interrupt: &'a Interrupt,
        sinks: Vec<&'a mut dyn Sink>,
    ) -> Self {
        let (sender, arrivals) = channel();
        Self {
            resolved,
            system,
            guardian,
            machine,
            workspace,
            consoles,
            interrupt,
            arrivals,
            sender,
            kept: Vec::new(),
            opened: 0,
            sinks,
        }
    }

    /// Begins to listen to an environment that has been started.
    pub fn open(&mut self, name: &str, running: Box<dyn Running>, measured: CpuSet) -> Session {
        self.opened += 1;
        Session::open(name, running, measured, self.opened, self.sender.clone())
    }

    /// Ends the environments that were kept up, but for those that `wanted` says; what lies inside one that
    /// ends does so, too.
    pub fn close_kept(&mut self, wanted: impl Fn(&Session) -> bool) {
        let kept = std::mem::take(&mut self.kept);
        let names: Vec<String> = kept.iter().filter(|s| wanted(s)).map(|s| s.name.clone()).collect();
        let stays = |session: &Session| {
            names.contains(&session.name) && session.inside.as_ref().is_none_or(|outer| names.contains(outer))
        };
        let (kept, mut ended): (Vec<_>, Vec<_>) = kept.into_iter().partition(stays);
        self.kept = kept;
        // What lies inside ends before what is around it.
        ended.sort_by_key(|session| session.inside.is_none());
        ended.into_iter().for_each(Session::close);
    }

    /// Tells everybody.
    pub fn emit(&mut self, event: Event) -> Result<(), RunError> {
        let stamped = Stamped { at_ms: jiff::Timestamp::now().as_millisecond(), event };
        for sink in &mut self.sinks {
            sink.take(&stamped)?;
        }
        Ok(())
    }
}

/// Performs every scenario of a resolved plan. A scenario that breaks ends with its reason, and the
/// run goes on; an interrupt ends the scenario and the run, and keeps what was measured.
///
/// # Errors
/// When a sink says that the run should end; environments have then been stopped.
#[expect(clippy::too_many_arguments, reason = "what Context::new takes, for those outside")]
pub fn run<'a>(
    resolved: &'a Resolved,
    system: &'a dyn System,
    guardian: &'a Guardian,
    machine: &'a Topology,
    workspace: &'a Path,
    consoles: &'a Path,
    interrupt: &'a Interrupt,
    sinks: Vec<&'a mut dyn Sink>,
) -> Result<RunStatus, RunError> {
    let mut context =
        Context::new(resolved, system, guardian, machine, workspace, consoles, interrupt, sinks);
    context.emit(Event::RunStarted {
        plan: resolved.plan.name.clone(),
        rows: resolved.rows.len(),
        expected_ns: resolved.expected_ns(),
    })?;
    for (number, planned) in resolved.scenarios.iter().enumerate() {
        if planned.kept {
            continue;
        }
        if interrupt.asked() {
            let reason = "the run was interrupted before its turn";
            finish_rows(&mut context, planned.rows.clone(), &Ending::because(RowEnd::Waiting, reason))?;
            continue;
        }
        match &planned.skip {
            Some(reason) => {
                let ending = Ending::because(RowEnd::Unavailable, reason.as_str());
                finish_rows(&mut context, planned.rows.clone(), &ending)?;
            }
            None => scenario::perform(&mut context, number, planned)?,
        }
    }
    context.close_kept(|_| false);
    let status = if interrupt.asked() { RunStatus::Interrupted } else { RunStatus::Complete };
    context.emit(Event::RunFinished { status })?;
    Ok(status)
}

/// Ends rows that have nothing more to say than a reason.
fn finish_rows(
    context: &mut Context<'_>,
    rows: std::ops::Range<usize>,
    ending: &Ending,
) -> Result<(), RunError> {
    for row in rows {
        context.emit(Event::RowFinished { row, ending: ending.clone(), measured_ns: 0 })?;
    }
    Ok(())
}
