//! What a run must say that no measurement says.

use std::sync::{Arc, Mutex, PoisonError};

use tactus_model::message::Note;

/// Notes of those who have nobody to tell them to (a promise that is dropped, an environment that ends):
/// the run takes them from here and tells them as its own. Clones are the same collection.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Vec<Note>>>);

impl Warnings {
    /// Adds a note.
    pub fn add(&self, note: Note) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// Takes all that nobody has taken yet.
    #[must_use]
    pub fn take(&self) -> Vec<Note> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
