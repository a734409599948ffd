//! A run from its first scenario to its last: resolved plan in, bundle and events out.

use std::io;
use std::path::PathBuf;

use tactus_bundle::{BundleError, Location, Resumed, Trust, Writer};
use tactus_model::bundle::Contents;
use tactus_model::event::{Event, RunStatus};
use tactus_model::outcome::{Ending, RowEnd};
use tactus_model::plan::Plan;
use tactus_model::topology::Topology;
use tactus_system::guardian::{Ended, Guardian, Workspace};
use tactus_system::{Directory, Running, System};

use crate::context::{Context, Resources, RunError};
use crate::describe::{describe, job};
use crate::interrupt::Interrupt;
use crate::log;
use crate::marks::Marks;
use crate::plan::{Choices, Resolved};
use crate::recorder::Recorder;
use crate::resume::resumed_writer;
use crate::scenario;
use crate::sink::{Emitter, Sink};

/// The run, and where its results go.
pub struct Request<'a> {
    /// The plan as this machine can do it.
    pub resolved: &'a Resolved,
    /// The user's choices beside the plan.
    pub choices: &'a Choices,
    /// Where the results go.
    pub into: Destination<'a>,
    /// Ends the run early.
    pub interrupt: &'a Interrupt,
    /// Marks that users set meanwhile.
    pub marks: &'a Marks,
    /// The machine's CPUs.
    pub machine: &'a Topology,
}

/// A machine, and its CPUs.
#[derive(Clone, Copy)]
pub(crate) struct On<'a> {
    pub system: &'a dyn System,
    pub machine: &'a Topology,
}

/// Where the results of a run go.
pub enum Destination<'a> {
    /// A new bundle in this place, of this plan as the user wrote it.
    New(Location, &'a Plan),
    /// On with a bundle that there is.
    Resume(&'a Resumed),
}

/// A run that has ended.
#[derive(Debug)]
pub struct Executed {
    /// The bundle's directory, open: files beside the bundle's files are written there.
    pub dir: Directory,
    /// The bundle, read back; its manifest says how the run ended.
    pub contents: Contents,
    /// How many events sinks missed because they were too slow.
    pub dropped: u64,
    /// Whether everything that the run changed has been taken back.
    pub restored: bool,
    /// Marks the run as running, until this is dropped.
    pub running: Option<Running>,
    /// Somebody killed the guardian of the run.
    pub killed: Option<io::Error>,
}

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// Without a guardian the run's changes would not be taken back.
    #[error("{0}")]
    Guardian(#[source] io::Error),
    /// `tactus watch` would not find the run.
    #[error("the run cannot be listed for `tactus watch`: {0}")]
    Unannounced(#[source] io::Error),
    /// Two would write the same files.
    #[error("{0} is being written by another run")]
    Busy(PathBuf),
    /// An event cannot be recorded, or read back.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

impl From<RunError> for ExecuteError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Record(error) => Self::Bundle(error),
        }
    }
}

/// Runs every scenario and records what happens; `sinks` follow, and hold nothing up. A scenario that breaks ends
/// with its reason, and the run continues. An interrupt ends the scenario and the run, and keeps the data so far. The
/// run's changes have been taken back when this returns.
///
/// # Errors
/// When there is no guardian (nothing is changed then), or the bundle cannot be written or read back.
pub fn execute(
    request: &Request<'_>,
    system: &dyn System,
    sinks: Vec<Box<dyn Sink>>,
) -> Result<Executed, ExecuteError> {
    let guardian = Guardian::start(system).map_err(ExecuteError::Guardian)?;
    let workspace = guardian.workspace().map_err(ExecuteError::Guardian)?;
    let mut running = match &request.into {
        Destination::New(..) => None,
        Destination::Resume(resumed) => announce(resumed.dir(), &guardian, system)?,
    };
    let writer = writer(request, system)?;
    if running.is_none() {
        running = announce(writer.dir(), &guardian, system)?;
    }
    let (dir, consoles) = (writer.dir().clone(), writer.consoles()?);
    let emitter =
        Emitter::new(Box::new(Recorder::new(writer, request.resolved)), sinks).marked(request.marks);
    let on = On { system, machine: request.machine };
    let Ran { dropped, restored, killed } =
        run(request.resolved, on, guardian, workspace, &consoles, request.interrupt, emitter).inspect_err(
            |error| {
                tracing::error!(%error, "the run broke");
                tactus_bundle::keep_log(&dir, log::last_lines().as_deref());
            },
        )?;
    let mut contents = tactus_bundle::read_from(&dir, Trust::Whole)?;
    contents.own = matches!(request.into, Destination::New(..));
    Ok(Executed { dir, contents, dropped, restored, running, killed })
}

