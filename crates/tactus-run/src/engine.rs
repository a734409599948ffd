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
use tactus_system::guardian::{Guardian, Workspace};

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
    ///
    /// # Errors
    /// When what it says at its end cannot be told; all have been ended then.
    pub fn close_kept(&mut self, wanted: impl Fn(&Session) -> bool) -> Result<(), RunError> {
        let kept = std::mem::take(&mut self.kept);
        let names: Vec<String> = kept.iter().filter(|s| wanted(s)).map(|s| s.name.clone()).collect();
        let stays = |session: &Session| {
            names.contains(&session.name) && session.inside.as_ref().is_none_or(|outer| names.contains(outer))
        };
        let (kept, mut ended): (Vec<_>, Vec<_>) = kept.into_iter().partition(stays);
        self.kept = kept;
        // What lies inside ends before what is around it.
        ended.sort_by_key(|session| session.inside.is_none());
        let mut result = self.tell_warnings(None);
        for session in ended {
            let name = session.name.clone();
            session.close();
            result = result.and(self.tell_warnings(Some(&name)));
        }
        result
    }

    /// Tells what has been collected of warnings, as said of an environment or of the run.
    pub fn tell_warnings(&mut self, environment: Option<&str>) -> Result<(), RunError> {
        // Where nobody listens they are left to whoever ends the guardian.
        let notes = if self.sinks.is_empty() { Vec::new() } else { self.guardian.warnings().take() };
        notes.into_iter().try_for_each(|note| {
            self.emit(Event::Noted { environment: environment.map(str::to_owned), note })
        })
    }

    /// Tells everybody.
    pub fn emit(&mut self, event: Event) -> Result<(), RunError> {
        tell(&mut self.sinks, event)
    }
}

fn tell(sinks: &mut [&mut dyn Sink], event: Event) -> Result<(), RunError> {
    let stamped = Stamped { at_ms: jiff::Timestamp::now().as_millisecond(), event };
    for sink in sinks {
        sink.take(&stamped)?;
    }
    Ok(())
}

/// Performs every scenario of a resolved plan. A scenario that breaks ends with its reason, and the
/// run goes on; an interrupt ends the scenario and the run, and keeps what was measured. When this
/// returns, what the run changed has been taken back, and what could not be has been told.
///
/// # Errors
/// When a sink says that the run should end; environments have then been stopped.
#[expect(clippy::too_many_arguments, reason = "what Context::new takes, for those outside")]
pub fn run(
    resolved: &Resolved,
    system: &dyn System,
    guardian: Guardian,
    machine: &Topology,
    workspace: Workspace,
    consoles: &Path,
    interrupt: &Interrupt,
    mut sinks: Vec<&mut dyn Sink>,
) -> Result<RunStatus, RunError> {
    let ended = {
        let sinks = sinks.iter_mut().map(|sink| &mut **sink as &mut dyn Sink).collect();
        let dir = workspace.path();
        scenarios(&mut Context::new(resolved, system, &guardian, machine, dir, consoles, interrupt, sinks))
    };
    drop(workspace);
    let left = guardian.finish().into_iter();
    let told =
        left.map(|note| Event::Noted { environment: None, note }).try_for_each(|e| tell(&mut sinks, e));
    let status = ended?;
    told?;
    tell(&mut sinks, Event::RunFinished { status })?;
    Ok(status)
}

fn scenarios(context: &mut Context<'_>) -> Result<RunStatus, RunError> {
    let (resolved, interrupt) = (context.resolved, context.interrupt);
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
            finish_rows(context, planned.rows.clone(), &Ending::because(RowEnd::Waiting, reason))?;
            continue;
        }
        match &planned.skip {
            Some(reason) => {
                let ending = Ending::because(RowEnd::Unavailable, reason.as_str());
                finish_rows(context, planned.rows.clone(), &ending)?;
            }
            None => scenario::perform(context, number, planned)?,
        }
    }
    context.close_kept(|_| false)?;
    Ok(if interrupt.asked() { RunStatus::Interrupted } else { RunStatus::Complete })
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
