//! Tuning: what a profile sets, a plan of it for one system, and its carrying out and taking back.
//!
//! A [`plan::Plan`] is made from a subject and a profile and touches nothing. What acts goes through
//! the [`System`](tactus_system::System) door and writes a journal before it acts.

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
