//! Every measurement of the run, in the columns of its outcome.

mod entry;
mod group;
mod latency_columns;
mod value_columns;

pub use entry::{ENTRY, Measurements};
