//! What is to be read of what was found: runs that are not there yet, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::Outcome;
use super::find::Candidate;
use crate::identity::{Identity, Known, content_key, run_key};
use crate::table::{MACHINE, RUN, Seen, columns};
use crate::{DataError, DataSet};

/// The only file of the machines.
const ALL: &str = "all";

/// A bundle that is to be read.
#[derive(Debug)]
pub struct Planned {
    path: PathBuf,
    /// Where it lies.
    pub at: PathBuf,
    /// Key of its run.
    pub run: String,
    /// Key of its machine.
    pub machine: String,
    /// How that is known.
    pub identity: Identity,
    /// What it is told from another bundle of the same run by.
    pub content: String,
    /// When it began, in microseconds since 1970.
    pub started_us: i64,
    /// The day on which that was, UTC.
    pub day: String,
    /// Whether it is there already, with less.
    pub instead: bool,
    /// What it was unpacked to goes with the last bundle of its archive.
    _unpacked: Option<Arc<TempDir>>,
}

impl Planned {
    /// As it is called.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A run that is there.
#[derive(Clone, Debug)]
struct Run {
    content: String,
    sessions: i64,
}

/// What is there.
#[derive(Debug, Default)]
pub struct Present {
    runs: BTreeMap<String, Run>,
    /// Machine and beginning of the runs that are there, by key.
    pub of: BTreeMap<String, (String, i64)>,
    known: Known,
    machines: BTreeSet<Seen>,
    /// How many machines were there when they were last written.
    saved: usize,
}

impl Present {
    /// Looks what is there.
    pub fn read(data: &DataSet) -> Result<Self, DataError> {
        let mut own = Self::default();
        let wanted = columns(&RUN, &["run", "machine", "started", "content", "sessions"]);
        for day in data.days(&RUN)? {
            let Some(found) = data.read(&RUN, &day, &wanted)? else { continue };
            let [run, machine, started, content, sessions] = found.columns.as_slice() else { continue };
            for row in 0..found.rows {
                let (Some(run), Some(machine)) = (run.text(row), machine.text(row)) else { continue };
                let content = content.text(row).unwrap_or_default().to_owned();
                own.runs.insert(run.into(), Run { content, sessions: sessions.whole(row).unwrap_or(1) });
                own.of.insert(run.into(), (machine.into(), started.whole(row).unwrap_or(0)));
            }
        }
        let wanted = columns(&MACHINE, &["machine", "name", "installation", "hardware"]);
        if let Some(found) = data.read(&MACHINE, ALL, &wanted)? {
            for row in 0..found.rows {
                let text =
                    |column: usize| found.columns.get(column).and_then(|of| of.text(row)).map(str::to_owned);
                own.see(Seen {
                    machine: text(0).unwrap_or_default(),
                    name: text(1).unwrap_or_default(),
                    installation: text(2),
                    hardware: text(3),
                });
            }
        }
        own.saved = own.machines.len();
        Ok(own)
    }

    fn see(&mut self, seen: Seen) {
        self.known.add(&seen.machine, seen.installation.as_deref(), seen.hardware.as_deref());
        self.machines.insert(seen);
    }

    /// Writes the machines, if there are new ones.
    pub fn save_machines(&mut self, data: &DataSet) -> Result<(), DataError> {
        if self.machines.len() == self.saved {
            return Ok(());
        }
        data.write(&MACHINE, ALL, |take| self.machines.iter().try_for_each(|seen| take(&seen.cells())))?;
        self.saved = self.machines.len();
        Ok(())
    }

    /// What is to be known of the machines: names that several have, and machines that are known by their names alone.
    pub fn remarks(&self) -> Vec<String> {
        let mut by_name: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut by_installation: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for seen in &self.machines {
            by_name.entry(&seen.name).or_default().insert(&seen.machine);
            if let Some(installation) = &seen.installation {
                by_installation.entry(installation).or_default().insert(&seen.machine);
            }
        }
        let mut remarks = Vec::new();
        for (name, machines) in by_name.iter().filter(|(_, machines)| machines.len() > 1) {
            remarks.push(format!(
                "{} machines are called `{name}`: they are kept apart (TACTUS_MACHINE gives one another name)",
                machines.len()
            ));
        }
        for machines in by_installation.values().filter(|machines| machines.len() > 1) {
            remarks.push(format!(
                "{} machines have one machine-id, as clones of an image have: they are told apart by their mainboards",
                machines.len()
            ));
        }
        let nameless =
            self.machines.iter().filter(|seen| seen.installation.is_none() && seen.hardware.is_none());
        let names: BTreeSet<&str> = nameless.map(|seen| seen.name.as_str()).collect();
        if !names.is_empty() {
            remarks.push(format!(
                "{} machines told nothing of themselves but their names: others of the same name would be taken for them",
                names.len()
            ));
        }
        remarks
    }
}

/// Whether a bundle is to be read; what became of it, if not.
pub fn sort(candidate: Candidate, present: &mut Present) -> Result<Planned, (PathBuf, Outcome)> {
    let Candidate { path, at, manifest, unpacked } = candidate;
    let refused = |path: PathBuf, reason: &str| Err((path, Outcome::Refused(reason.to_owned())));
    if manifest.finished.is_none() {
        let reason =
            "the run goes on, or died: nothing says what its files must be (`tactus run --into` ends it)";
        return refused(path, reason);
    }
    let Ok(started) = manifest.started.parse::<jiff::Timestamp>() else {
        return refused(path, "when it began is no moment");
    };
    let (run, content) = (run_key(&manifest), content_key(&manifest));
    let sessions = i64::try_from(manifest.sessions.len().max(1)).unwrap_or(i64::MAX);
    let mut instead = false;
    if let Some(there) = present.runs.get(&run) {
        if there.content == content {
            return Err((path, Outcome::There));
        }
        instead = sessions > there.sessions;
        if !instead {
            let reason =
                "another bundle of this run (same machine, plan and beginning) is there, with other contents";
            return refused(path, reason);
        }
    }
    let (machine, identity) = present.known.key(&manifest.machine);
    present.see(Seen {
        machine: machine.clone(),
        name: manifest.machine.name.clone(),
        installation: manifest.machine.id.clone(),
        hardware: manifest.machine.hardware.clone(),
    });
    present.runs.insert(run.clone(), Run { content: content.clone(), sessions });
    let day = started.strftime("%Y-%m-%d").to_string();
    let started_us = started.as_microsecond();
    Ok(Planned { path, at, run, machine, identity, content, started_us, day, instead, _unpacked: unpacked })
}
