//! The directory of a fleet, which is its state:
//!
//! ```text
//! fleet.json           what it is: engine, selection, the frozen list of machines, the plan's hash
//! plan.toml            the plan
//! machines/KEY.json    a row for each machine
//! objects/             what was written for the engine
//! log/KEY.log          what a job said, where the engine shares files
//! incoming/KEY         bundles that are being written or fetched
//! archives/KEY.tar.gz  those that come as one file
//! bundles/KEY          those that are here, are finished, and hold
//! refused/KEY-N        the last that did not hold
//! ```
//! KEY is [`crate::file_name`] of the machine.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use tactus_system::{Directory, Kind, Real, System};

use crate::engine::{File, Site};
use crate::error::FleetError;
use crate::name::sha256;
use crate::order::{FORMAT, Order};
use crate::row::{Row, State};

const ORDER: &str = "fleet.json";
const PLAN: &str = "plan.toml";
const LOCK: &str = ".lock";
const SUBDIRECTORIES: [&str; 7] =
    ["machines", "objects", "log", "incoming", "archives", "bundles", "refused"];
/// The longest files that are read, in bytes.
const MOST_ORDER: u64 = 64 << 20;
const MOST_ROW: u64 = 1 << 20;

/// A fleet's directory, open.
pub struct Store {
    dir: Directory,
    path: PathBuf,
    /// The order of the fleet.
    pub order: Order,
    rows: Vec<Row>,
    /// As they are on the disk.
    written: Vec<Option<Row>>,
    lock: Option<Box<dyn Send>>,
}

impl Store {
    /// Whether there is a fleet.
    #[must_use]
    pub fn is_there(path: &Path) -> bool {
        Directory::open(path).is_ok_and(|dir| dir.entry(ORDER).is_ok())
    }

