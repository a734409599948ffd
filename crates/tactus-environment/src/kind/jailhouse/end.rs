//! Promises to destroy the cell and to disable Jailhouse, made before either is started, and their fulfilment.
//! A cell may refuse its end once, or for good: then it stays, and a warning reports what is left.

use std::time::Duration;

use tactus_model::message::Note;
use tactus_model::undo::{Tool, Undo};
use tactus_system::guardian::{Promise, Warnings};

use super::cells::{self, Cell};
use super::command::Jailhouse;
use crate::support::cannot;
use crate::{Setting, StartError};

/// How often a cell is asked to end.
const TRIES: u32 = 3;
/// How long it is left alone in between.
const PAUSE: Duration = Duration::from_millis(200);

/// Everything that is to be taken back.
pub struct Ends {
    jailhouse: Jailhouse,
    cell: Option<(String, Promise)>,
    hypervisor: Option<Promise>,
    warnings: Warnings,
}

impl Ends {
    /// Nothing yet.
    pub fn new(jailhouse: &Jailhouse, setting: &Setting<'_>) -> Self {
        let warnings = setting.guardian.warnings().clone();
        Self { jailhouse: jailhouse.clone(), cell: None, hypervisor: None, warnings }
    }

    /// Promises that Jailhouse is disabled; to be called before it is enabled.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn promise_disable(&mut self, setting: &Setting<'_>) -> Result<(), StartError> {
        self.hypervisor = Some(promise(setting, Tool::Jailhouse { program: self.jailhouse.program() })?);
        Ok(())
    }

    /// Promises that the cell is destroyed; to be called before it is made.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn promise_destroy(&mut self, setting: &Setting<'_>, name: &str) -> Result<(), StartError> {
        let cell = Tool::Cell { program: self.jailhouse.program(), name: name.into() };
        self.cell = Some((name.to_owned(), promise(setting, cell)?));
        Ok(())
    }

    /// Takes everything back. A warning reports what cannot be taken back; the guardian tries again at the end of the
    /// run.
    pub fn take_back(&mut self) {
        if let Some((name, promise)) = self.cell.take() {
            self.settle(promise, self.destroy(&name));
        }
        if let Some(promise) = self.hypervisor.take() {
            self.settle(promise, self.disable());
        }
    }

    fn settle(&self, promise: Promise, ended: Result<(), String>) {
        match ended {
            Ok(()) => promise.forget(),
            Err(words) => {
                self.warnings.add(Note::obstacle(words, "tactus tries again at the end of the run"));
                promise.defer();
            }
        }
    }

    fn destroy(&self, name: &str) -> Result<(), String> {
        let Some(cell) = cells::named(name, &*self.jailhouse.system) else { return Ok(()) };
        if cell.state.runs() {
            // Only the result of `cell destroy` below counts.
            let _ = self.insist(&["cell", "shutdown", "--name", name]);
        }
        self.insist(&["cell", "destroy", "--name", name]).map_err(|said| {
            let now = cells::named(name, &*self.jailhouse.system)
                .map_or_else(|| name.to_owned(), |c| c.to_string());
            format!(
                "{now} refuses to be destroyed ({said}): it is left; `jailhouse cell destroy {name}` \
                tries again"
            )
        })
    }

    fn disable(&self) -> Result<(), String> {
        let system = &*self.jailhouse.system;
        if cells::enabled(system) != Some(true) {
            return Ok(());
        }
        let others: Vec<String> =
            cells::all(system).iter().filter(|c| c.id != 0).map(Cell::to_string).collect();
        if !others.is_empty() {
            return Err(format!("Jailhouse stays enabled while there is {}", others.join("; ")));
        }
        self.insist(&["disable"])
            .map_err(|said| format!("Jailhouse stays enabled ({said}): `jailhouse disable`"))
    }

    fn insist(&self, arguments: &[&str]) -> Result<(), String> {
        let mut said = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(PAUSE);
            }
            match self.jailhouse.run(arguments) {
                Ok(_) => return Ok(()),
                Err(refused) => said = refused.said,
            }
        }
        Err(said)
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.take_back();
    }
}

fn promise(setting: &Setting<'_>, tool: Tool) -> Result<Promise, StartError> {
    setting
        .guardian
        .promise(Undo::Tool(tool))
        .map_err(|error| cannot("the guardian process of tactus cannot be reached", error))
}
