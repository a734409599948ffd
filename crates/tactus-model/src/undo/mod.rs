//! The changes that a run must undo, written down before they are made, and how they are undone.
//!
//! A run appends [`Entry`] lines to a journal file and sends the same lines to its guardian. An action's `undo` is
//! written before the action, and `done` after it was undone. The guardian undoes the entries that are not done when
//! the run's pipe closes; after a power cut the next command does. Settings come first, then processes, then all the
//! rest (and settings once more), the newest first.
//!
//! All rules of undoing are in this module. The guardian, a probe's session, the run and the next command use them with
//! their [`Actions`].

mod actions;
pub mod block;
mod execute;
mod journal;
mod own;
mod processes;
mod remove;
#[cfg(test)]
mod tests;
mod tool;

pub use actions::{Actions, Held};
pub use execute::{attempt, settings_first, undo};
pub use journal::{Entry, MARKER, Undo, in_order, outstanding, unknown};
pub use own::{Owned, is_believed};
pub use processes::{WORKER, is_over, kill_marked, marked};
pub use remove::{Files, remove};
pub use tool::{Runtime, Tool, without_mounts};
