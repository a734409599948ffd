//! Bundles on disk: written during a run, and read back whole, cut or altered. This crate touches the
//! directory of its bundle and nothing else, through [`tactus_system::Directory`]. A bundle may come from a
//! stranger, so no name in it leads out of it and no link is followed. How much of it is read is in `limits`.

mod error;
mod files;
mod hlog;
mod largest;
pub mod limits;
mod lines;
mod location;
mod logs;
mod names;
mod pending;
mod places;
mod read;
mod recover;
mod resume;
mod room;
mod signed;
pub mod size;
mod slices;
#[cfg(test)]
mod tests;
mod ticks;
mod windows;
mod write;

pub use error::BundleError;
pub use files::{LOG, SIGNATURE, SUMS};
pub use location::Location;
pub use logs::Logs;
pub use read::{Sealed, Trust, manifest, open, read, read_from, read_with_logs, sealed, verify};
pub use resume::Resumed;
pub use room::LeftOut;
pub use signed::{Covered, beside, covered, sums};
pub use write::{RowLog, Writer, keep_log};
