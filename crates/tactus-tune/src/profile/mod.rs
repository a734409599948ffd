//! The tuning profiles, as TuneD has them, value by value.
//!
//! The values are those of TuneD 2.28's own files, with inheritance resolved here as TuneD resolves
//! it: a profile's settings come after those of its parent, and replace those of the same target.
//!
//! What TuneD sets and these tables do not: `[net] channels` (it resets network cards), `[rtentsk]` (a
//! socket that a process must hold open), `[video] panel_power_savings`, and the blacklists of
//! `[scheduler]`, in whose place threads that are pinned to isolated CPUs are left alone.

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
pub use table::{PROFILES, find};
