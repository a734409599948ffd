//! The parts of a run that a scenario needs.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use tactus_bundle::BundleError;
use tactus_environment::Running;
use tactus_model::CpuSet;
use tactus_model::event::Event;
use tactus_model::topology::Topology;
use tactus_system::guardian::Guardian;
use tactus_system::{Directory, System};

use crate::interrupt::Interrupt;
use crate::plan::Resolved;
use crate::session::{Arrival, Session};
use crate::sink::Emitter;

/// The resources of a run, beside its plan.
#[derive(Clone, Copy)]
pub(crate) struct Resources<'a> {
    pub system: &'a dyn System,
    pub guardian: &'a Guardian,
    /// The machine's CPUs.
    pub machine: &'a Topology,
    /// A private directory that exists.
    pub workspace: &'a Path,
    /// Where consoles are kept.
    pub consoles: &'a Directory,
    pub interrupt: &'a Interrupt,
}

/// Why a run could not continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An event cannot be recorded.
    #[error(transparent)]
    Record(#[from] BundleError),
}

/// Everything a scenario needs from its run.
pub(crate) struct Context<'a> {
    pub resolved: &'a Resolved,
    pub system: &'a dyn System,
    pub guardian: &'a Guardian,
    pub machine: &'a Topology,
    pub workspace: &'a Path,
    pub consoles: &'a Directory,
    pub interrupt: &'a Interrupt,
    /// The messages from the probes of all environments, with the number of their session.
    pub arrivals: Receiver<(usize, Arrival)>,
    sender: Sender<(usize, Arrival)>,
    /// Environments of the last scenario that are still up: the next one may use them again.
    pub kept: Vec<Session>,
    opened: usize,
    emitter: Emitter,
}

impl<'a> Context<'a> {
    pub fn new(resolved: &'a Resolved, resources: Resources<'a>, emitter: Emitter) -> Self {
        let Resources { system, guardian, machine, workspace, consoles, interrupt } = resources;
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
            emitter,
        }
    }

    /// Begins to listen to an environment that has been started.
    pub fn open(&mut self, name: &str, running: Box<dyn Running>, measured: CpuSet) -> Session {
        self.opened += 1;
        Session::open(name, running, measured, self.opened, self.sender.clone())
    }

    /// Ends the environments that were kept up, except those that `wanted` selects; an environment inside one that
    /// ends does so, too.
    ///
    /// # Errors
    /// When the notes from their end cannot be recorded; all have been ended then.
    pub fn close_kept(&mut self, wanted: impl Fn(&Session) -> bool) -> Result<(), RunError> {
        let kept = std::mem::take(&mut self.kept);
        let names: Vec<String> = kept.iter().filter(|s| wanted(s)).map(|s| s.name.clone()).collect();
        let stays = |session: &Session| {
            names.contains(&session.name) && session.inside.as_ref().is_none_or(|outer| names.contains(outer))
        };
        let (kept, mut ended): (Vec<_>, Vec<_>) = kept.into_iter().partition(stays);
        self.kept = kept;
        // An inner environment ends before the one around it.
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
        // Without listeners the warnings are left for the code that ends the guardian.
        let notes = if self.emitter.is_silent() { Vec::new() } else { self.guardian.warnings().take() };
        notes.into_iter().try_for_each(|note| {
            self.emit(Event::Noted { environment: environment.map(str::to_owned), note })
        })
    }

    /// Tells everybody that something happened now.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn emit(&mut self, event: Event) -> Result<(), RunError> {
        Ok(self.emitter.emit(event)?)
    }

    /// The emitter, for what is to be told when all environments are gone.
    pub fn into_emitter(self) -> Emitter {
        self.emitter
    }
}
