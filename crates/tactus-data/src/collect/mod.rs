//! Bundles into the data set: found, verified, told apart, read, and put to the runs of their day.
//!
//! Manifests are read first: what is there already costs no more than that, and days are written one after the other,
//! whichever order the bundles come in.

mod archive;
mod day;
mod facts;
mod find;
mod sort;
mod take;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{DataError, DataSet};

use day::Batch;
use facts::History;
use find::Candidate;
use sort::{Planned, Present};

/// Bundles that are held in memory at once.
const HELD: usize = 256;

/// What became of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the data set now.
    Taken,
    /// It is there now, instead of what it had when it was collected before.
    GoneOnWith,
    /// It was there.
    There,
    /// It does not hold, or is of no use; why, in a sentence.
    Refused(String),
}

/// What became of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Taken, and gone on with.
    pub taken: usize,
    /// There already.
    pub there: usize,
    /// Refused.
    pub refused: usize,
    /// What whoever reads the data set should know, a sentence each.
    pub remarks: Vec<String>,
}

impl Summary {
    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Taken | Outcome::GoneOnWith => self.taken += 1,
            Outcome::There => self.there += 1,
            Outcome::Refused(_) => self.refused += 1,
        }
    }
}

/// Collects bundles, directories of bundles and their archives into a data set. `tell` is called with what became of
/// each; a bundle that does not hold ends nothing.
///
/// # Errors
/// When the data set cannot be read or written. What was written until then stays.
pub fn collect(
    places: &[PathBuf],
    into: &Path,
    tell: &mut dyn FnMut(&Path, &Outcome),
) -> Result<Summary, DataError> {
    let data = DataSet::open_to_write(into)?;
    let mut summary = Summary::default();
    let mut told = |path: &Path, outcome: &Outcome, summary: &mut Summary| {
        summary.count(outcome);
        tell(path, outcome);
    };
    let found = find::find(places);
    for (path, reason) in &found.refused {
        told(path, &Outcome::Refused(reason.clone()), &mut summary);
    }
    let mut present = Present::read(&data)?;
    let mut history = History::read(&data, &present)?;
    let mut planned: Vec<Planned> = Vec::new();
    for candidate in found.candidates {
        match sort::sort(candidate, &mut present) {
            Ok(one) => planned.push(one),
            Err((path, outcome)) => told(&path, &outcome, &mut summary),
        }
    }
    summary.remarks = present.remarks();
    // The runs of a machine in the order of their time: what changed is told against the one before.
    planned.sort_by(|one, other| (one.started_us, &one.run).cmp(&(other.started_us, &other.run)));
    while let Some(first) = planned.first() {
        let mut batch = Batch::of(&first.day);
        let many = planned.iter().take(HELD).take_while(|one| one.day == first.day).count();
        let now: Vec<Planned> = planned.drain(..many).collect();
        for (one, read) in now.iter().zip(all(&now)) {
            let outcome = match read {
                Ok(read) => {
                    batch.add(one, read, &mut history);
                    if one.instead { Outcome::GoneOnWith } else { Outcome::Taken }
                }
                Err(reason) => Outcome::Refused(reason),
            };
            told(one.path(), &outcome, &mut summary);
        }
        present.save_machines(&data)?;
        batch.save(&data)?;
    }
    Ok(summary)
}

/// Reads bundles, as many at once as there are CPUs.
fn all(planned: &[Planned]) -> Vec<Result<take::Read, String>> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<take::Read, String>>>> =
        planned.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(planned.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(one), Some(into)) = (planned.get(at), done.get(at)) else { break };
                    let read = take::take(one);
                    if let Ok(mut into) = into.lock() {
                        *into = Some(read);
                    }
                }
            });
        }
    });
    let read = |one: Mutex<Option<_>>| one.into_inner().ok().flatten();
    done.into_iter().map(|one| read(one).unwrap_or_else(|| Err("it could not be read".into()))).collect()
}
