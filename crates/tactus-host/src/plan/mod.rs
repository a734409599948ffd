//! From what the user wrote to what this machine can do: parse, check, resolve.

mod check;
mod error;
mod inside;
mod machine;
mod parse;
mod resolve;
mod separation;
mod source;
pub mod state;
mod study;
#[cfg(test)]
mod tests;
mod written;

pub use check::check;
pub use error::PlanError;
pub use machine::{QUICK_DURATION, this_machine, topology};
pub use parse::parse;
pub use resolve::{
    Choices, Resolved, ResolvedActivity, ResolvedEnvironment, ResolvedScenario, RowPlan, resolve,
};
pub use source::Source;
pub use study::{STUDIES, Study, study};
