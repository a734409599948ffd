//! What is promised before it is done, and how it is taken back: the cell destroyed, Jailhouse disabled.
//! A cell may refuse its end once, or for good: then it stays, and what is left is said.

use std::time::Duration;

use tactus_model::undo::Undo;
use tactus_system::guardian::Promise;

use super::cells::{self, Cell};
use super::command::Jailhouse;
use crate::support::cannot;
use crate::{Setting, StartError};

/// How often a cell is asked to end.
const TRIES: u32 = 3;
/// How long it is left alone in between.
const PAUSE: Duration = Duration::from_millis(200);

/// What is to be taken back.
pub struct Ends {
    jailhouse: Jailhouse,
    cell: Option<(String, Promise)>,
    hypervisor: Option<Promise>,
}

impl Ends {
    /// Nothing yet.
    pub fn new(jailhouse: &Jailhouse) -> Self {
        Self { jailhouse: jailhouse.clone(), cell: None, hypervisor: None }
    }

    /// Promises that Jailhouse is disabled; to be called before it is enabled.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn promise_disable(&mut self, setting: &Setting<'_>) -> Result<(), StartError> {
        self.hypervisor = Some(promise(setting, self.jailhouse.words_twice(&["disable"]))?);
        Ok(())
    }

    /// Promises that the cell is destroyed; to be called before it is made.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn promise_destroy(&mut self, setting: &Setting<'_>, name: &str) -> Result<(), StartError> {
        let words = self.jailhouse.words_twice(&["cell", "destroy", "--name", name]);
        self.cell = Some((name.to_owned(), promise(setting, words)?));
        Ok(())
    }

    /// Takes everything back. Returns a sentence about each thing that is left.
    pub fn take_back(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        if let Some((name, promise)) = self.cell.take() {
            match self.destroy(&name) {
                Ok(()) => promise.forget(),
                Err(words) => {
                    left.push(words);
                    keep_for_the_guardian(promise);
                }
            }
        }
        if let Some(promise) = self.hypervisor.take() {
            match self.disable() {
                Ok(()) => promise.forget(),
                Err(words) => {
                    left.push(words);
                    keep_for_the_guardian(promise);
                }
            }
        }
        left
    }

    fn destroy(&self, name: &str) -> Result<(), String> {
        let Some(cell) = cells::named(name, &*self.jailhouse.system) else { return Ok(()) };
        if cell.state.runs() {
            // What destroys it is what counts.
            let _ = self.insist(&["cell", "shutdown", "--name", name]);
        }
        self.insist(&["cell", "destroy", "--name", name]).map_err(|said| {
            let now = cells::named(name, &*self.jailhouse.system).map_or_else(|| name.to_owned(), |c| c.to_string());
            format!("{now} refuses to be destroyed ({said}): it is left; `jailhouse cell destroy {name}` asks again")
        })
    }

    fn disable(&self) -> Result<(), String> {
        let system = &*self.jailhouse.system;
        if cells::enabled(system) != Some(true) {
            return Ok(());
        }
        let others: Vec<String> = cells::all(system).iter().filter(|c| c.id != 0).map(Cell::to_string).collect();
        if !others.is_empty() {
            return Err(format!("Jailhouse is left enabled as long as there is {}", others.join("; ")));
        }
        self.insist(&["disable"]).map_err(|said| format!("Jailhouse is left enabled ({said}): `jailhouse disable`"))
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
        for words in self.take_back() {
            tracing::warn!("{words}");
        }
    }
}

/// It stays written down, and is tried once more at the end of the run and by the next command.
fn keep_for_the_guardian(promise: Promise) {
    std::mem::forget(promise);
}

fn promise(setting: &Setting<'_>, words: Vec<String>) -> Result<Promise, StartError> {
    setting.guardian.promise(Undo::Run(words)).map_err(|error| cannot("the guardian cannot be told", error))
}
