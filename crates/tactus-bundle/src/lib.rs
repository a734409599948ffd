//! Bundles on disk: written as a run goes, read back whole, cut or altered. Touches the directory of its bundle
//! and nothing else.

mod error;
mod files;
mod hlog;
mod lines;
mod older;
mod read;
mod recover;
mod resume;
#[cfg(test)]
mod tests;
mod ticks;
mod windows;
mod write;

pub use error::BundleError;
pub use read::{Trust, read};
pub use resume::Resumed;
pub use write::{RowLog, Writer};