/// Tells those who look for a run that this one writes the bundle; nothing where a stranger has taken the name for it.
fn announce(
    bundle: &Directory,
    guardian: &Guardian,
    system: &dyn System,
) -> Result<Option<Running>, ExecuteError> {
    let announced = Running::announce(bundle, guardian, system).map_err(ExecuteError::Unannounced)?;
    if announced.is_none()
        && tactus_system::Run::of(bundle).is_ok_and(|run| run.is_some_and(|run| run.is_mine()))
    {
        return Err(ExecuteError::Busy(bundle.path().to_owned()));
    }
    Ok(announced)
}

/// The bundle, new or resumed, with this session in it.
fn writer(request: &Request<'_>, system: &dyn System) -> Result<Writer, BundleError> {
    let resolved = request.resolved;
    let machine = describe(system);
    let mut writer = match &request.into {
        Destination::New(location, plan) => {
            let rows: Vec<_> = resolved.rows.iter().map(|row| row.result.clone()).collect();
            let mut writer = Writer::create(location.clone(), &resolved.plan, &rows, machine.clone())?;
            writer.keep_source(plan, request.choices.asked())?;
            writer
        }
        Destination::Resume(resumed) => resumed_writer(resumed, resolved)?,
    };
    writer.begin_session(machine, job(system), request.choices.state.clone())?;
    Ok(writer)
}

/// Facts of a run beside its events.
pub(crate) struct Ran {
    /// How many events sinks missed.
    pub dropped: u64,
    /// Whether everything that it changed has been taken back.
    pub restored: bool,
    /// Somebody killed the guardian of the run.
    pub killed: Option<io::Error>,
}

/// The scenarios one after the other. When this returns, the run's changes have been taken back, and a note tells
/// which could not be.
pub(crate) fn run(
    resolved: &Resolved,
    on: On<'_>,
    guardian: Guardian,
    workspace: Workspace,
    consoles: &Directory,
    interrupt: &Interrupt,
    emitter: Emitter,
) -> Result<Ran, RunError> {
    let resources = Resources {
        system: on.system,
        guardian: &guardian,
        machine: on.machine,
        workspace: workspace.path(),
        consoles,
        interrupt,
    };
    let mut context = Context::new(resolved, resources, emitter);
    let ended = scenarios(&mut context);
    let mut emitter = context.into_emitter();
    drop(workspace);
    let Ended { notes, killed } = guardian.finish();
    let restored = notes.is_empty();
    let told = notes
        .into_iter()
        .map(|note| Event::Noted { environment: None, note })
        .try_for_each(|event| emitter.emit(event));
    let status = ended?;
    told?;
    emitter.emit(Event::RunFinished { status })?;
    Ok(Ran { dropped: emitter.finish(status)?, restored, killed })
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
        match &planned.skip {
            Some(reason) => {
                let ending = Ending::because(RowEnd::Unavailable, reason.as_str());
                finish_rows(context, planned.rows.clone(), &ending)?;
            }
            None if interrupt.asked() => {
                let reason = "the run was interrupted before its turn";
                finish_rows(context, planned.rows.clone(), &Ending::because(RowEnd::Waiting, reason))?;
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
