//! Notes of a run that belong to no measurement.

use std::sync::{Arc, Mutex, PoisonError};

use tactus_model::message::Note;

/// Notes from code that cannot report them itself, such as a dropped promise or an environment that ends. The run takes
/// the notes and reports them. Clones share one collection.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Vec<Note>>>);

impl Warnings {
    /// Adds a note.
    pub fn add(&self, note: Note) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// Takes all notes that have not been taken yet.
    #[must_use]
    pub fn take(&self) -> Vec<Note> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