    /// Begins a fleet in a directory, which is made. It must be empty, except for files of an earlier call that was
    /// cut off before there was a fleet.
    ///
    /// # Errors
    /// When it contains other files, another user could write there, or it cannot be written.
    pub fn create(path: &Path, order: Order, plan: &[u8]) -> Result<Self, FleetError> {
        let path = absolute(path)?;
        let dir = match Directory::create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Directory::reach(&path),
            made => made,
        }
        .map_err(FleetError::file(&path))?;
        dir.is_private().map_err(FleetError::file(&path))?;
        let free = || {
            if is_free(&dir, plan).map_err(FleetError::file(&path))? {
                return Ok(());
            }
            Err(FleetError::new(
                format!("{} is not empty, and not a fleet", path.display()),
                "name another directory with --out",
            ))
        };
        free()?;
        let lock = locked(&path)?;
        // Somebody else may have begun one in the meantime.
        free()?;
        for sub in SUBDIRECTORIES {
            dir.make_dir(sub).map_err(FleetError::file(&path.join(sub)))?;
        }
        dir.replace(PLAN, plan).map_err(FleetError::file(&path.join(PLAN)))?;
        let rows: Vec<Row> = order.machines.iter().map(|name| Row::new(name)).collect();
        let written = vec![None; rows.len()];
        let store = Self { dir, path, order, rows, written, lock: Some(lock) };
        // The order is written last: without it the directory is not a fleet.
        store.json(ORDER, &store.order)?;
        Ok(store)
    }

    /// Opens a fleet to resume it, for this process alone.
    ///
    /// # Errors
    /// When it is not a fleet, another user could have written it, or another process has it open.
    pub fn open(path: &Path) -> Result<Self, FleetError> {
        let path = absolute(path)?;
        // Where no fleet is nothing is written, not even a lock.
        Self::look(&path)?;
        let lock = locked(&path)?;
        let store = Self { lock: Some(lock), ..Self::look(&path)? };
        // Fleets of before had none.
        store.dir.make_dir("archives").map_err(FleetError::file(&path))?;
        Ok(store)
    }

    /// Opens a fleet to look at it; nothing is written.
    ///
    /// # Errors
    /// When it is not a fleet, or another user could have written it.
    pub fn look(path: &Path) -> Result<Self, FleetError> {
        let path = absolute(path)?;
        let dir = Directory::reach(&path).map_err(FleetError::file(&path))?;
        dir.is_private().map_err(FleetError::file(&path))?;
        let order: Order = parsed(&dir, &path, ORDER, MOST_ORDER)?;
        if order.format.major != FORMAT.major {
            return Err(FleetError::new(
                format!("{} is a fleet of tactus {}, in another format", path.display(), order.tactus),
                "continue it with that tactus",
            ));
        }
        let plan = dir.read(PLAN, MOST_ORDER).map_err(FleetError::file(&path.join(PLAN)))?;
        if sha256(&plan) != order.plan_sha256 {
            return Err(FleetError::new(
                format!("{}: this is not the plan that the fleet was begun with", path.join(PLAN).display()),
                "restore that one, or begin another fleet with another --out",
            ));
        }
        let row = |name: &String| {
            let new = Row::new(name);
            let file = row_file(&new);
            if dir.entry(&file).is_err() {
                return new;
            }
            // One that cannot be read is one machine's loss.
            let row = parsed::<Row>(&dir, &path, &file, MOST_ROW).unwrap_or_else(|error| Row {
                state: State::Failed,
                reason: Some(format!("its row cannot be read: {error}")),
                ..new.clone()
            });
            // The row may be forged: its name comes from the list, and the names of its files from that name.
            Row { machine: new.machine, key: new.key, ..row }.cut()
        };
        let rows: Vec<Row> = order.machines.iter().map(row).collect();
        let written = rows.iter().cloned().map(Some).collect();
        Ok(Self { dir, path, order, written, rows, lock: None })
    }

    /// Whether it may be written.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.lock.is_some()
    }

    /// The rows, in the order of the list.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// A row to change; [`Store::save`] writes it.
    pub(crate) fn row(&mut self, at: usize) -> &mut Row {
        &mut self.rows[at]
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Directory {
        &self.dir
    }

    /// Where it is; absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where an engine works.
    #[must_use]
    pub fn site<'a>(&'a self, system: &'a dyn System) -> Site<'a> {
        Site { dir: self.path.clone(), order: &self.order, system }
    }

    /// Writes the rows that have changed.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn save(&mut self) -> Result<(), FleetError> {
        (0..self.rows.len()).try_for_each(|at| self.save_row(at))
    }

    /// Writes one row, if it has changed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn save_row(&mut self, at: usize) -> Result<(), FleetError> {
        self.rows[at] = self.rows[at].clone().cut();
        let row = &self.rows[at];
        if self.written[at].as_ref() != Some(row) {
            self.json(&row_file(row), row)?;
            self.written[at] = Some(row.clone());
        }
        Ok(())
    }

    /// Writes what is for the engine.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn objects(&self, files: &[File]) -> Result<(), FleetError> {
        for file in files {
            let name = Path::new("objects").join(&file.name);
            let above: Vec<&Path> =
                name.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
            let made = above.into_iter().rev().try_for_each(|above| self.dir.make_dir(above));
            made.and_then(|()| self.dir.replace(&name, file.text.as_bytes()))
                .map_err(FleetError::file(&self.path.join(&name)))?;
        }
        Ok(())
    }

    /// Moves the file or directory of a name into `refused`, so that it is neither lost nor in the way. An earlier
    /// refused one of this machine is removed: the machine could send any amount again and again.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub(crate) fn refuse(&self, name: &str, key: &str) -> Result<(), FleetError> {
        let place = |n: u32| format!("refused/{key}-{n}");
        let there = self.dir.beneath("refused").and_then(|dir| dir.names()).unwrap_or_default();
        let number =
            |name: OsString| name.to_str()?.strip_prefix(key)?.strip_prefix('-')?.parse::<u32>().ok();
        let before: Vec<u32> = there.into_iter().filter_map(number).collect();
        let last = before.iter().max().copied().unwrap_or(0);
        self.rename(name, &place(last.saturating_add(1)))?;
        before.into_iter().try_for_each(|n| self.remove(&place(n)))
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), FleetError> {
        self.dir.rename(from, to).map_err(FleetError::file(&self.path.join(from)))
    }

    /// Removes a file or directory of ours, and nothing elsewhere: machines may write here, and put links in the way.
    pub(crate) fn remove(&self, name: &str) -> Result<(), FleetError> {
        let is_directory = self.dir.entry(name).is_ok_and(|entry| entry.kind == Kind::Directory);
        let removed = if is_directory { self.dir.remove_tree(name) } else { self.dir.remove(name) };
        removed.map_err(FleetError::file(&self.path.join(name)))
    }

    fn json(&self, name: &str, value: &impl serde::Serialize) -> Result<(), FleetError> {
        let bytes = serde_json::to_vec_pretty(value).map_err(io::Error::from);
        bytes
            .and_then(|mut bytes| {
                bytes.push(b'\n');
                self.dir.replace(name, &bytes)
            })
            .map_err(FleetError::file(&self.path.join(name)))
    }
}

/// Whether there is nothing but a lock, empty directories of ours, and this plan.
fn is_free(dir: &Directory, plan: &[u8]) -> io::Result<bool> {
    for name in dir.names()? {
        let is_ours = match name.to_str() {
            Some(LOCK) => true,
            Some(PLAN) => dir.read(PLAN, MOST_ORDER).is_ok_and(|found| found == plan),
            Some(sub) if SUBDIRECTORIES.contains(&sub) => dir.beneath(sub)?.names()?.is_empty(),
            _ => false,
        };
        if !is_ours {
            return Ok(false);
        }
    }
    Ok(true)
}

fn row_file(row: &Row) -> String {
    format!("machines/{}.json", row.key)
}

fn absolute(path: &Path) -> Result<PathBuf, FleetError> {
    std::path::absolute(path).map_err(FleetError::file(path))
}

fn locked(path: &Path) -> Result<Box<dyn Send>, FleetError> {
    let file = path.join(LOCK);
    Real.lock(&file).map_err(FleetError::file(&file))?.ok_or_else(|| {
        FleetError::new(
            format!("another `tactus fleet` is working on {}", path.display()),
            "`tactus fleet status` shows its progress",
        )
    })
}

fn parsed<T: serde::de::DeserializeOwned>(
    dir: &Directory,
    path: &Path,
    name: &str,
    most: u64,
) -> Result<T, FleetError> {
    let bytes = dir.read(name, most).map_err(FleetError::file(&path.join(name)))?;
    serde_json::from_slice(&bytes).map_err(|error| FleetError::file(&path.join(name))(error.into()))
}
