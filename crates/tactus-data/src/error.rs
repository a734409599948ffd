//! Errors of a data set.

use std::io;
use std::path::PathBuf;

use tactus_format::export::ExportError;
use tactus_model::bundle::Format;

use crate::version::VERSION;

/// An error with a data set.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file of it cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// A table of it cannot be read or written.
    #[error("{path}: {error}")]
    Table {
        /// The file.
        path: PathBuf,
        /// The error.
        error: ExportError,
    },
    /// The directory contains something else.
    #[error("{path} is not a data set of tactus: {reason}")]
    NotADataSet {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// It was made by another version.
    #[error("{path} is a data set of version {}.{}; this tactus knows version {}", found.major, found.minor, VERSION.major)]
    OtherVersion {
        /// The directory.
        path: PathBuf,
        /// Its version.
        found: Format,
    },
    /// Another process writes to it.
    #[error("{0} is being written to by another tactus")]
    Busy(PathBuf),
}

impl DataError {
    /// Says how to resolve the error.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Io { error, .. } if error.kind() == io::ErrorKind::StorageFull => {
                "the file system is full: free some space and collect again; what was collected stays"
            }
            Self::Io { .. } => return None,
            Self::Table { .. } => {
                "move the file away and collect its bundles again, if you have them; other files are not touched"
            }
            Self::NotADataSet { .. } => {
                "name a directory that `tactus fleet collect` wrote, or for `--into` a new one"
            }
            Self::OtherVersion { .. } => {
                "use the tactus that made it, or collect the bundles into a new directory"
            }
            Self::Busy(_) => {
                "wait until that is done, and collect again: runs that are already present are \
                skipped"
            }
        })
    }
}
