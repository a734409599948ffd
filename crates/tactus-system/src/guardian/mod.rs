//! The guardian: every change of a run on a machine is written down before it is made, and undone when the run ends in
//! any way. A small process holds the other end of a pipe and undoes the changes of a dead run. The next command undoes
//! what is left if the guardian has failed as well.

mod actions;
mod journal;
mod recover;
mod run;
mod warnings;

pub use recover::recover;
pub use run::{Ended, Guardian, Promise, Workspace, has_gone};
pub use warnings::Warnings;
