//! Selects the bundles to read: runs that are not in the data set yet, each once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use tactus_format::export::table::Cell;

use super::Outcome;
use super::claim::Claim;
use super::find::{At, Candidate};
use crate::identity::{Identity, Known, MOST_SAID, copies, cut};
use crate::table::{MACHINE, RUN, Seen, columns};
use crate::{DataError, DataSet};

/// The only file of the machines.
const ALL: &str = "all";

/// A bundle that is to be read.
#[derive(Debug)]
pub struct Planned {
    path: PathBuf,
    /// Where it lies.
    pub at: At,
    /// Its claims about itself.
    pub claim: Claim,
}

impl Planned {
    /// As it is called.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The place of a verified bundle in the data set.
#[derive(Debug)]
pub struct Entered {
    /// Key of its machine.
    pub machine: String,
    /// How that is known.
    pub identity: Identity,
    /// Whether its run was there already, with less.
    pub instead: bool,
}

impl Entered {
    /// Says in the rows of `run` which machine it is.
    pub fn tell(&self, rows: &mut [Vec<Cell<'static>>]) {
        let told = [("machine", self.machine.clone()), ("identity", self.identity.word().to_owned())];
        for (name, text) in told {
            let Some(at) = (RUN.columns)().iter().position(|column| column.name == name) else { continue };
            rows.iter_mut()
                .filter_map(|row| row.get_mut(at))
                .for_each(|cell| *cell = Cell::Text(text.clone().into()));
        }
    }
}

/// The bundles of one run, the first to be tried at the front: of one that does not hold another may.
pub type OfRun = VecDeque<Planned>;

/// Bundles by run, in the order of their time, because changes are told against the run before. Bundles of
/// one run with more sessions come first.
pub fn by_run(planned: Vec<Planned>) -> VecDeque<OfRun> {
    let mut runs: BTreeMap<(i64, String), Vec<Planned>> = BTreeMap::new();
    for one in planned {
        runs.entry((one.claim.started_us, one.claim.run.clone())).or_default().push(one);
    }
    let ordered = |mut all: Vec<Planned>| {
        all.sort_by_key(|one| std::cmp::Reverse(one.claim.sessions));
        all.into()
    };
    runs.into_values().map(ordered).collect()
}

/// A run that is there.
#[derive(Clone, Debug)]
struct Run {
    content: String,
    sessions: i64,
}

/// The contents of the data set.
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

    /// The outcome for a bundle whose run is in the data set already; `None` if it must be read.
    pub fn already(&self, claim: &Claim) -> Option<Outcome> {
        let there = self.runs.get(&claim.run)?;
        if there.content == claim.content {
            return Some(Outcome::There);
        }
        let reason = "another bundle of this run (same machine, plan and start) exists, with other contents";
        (claim.sessions <= there.sessions).then(|| Outcome::Refused(reason.to_owned()))
    }

    /// Records a verified bundle and its machine. Refused bundles are not recorded.
    pub fn enter(&mut self, claim: &Claim) -> Entered {
        let own = &claim.machine;
        let (machine, identity) = self.known.key(own);
        self.see(Seen {
            machine: machine.clone(),
            name: own.name.clone(),
            installation: own.id.clone(),
            hardware: own.hardware.clone(),
        });
        let run = Run { content: claim.content.clone(), sessions: claim.sessions };
        self.of.insert(claim.run.clone(), (machine.clone(), claim.started_us));
        let instead = self.runs.insert(claim.run.clone(), run).is_some();
        Entered { machine, identity, instead }
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

    /// Remarks about the machines: names that several share, and machines that are known by their names
    /// alone.
    pub fn remarks(&self, until_us: i64) -> Vec<String> {
        let mut by_name: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut by_installation: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut by_machine: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for seen in &self.machines {
            by_name.entry(&seen.name).or_default().insert(&seen.machine);
            by_machine.entry(&seen.machine).or_default().insert(&seen.name);
            if let Some(installation) = &seen.installation {
                by_installation.entry(installation).or_default().insert(&seen.machine);
            }
        }
        let mut remarks = Vec::new();
        let future: BTreeSet<&str> = self
            .of
            .values()
            .filter(|(_, started)| *started > until_us)
            .map(|(machine, _)| machine.as_str())
            .collect();
        let called =
            |machine: &str| self.machines.iter().find(|seen| seen.machine == machine).map(|seen| &seen.name);
        if !future.is_empty() {
            let named: Vec<&str> = future
                .iter()
                .take(5)
                .filter_map(|machine| called(machine))
                .map(|name| cut(name, MOST_SAID))
                .collect();
            remarks.push(format!(
                "{} machines have runs from the future, and a wrong clock: {}",
                future.len(),
                named.join(", ")
            ));
        }
        for (name, machines) in by_name.iter().filter(|(_, machines)| machines.len() > 1) {
            remarks.push(format!(
                "{} machines are called `{}`: they are kept apart (TACTUS_MACHINE gives one another name)",
                machines.len(),
                cut(name, MOST_SAID)
            ));
        }
        remarks.extend(copies(&by_machine));
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
                "{} machines reported only their names: others with the same name would be taken for them",
                names.len()
            ));
        }
        remarks
    }
}

/// Whether a bundle is to be read; what became of it, if not.
pub fn sort(candidate: Candidate, present: &Present) -> Result<Planned, (PathBuf, Outcome)> {
    let Candidate { path, at, claim } = candidate;
    match present.already(&claim) {
        Some(outcome) => Err((path, outcome)),
        None => Ok(Planned { path, at, claim }),
    }
}
