//! The state of a run, for several who look at it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::state::Watched;

/// The state of a run, for those who look at it while it changes.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Watched>>);

impl Shared {
    /// Shares a state.
    #[must_use]
    pub fn new(watched: Watched) -> Self {
        Self(Arc::new(Mutex::new(watched)))
    }

    /// The state, as it is now. Its holder keeps other readers waiting, never the run.
    pub fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
