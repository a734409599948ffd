//! The data set of many runs: its tables, what is collected into it, and the questions that it answers.
//!
//! [`collect`] reads bundles and adds to a directory of Parquet files; [`question`] reads those, and is pure but for that.
//! It touches the directory of the data set and the bundles that it is given, through [`tactus_system::Directory`].

pub mod collect;
mod error;
mod identity;
mod place;
pub mod question;
pub mod table;
mod version;

/// So far ahead a clock may be, in microseconds: who says that a run begins later than that has a wrong one.
pub const AHEAD_US: i64 = 3_600_000_000;

pub use error::DataError;
pub use identity::{Identity, Known, run_key};
pub use place::DataSet;
pub use version::VERSION;
