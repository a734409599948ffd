//! What a run must take back, written down before it is done, and how it is taken back.
//!
//! A run appends [`Entry`] lines to a journal file and sends the same lines to its guardian. An
//! action's `undo` is written before the action; `done` after it was taken back. Whoever finds an
//! entry that is not done (the guardian when the run's pipe closes, the next command after a power
//! cut) undoes it: settings at once, then processes, then all the rest (and settings once more), the newest first.
//!
//! The rules of undoing are here and nowhere else; those who undo (the guardian, a probe's session,
//! the run, the next command) lend them their [`Actions`].

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
