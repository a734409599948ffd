//! Tuning: profiles, a plan of a profile for one system, and applying and reverting it.
//!
//! A [`plan::Plan`] is made from a subject and a profile and touches nothing. Code that changes a system goes through
//! the [`System`](tactus_system::System) door and writes a journal before each change.

pub mod apply;
#[cfg(test)]
mod cpu_time;
pub mod generate;
mod persist;
pub mod pitfall;
pub mod plan;
pub mod profile;
pub mod revert;
pub mod transaction;
pub mod tuned;
pub mod verify;

#[cfg(test)]
mod tests;
