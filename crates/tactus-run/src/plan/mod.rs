//! From what the user wrote to what this machine can do: parse, check, resolve.

mod bounds;
mod check;
mod chosen;
mod error;
mod inside;
mod machine;
mod parse;
mod resolve;
mod resolved;
mod separation;
mod source;
pub mod state;
mod study;
#[cfg(test)]
mod tests;
mod written;

pub use check::check;
pub use error::PlanError;
pub use machine::{QUICK_DURATION, this_machine};
pub use parse::parse;
pub use resolve::resolve;
pub use resolved::{Choices, Resolved, ResolvedActivity, ResolvedEnvironment, ResolvedScenario, RowPlan};
pub use source::Source;
pub use study::{STUDIES, Study, study};
