//! What tuning does to a system, each deed with its undoing, and the journal of both.

mod action;
mod carry;
mod journal;
mod look;
mod recover;
mod undo;

pub use action::{Action, Failed};
pub use carry::{Broken, Deed, Outcome, carry};
pub use journal::{Begin, Entry, Journal, Log, Phase};
pub use look::{Task, boot_id, current, task};
pub use recover::{Recovered, recover};
pub use undo::{Fates, Undone, undo, undo_all};
