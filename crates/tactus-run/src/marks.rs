//! Moments that a user marks while it runs: each becomes a remark of the run, with the time at which it was said.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tactus_model::event::{Event, Stamped};
use tactus_model::message::Note;

/// Most marks that wait: a key that is held down is no flood of events.
const MOST: usize = 64;

/// Moments that were marked and are not recorded yet. They are recorded before the next event.
#[derive(Clone, Debug, Default)]
pub struct Marks(Arc<Mutex<VecDeque<Stamped>>>);

impl Marks {
    /// Marks this moment with a sentence. Returns whether there was room for it.
    pub fn add(&self, text: String) -> bool {
        self.note(Note::info(text))
    }

    /// Marks this moment with a note. Returns whether there was room for it.
    pub fn note(&self, note: Note) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = waiting.len() < MOST;
        if fits {
            let event = Event::Noted { environment: None, note };
            waiting.push_back(Stamped { at_ms: jiff::Timestamp::now().as_millisecond(), event });
        }
        fits
    }

    /// The marks that wait, the oldest first.
    pub(crate) fn take(&self) -> VecDeque<Stamped> {
        // The other side holds the lock for a moment: marks that are missed now are taken before the next event.
        self.0.try_lock().map(|mut waiting| std::mem::take(&mut *waiting)).unwrap_or_default()
    }
}
