//! The changes that tuning makes to a system, each with its undoing, and the journal of both.

mod action;
mod commit;
mod damage;
mod journal;
mod ours;
pub(crate) mod own_files;
mod recover;
mod state;
mod undo;

pub use action::{Action, Failed};
pub use commit::{Broken, Outcome, Step, commit};
pub use damage::Damage;
pub use journal::{Begin, Entry, Journal, KEPT, Kept, Log, Phase};
pub use recover::{Recovered, recover};
pub use state::{Task, task};
pub use undo::{Fates, Undone, undo, undo_all};
