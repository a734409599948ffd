//! The tuning profiles, as TuneD has them, value by value.
//!
//! The values are those of TuneD 2.28's own files. Inheritance is resolved here as TuneD does: a profile's settings
//! come after those of its parent, and replace those of the same target.
//!
//! These tables leave out some settings of TuneD: `[net] channels` (it resets network cards), `[rtentsk]` (a socket
//! that a process must hold open), `[video] panel_power_savings`, and the blacklists of `[scheduler]`. In place of
//! the blacklists, threads that are pinned to isolated CPUs are left alone.

mod base;
mod extra_checks;
mod files;
mod partitioning;
mod realtime;
mod resolve;
mod setting;
mod table;
#[cfg(test)]
mod tests;

pub use files::complete;
pub use setting::{Profile, Setting, Value, What};
pub use table::{PROFILES, find, names};
