//! Errors of a bundle.

use std::io;
use std::path::{Path, PathBuf};

use tactus_model::bundle::{FORMAT, Format};
use tactus_system::Directory;

/// An error with a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file of it cannot be written or read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// This user may not read it.
    #[error("{path}: {error}")]
    Unreadable {
        /// The directory or file.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// There can be no bundle there.
    #[error("{path} cannot be created: {error}")]
    CannotMake {
        /// The directory.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// It is no bundle.
    #[error("{path} is not a bundle of tactus: {reason}")]
    NotABundle {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// It has no end.
    #[error("{path} is not finished: its run is in progress, or died before it could end the bundle")]
    Unfinished {
        /// The directory.
        path: PathBuf,
    },
    /// It was written in another format.
    #[error("{path} was written by tactus {tactus} in format {}.{}; this tactus reads format {}", found.major, found.minor, FORMAT.major)]
    OtherVersion {
        /// The directory.
        path: PathBuf,
        /// The version that wrote it.
        tactus: String,
        /// Its format.
        found: Format,
    },
    /// A file is not as it was written.
    #[error("{path} is not as the run wrote it: {reason}")]
    Altered {
        /// The file.
        path: PathBuf,
        /// Missing, or another checksum.
        reason: String,
    },
    /// It is not the run to continue.
    #[error("{path} cannot be continued: {reason}")]
    CannotResume {
        /// The directory.
        path: PathBuf,
        /// The difference.
        reason: String,
    },
    /// A file written there could land elsewhere, or be exchanged.
    #[error("{path} is not safe to write to: {reason}")]
    Unsafe {
        /// The directory, or a file in it.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// There is something at the place where a bundle should be written.
    #[error("{0} exists and is not empty")]
    Exists(PathBuf),
}

impl BundleError {
    /// With a file of a directory.
    pub(super) fn of<'a>(dir: &'a Directory, name: &'a str) -> impl FnOnce(io::Error) -> Self + 'a {
        move |error| Self::Io { path: dir.path().join(name), error }
    }

    /// That a directory is no bundle; or that this user may not read it, which says nothing about it.
    pub(super) fn no_bundle(path: PathBuf, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Unreadable { path, error },
            io::ErrorKind::NotFound => Self::NotABundle { path, reason: "it does not exist".into() },
            _ => Self::NotABundle { path, reason: error.to_string() },
        }
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| Self::Io { path: path.to_owned(), error }
    }

    /// Says how to resolve the error.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Io { error, .. } if error.kind() == io::ErrorKind::StorageFull => {
                "the file system is full: free some space, or write elsewhere with --out DIR; what was \
                    written stays".into()
            }
            Self::Io { error, .. } if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                "nothing can be written there: it is mounted read-only, or the kernel disabled the disk (see \
                    dmesg); write elsewhere with --out DIR; what was written stays".into()
            }
            Self::Io { .. } => return None,
            Self::Unreadable { .. } => "use a copy of it that you may read".into(),
            Self::CannotMake { .. } => "name a directory that can be created with --out DIR".into(),
            Self::NotABundle { .. } => "give the directory of a bundle: `tactus run` prints it at its end, as \
                `page: DIRECTORY/report.html`".into(),
            Self::Unfinished { .. } => "wait until the run ends (`tactus watch`); of one that died, `tactus run --into BUNDLE` \
                measures the rest".into(),
            Self::OtherVersion { .. } => "read it with the tactus that wrote it".into(),
            Self::Altered { .. } => "copy the bundle again; `tactus report --damaged` reads what is left and \
                reports the damage".into(),
            Self::CannotResume { .. } => {
                "give the plan, the options and the machine that it was begun with (another machine: --force), or begin another bundle with --out DIR".into()
            }
            Self::Unsafe { .. } => {
                "a run writes only where no other user can put files or links: remove that right (`chmod -R \
                    go-w DIR`), or name a new directory with --out DIR".into()
            }
            Self::Exists(_) => "name a new directory with --out DIR".into(),
        })
    }
}
