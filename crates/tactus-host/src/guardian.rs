//! The guardian: a small process that takes back what a run changed, however the run ends.

use std::io;
use std::path::Path;

use tactus_model::undo::Undo;

/// A promise that something will be taken back. Dropping it takes it back.
#[must_use]
pub struct Promise<'a> {
    guardian: &'a Guardian,
    id: u64,
}

/// The run's end of the guardian.
pub struct Guardian {}
