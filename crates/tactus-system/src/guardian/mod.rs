//! The guardian: whatever a run changes on a machine is written down before it is done, and taken
//! back when the run ends in any way. A small process holds the other end of a pipe and takes back
//! what a dead run could not; the next command takes back what even the guardian could not.

mod actions;
mod journal;
mod recover;
mod run;
mod warnings;

pub use recover::recover;
pub use run::{Ended, Guardian, Promise, Workspace, has_gone};
pub use warnings::Warnings;
