//! Continues a bundle: its complete rows are kept as they are, the others are done again.

use std::path::Path;

use tactus_model::bundle::{Contents, FORMAT, Machine, RowResult};
use tactus_model::event::RunStatus;
use tactus_model::plan::Plan;
use tactus_system::Directory;

use crate::files::{PLAN, SOURCE};
use crate::write::{Writer, row_dir, write_plan};
use crate::{BundleError, Trust, files, hlog, limits, read, recover, ticks, windows};

/// A bundle to continue, read and checked.
#[derive(Debug)]
pub struct Resumed {
    dir: Directory,
    /// Its contents.
    pub contents: Contents,
    /// The plan as the user wrote it.
    pub plan: Plan,
}

impl Resumed {
    /// Opens the bundle in `dir`.
    ///
    /// # Errors
    /// When it is not a bundle, was altered, contains anything but files and directories, or can be written
    /// to by others. Also when the tactus that began it did not keep the plan as it was written.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let dir = Directory::reach(path).map_err(BundleError::io(path))?;
        files::only_ours(&dir)?;
        let contents = read::read_apart(&dir, Trust::Whole)?;
        let not = |reason: String| BundleError::CannotResume { path: path.to_owned(), reason };
        let text = files::text(&dir, SOURCE, limits::PLAN).map_err(|error| {
            not(format!(
                "tactus {} did not keep the plan as it was written ({SOURCE}: {error})",
                contents.manifest.tactus
            ))
        })?;
        let plan = toml::from_str(&text).map_err(|error| not(format!("{SOURCE}: {}", error.message())))?;
        Ok(Self { dir, contents, plan })
    }

    /// Its directory, open.
    #[must_use]
    pub fn dir(&self) -> &Directory {
        &self.dir
    }

    /// Refuses another plan than the one that was begun with, and says where it differs.
    ///
    /// # Errors
    /// Where they differ.
    pub fn same_plan(&self, plan: &Plan) -> Result<(), BundleError> {
        let table = |plan: &Plan| toml::Table::try_from(plan).unwrap_or_default();
        let (then, now) = (table(&self.plan), table(plan));
        let differs = then.keys().chain(now.keys()).find(|key| then.get(*key) != now.get(*key));
        match differs {
            None => Ok(()),
            Some(_) if self.plan.name != plan.name => {
                Err(self
                    .refuses(format!("it holds a run of the plan {}, not of {}", self.plan.name, plan.name)))
            }
            Some(key) => {
                Err(self.refuses(format!("it holds a run of another {}: `{key}` differs", plan.name)))
            }
        }
    }

    /// Refuses another machine, and says which.
    ///
    /// # Errors
    /// When name, processor, mainboard or (where that is not known) the installed system differ. The kernel and the CPUs that are on may: that is what a reboot is for.
    pub fn same_machine(&self, machine: &Machine) -> Result<(), BundleError> {
        let then = &self.contents.manifest.machine;
        for (what, then, now) in
            [("machine", &then.name, &machine.name), ("processor", &then.processor, &machine.processor)]
        {
            if then != now {
                return Err(self.refuses(format!("it was begun on the {what} {then:?}, but this is {now:?}")));
            }
        }
        let known = [(&then.hardware, &machine.hardware), (&then.id, &machine.id)];
        if known
            .into_iter()
            .find(|(then, now)| then.is_some() && now.is_some())
            .is_some_and(|(then, now)| then != now)
        {
            let name = &machine.name;
            return Err(self.refuses(format!("it was begun on another machine that is also called {name:?}")));
        }
        Ok(())
    }

    /// Refuses to continue, for this reason.
    #[must_use]
    pub fn refuses(&self, reason: String) -> BundleError {
        BundleError::CannotResume { path: self.dir.path().to_owned(), reason }
    }

    /// Continues the bundle, with this plan as it is resolved now and these rows, each with whether it is
    /// kept. From here on it is an interrupted run. The checksums of its kept rows still hold; the rows to be
    /// done again are emptied.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn writer(&self, plan: &Plan, results: &[RowResult], kept: &[bool]) -> Result<Writer, BundleError> {
        let dir = &self.dir;
        let rows: Vec<String> = results.iter().enumerate().map(|(n, row)| row_dir(n, &row.name)).collect();
        let mut manifest = self.contents.manifest.clone();
        manifest.format = FORMAT;
        (manifest.finished, manifest.status) = (None, RunStatus::Interrupted);
        let names = rows.iter().zip(kept).filter(|(_, kept)| **kept);
        let prefixes: Vec<String> = names.map(|(row, _)| format!("{row}/")).collect();
        manifest
            .files
            .retain(|name, _| name == SOURCE || prefixes.iter().any(|prefix| name.starts_with(prefix)));
        for sub in ["facts", "audit"] {
            dir.make_dir(sub).map_err(BundleError::of(dir, sub))?;
        }
        let writer = Writer::of(dir.clone(), manifest, rows)?;
        writer.manifest()?;
        for (row, result) in results.iter().enumerate().filter(|(row, _)| !kept[*row]) {
            writer.make_row(row)?;
            // The empty result comes first, before the old data is removed.
            writer.result(row, result)?;
            let own = writer.row(row)?;
            for log in [
                ticks::PLAIN,
                ticks::COMPRESSED,
                windows::FILE,
                hlog::LATENCY,
                hlog::MISSED,
                recover::PENDING,
            ] {
                own.remove(log).map_err(BundleError::of(&own, log))?;
            }
        }
        write_plan(dir, PLAN, plan)?;
        writer.keep_room(results)
    }
}
