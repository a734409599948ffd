//! The directory of a data set.
//!
//! ```text
//! data-set.json            the version
//! run/2026-11-24.parquet   the runs that began on that day (UTC); so do the other tables
//! machine/all.parquet      the machines
//! ```
//! A file is written beside the one that it replaces, and then renamed. A reader sees the old file or the new
//! one, and an interrupted writer leaves the old one. `run` is written last: rows of a run that it does not
//! name do not count yet.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tactus_format::export::ExportError;
use tactus_format::export::columnar::{self, Found, Writer};
use tactus_format::export::table::{Cell, Column};
use tactus_model::bundle::Format;
use tactus_system::{Directory, FileLock};

use crate::DataError;
use crate::table::{TABLES, Table};
use crate::version::VERSION;

/// The file that says so.
const ABOUT: &str = "data-set.json";
const LOCK: &str = ".lock";
/// The directory in which archives are unpacked while bundles are collected. Readers of tables ignore it.
const WORKING: &str = ".unpacked";
/// Longest `data-set.json`, in bytes.
const MOST_ABOUT: u64 = 64 * 1024;
/// How files of tables end.
const ENDING: &str = ".parquet";

/// `data-set.json`.
#[derive(Debug, Deserialize, Serialize)]
struct About {
    /// [`VERSION`].
    format: Format,
    /// The version that made it.
    tactus: String,
}

/// A data set.
#[derive(Debug)]
pub struct DataSet {
    dir: Directory,
    /// Held by the one that writes to it.
    _lock: Option<FileLock>,
}

impl DataSet {
    /// Opens one to read it.
    ///
    /// # Errors
    /// When it is missing, or of another version.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let dir = Directory::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                DataError::NotADataSet { path: path.into(), reason: "it does not exist".into() }
            }
            io::ErrorKind::NotADirectory => {
                DataError::NotADataSet { path: path.into(), reason: error.to_string() }
            }
            _ => DataError::Io { path: path.into(), error },
        })?;
        check(&dir)?;
        Ok(Self { dir, _lock: None })
    }

    /// Opens one to write to it, alone; makes it if it is missing.
    ///
    /// # Errors
    /// When it cannot be made, is of another version, contains something else, or another process writes to
    /// it.
    pub fn open_to_write(path: &Path) -> Result<Self, DataError> {
        let io = |error| DataError::Io { path: path.into(), error };
        let dir = match Directory::reach(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Directory::create(path),
            reached => reached,
        };
        let dir = dir.map_err(io)?;
        dir.is_private().map_err(io)?;
        let empty = dir.names().map_err(io)?.is_empty();
        let begun = dir.entry(ABOUT).is_ok();
        if !empty && !begun && dir.entry(LOCK).is_err() {
            let reason = format!("it has other files, and no {ABOUT}");
            return Err(DataError::NotADataSet { path: path.into(), reason });
        }
        let lock = FileLock::take(&dir, LOCK).map_err(io)?.ok_or_else(|| DataError::Busy(path.into()))?;
        if begun {
            check(&dir)?;
        } else {
            let about = About { format: VERSION, tactus: env!("CARGO_PKG_VERSION").into() };
            let mut text = serde_json::to_vec(&about).map_err(|error| io(error.into()))?;
            text.push(b'\n');
            dir.replace(ABOUT, &text).map_err(io)?;
        }
        for table in TABLES {
            dir.make_dir(table.name).map_err(io)?;
            // Left by a process that was killed, like the working directory.
            dir.beneath(table.name).and_then(|dir| dir.remove_unfinished()).map_err(io)?;
        }
        let own = Self { dir, _lock: Some(lock) };
        own.remove_working_directory()?;
        Ok(own)
    }

    /// Makes a directory beside the tables, for files that are needed only during a collection. It stays the
    /// same one even if the owner of a directory above moves the data set.
    pub(crate) fn working_directory(&self) -> Result<Directory, DataError> {
        let made = self.dir.make_dir(WORKING).and_then(|()| self.dir.beneath(WORKING));
        made.map_err(|error| DataError::Io { path: self.dir.path().join(WORKING), error })
    }

    /// Removes it, if there is one.
    pub(crate) fn remove_working_directory(&self) -> Result<(), DataError> {
        let remove = || {
            if self.dir.entry(WORKING).is_err() {
                return Ok(());
            }
            // One after the other: together they may have more entries than one tree may.
            for name in self.dir.beneath(WORKING)?.names()? {
                self.dir.remove_tree(Path::new(WORKING).join(name))?;
            }
            self.dir.remove_tree(WORKING)
        };
        remove().map_err(|error: io::Error| DataError::Io { path: self.dir.path().join(WORKING), error })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The days of a table, as its files are called, in their order.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn days(&self, table: &Table) -> Result<Vec<String>, DataError> {
        let names = match self.dir.beneath(table.name).and_then(|dir| dir.names()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => {
                names.map_err(|error| DataError::Io { path: self.dir.path().join(table.name), error })?
            }
        };
        let day = |name: &std::ffi::OsString| {
            let name = name.to_str()?.strip_suffix(ENDING)?;
            (!name.starts_with('.')).then(|| name.to_owned())
        };
        Ok(names.iter().filter_map(day).collect())
    }

    /// Reads columns of a table's day; `None` without such a file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self, table: &Table, day: &str, columns: &[Column]) -> Result<Option<Found>, DataError> {
        let name = file(table, day);
        let path = || self.dir.path().join(&name);
        let file = match self.dir.file(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(DataError::Io { path: path(), error }),
        };
        let found =
            columnar::read(file, columns).map_err(|error| DataError::Table { path: path(), error })?;
        Ok(Some(found))
    }

    /// Writes a table's day, all of it.
    ///
    /// # Errors
    /// When it cannot be written; the old one stays then.
    pub fn write(
        &self,
        table: &Table,
        day: &str,
        rows: impl FnOnce(&mut dyn FnMut(&[Cell<'_>]) -> Result<(), ExportError>) -> Result<(), ExportError>,
    ) -> Result<(), DataError> {
        let name = file(table, day);
        let columns = (table.columns)();
        let about = vec![
            ("tactus.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("tactus.data-set", format!("{}.{}", VERSION.major, VERSION.minor)),
        ];
        let written = self.dir.install_with(&name, 0o644, |file| {
            let mut writer = Writer::begin(table.name, columns, about, Box::new(file))?;
            rows(&mut |cells| writer.row(cells))?;
            writer.finish()
        });
        let path: PathBuf = self.dir.path().join(&name);
        written.map_err(|error| match error {
            ExportError::Io(error) => DataError::Io { path, error },
            error => DataError::Table { path, error },
        })
    }
}

fn file(table: &Table, day: &str) -> String {
    format!("{}/{day}{ENDING}", table.name)
}

fn check(dir: &Directory) -> Result<(), DataError> {
    let not = |reason: String| DataError::NotADataSet { path: dir.path().into(), reason };
    let text = dir.read(ABOUT, MOST_ABOUT).map_err(|error| not(format!("{ABOUT}: {error}")))?;
    let about: About = serde_json::from_slice(&text).map_err(|_| not(format!("{ABOUT} cannot be read")))?;
    if about.format.major != VERSION.major {
        return Err(DataError::OtherVersion { path: dir.path().into(), found: about.format });
    }
    Ok(())
}
