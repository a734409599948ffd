//! Compares conditions: the runs of one bundle, or of several, with those of another.
//!
//! The unit is a sitting, that is a bundle. The spread of a condition's sittings includes the differences within a run, from
//! run to run, and from day to day. A regression lies beyond that spread: see `docs/design/compare.md`.

mod baseline;
mod changes;
mod chapters;
mod condition;
mod expected;
mod explore;
mod figures;
mod formats;
mod judge;
mod margins;
mod matched;
mod outcome;
mod refusal;
mod sampled;
mod sittings;

pub use baseline::{LEAST_RUNS, baseline, is_fit};
pub use chapters::page;
pub(crate) use chapters::title;
pub use condition::Condition;
pub use expected::{Expected, expected};
pub use formats::{FORMATS, Format};
pub use margins::{MarginError, Margins};
pub use outcome::{Options, against_itself, compare};
pub use refusal::{Alike, Refusal};
pub use sittings::{LEAST_BASELINE, LEAST_REPEATS};
