//! One page for a colleague: a single file without any outside reference.
//!
//! Everything that comes from a bundle is hostile input. The template escapes all of it. Data for the script
//! is JSON with `<`, `>` and `&` escaped. The page forbids itself any connection.

mod blocks;
mod page;
mod report;

#[cfg(feature = "pdf")]
pub(crate) use report::with_micro;
pub use report::{STYLE, chapters, escaping, hash, render};
