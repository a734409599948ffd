//! From what the user wrote to what this machine can do: parse, check, resolve.

mod bounds;
mod card;
mod check;
mod commands;
mod default_plan;
mod device;
mod error;
mod filter;
mod nesting;
mod parse;
mod path;
mod peer;
mod resolve;
mod resolved;
mod results;
mod separation;
mod serialize;
mod source;
pub mod state;
mod study;
#[cfg(test)]
mod tests;

pub use check::check;
pub use commands::commands;
pub use default_plan::{CONTAINERS, QUICK_DURATION, Scope, may_be_real_time, this_machine};
pub use device::{described, embed_cards, of_checked as card_of};
pub use error::PlanError;
pub use filter::names_in;
pub use parse::parse;
pub use resolve::resolve;
pub(crate) use resolve::{Lot, threads};
pub use resolved::{Choices, Resolved, ResolvedActivity, ResolvedEnvironment, ResolvedScenario, RowPlan};
pub use source::Source;
pub use study::{STUDIES, Study, study};
