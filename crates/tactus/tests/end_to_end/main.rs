//! The command from end to end, on this machine.

mod command;
mod common;
mod endings;
mod run;
