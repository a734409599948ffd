//! An environment with something to do around it: once the probe has spoken, and after its end.

use tactus_model::Evidence;
use tactus_model::facts::Facts;
use tactus_model::message::Note;
use tactus_system::guardian::Promise;

use crate::{Running, StartError, Stream};

type Settle = Box<dyn FnOnce() -> Result<Vec<Note>, StartError> + Send>;

/// Another environment; the promises are kept after its end, however it ends.
pub struct Hooks {
    running: Box<dyn Running>,
    settle: Option<Settle>,
    promises: Vec<Promise>,
}

impl Hooks {
    /// `settle` is done after the probe's first word.
    #[expect(clippy::new_ret_no_self, reason = "the surroundings of an environment are one")]
    pub fn new(
        running: Box<dyn Running>,
        settle: impl FnOnce() -> Result<Vec<Note>, StartError> + Send + 'static,
        promises: Vec<Promise>,
    ) -> Box<dyn Running> {
        Box::new(Self { running, settle: Some(Box::new(settle)), promises })
    }
}

impl Running for Hooks {
    fn take_stream(&mut self) -> Option<Stream> {
        self.running.take_stream()
    }

    fn after_hello(&mut self) -> Result<Vec<Note>, StartError> {
        let mut notes = self.running.after_hello()?;
        if let Some(settle) = self.settle.take() {
            notes.extend(settle()?);
        }
        Ok(notes)
    }

    fn evidence(&self, facts: &Facts) -> Evidence {
        self.running.evidence(facts)
    }

    fn last_words(&mut self) -> Option<String> {
        self.running.last_words()
    }

    fn stop(&mut self) {
        self.running.stop();
        self.settle = None;
        while let Some(promise) = self.promises.pop() {
            drop(promise);
        }
    }
}
