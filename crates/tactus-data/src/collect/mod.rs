//! Bundles into the data set: found, verified, told apart, read, and put to the runs of their day.
//!
//! Manifests are read first: a bundle that is in the data set already costs no more than that. Days are
//! written one after the other, in any order of the bundles.

mod archive;
mod claim;
mod day;
mod facts;
mod find;
mod reason;
mod sort;
mod take;
mod unpack;

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use crate::table::RUN;
use crate::{AHEAD_US, DataError, DataSet};

use day::Batch;
use facts::History;
use find::Found;
use sort::{OfRun, Planned, Present};
use unpack::Archives;

/// Bundles that are read before it is looked whether what is held is enough.
const AT_ONCE: usize = 16;
/// Most days that are new to a data set in one call: each is a file of every table, and a few kilobytes of manifests may
/// name any of them.
const MOST_NEW_DAYS: usize = 400;

/// The outcome for a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the data set now.
    Taken,
    /// It is in the data set now, and replaces its earlier state.
    GoneOnWith,
    /// It was there.
    There,
    /// It does not hold, or is of no use; why, in a sentence.
    Refused(String),
}

/// The outcomes of all bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Taken, or continued.
    pub taken: usize,
    /// There already.
    pub there: usize,
    /// Refused.
    pub refused: usize,
    /// Remarks for readers of the data set, a sentence each.
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

/// Collects bundles, directories of bundles and their archives into a data set. It calls `tell` with the
/// outcome for each; an invalid bundle does not end the collection.
///
/// # Errors
/// When the data set cannot be read or written. The data written until then stays.
pub fn collect(
    places: &[PathBuf],
    into: &Path,
    tell: &mut dyn FnMut(&Path, &Outcome),
) -> Result<Summary, DataError> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    collect_at(places, into, now, tell)
}

/// The same at a moment since 1970.
///
/// # Errors
/// As those of [`collect`].
pub fn collect_at(
    places: &[PathBuf],
    into: &Path,
    now: Duration,
    tell: &mut dyn FnMut(&Path, &Outcome),
) -> Result<Summary, DataError> {
    let until_us = i64::try_from(now.as_micros()).unwrap_or(i64::MAX).saturating_add(AHEAD_US);
    let data = DataSet::open_to_write(into)?;
    let mut present = Present::read(&data)?;
    let mut own = Collecting {
        history: History::read(&data, &present, until_us)?,
        days: data.days(&RUN)?.into_iter().collect(),
        new_days: 0,
        summary: Summary::default(),
        data: &data,
        present: &mut present,
        tell,
    };
    let mut found = find::find(places);
    let mut archives = Archives::new(std::mem::take(&mut found.archives), data.working_directory()?);
    // Archives for which there is room are read together with the directories, because the changes of a
    // machine are told in the order of its runs.
    archives.unpack_into(&mut found);
    own.take(found)?;
    while !archives.is_empty() {
        let mut found = Found::default();
        archives.unpack_into(&mut found);
        own.take(found)?;
    }
    let mut summary = own.summary;
    data.remove_working_directory()?;
    summary.remarks = present.remarks(until_us);
    Ok(summary)
}

/// A data set while bundles come.
struct Collecting<'a> {
    data: &'a DataSet,
    present: &'a mut Present,
    history: History,
    /// The days that have a file, and how many of them are new.
    days: BTreeSet<String>,
    new_days: usize,
    summary: Summary,
    tell: &'a mut dyn FnMut(&Path, &Outcome),
}

impl Collecting<'_> {
    fn told(&mut self, path: &Path, outcome: &Outcome) {
        self.summary.count(outcome);
        (self.tell)(path, outcome);
    }

    fn take(&mut self, found: Found) -> Result<(), DataError> {
        for (path, reason) in found.refused {
            self.told(&path, &Outcome::Refused(reason));
        }
        let mut planned: Vec<Planned> = Vec::new();
        for candidate in found.candidates {
            match sort::sort(candidate, self.present) {
                Ok(one) => planned.push(one),
                Err((path, outcome)) => self.told(&path, &outcome),
            }
        }
        let mut runs = sort::by_run(planned);
        while let Some(day) = runs.front().and_then(day_of).map(str::to_owned) {
            if self.new_days >= MOST_NEW_DAYS && !self.days.contains(&day) {
                self.refuse_first(&mut runs);
                continue;
            }
            let mut batch = Batch::of(&day);
            while !batch.is_full() {
                let of_day = |run: &&OfRun| day_of(run) == Some(&day);
                let many = runs.iter().take(AT_ONCE).take_while(of_day).count();
                if many == 0 {
                    break;
                }
                let now = runs.drain(..many).collect();
                self.add(now, &mut batch);
            }
            self.present.save_machines(self.data)?;
            let any = !batch.is_empty();
            batch.save(self.data)?;
            self.new_days += usize::from(any && self.days.insert(day));
        }
        Ok(())
    }

    /// Refuses the first run: its day would be one too many.
    fn refuse_first(&mut self, runs: &mut VecDeque<OfRun>) {
        let reason = format!(
            "this call adds more than {MOST_NEW_DAYS} new days, each with separate files: collect again, or \
                in parts"
        );
        for one in runs.pop_front().into_iter().flatten() {
            self.told(one.path(), &Outcome::Refused(reason.clone()));
        }
    }

    /// Puts of each run the first bundle that holds to the others of its day.
    fn add(&mut self, mut runs: Vec<OfRun>, batch: &mut Batch) {
        // The bundle of each run that is valid, in their order.
        let mut holds: Vec<Option<(Planned, take::Read)>> = runs.iter().map(|_| None).collect();
        loop {
            let open = runs.iter_mut().zip(&mut holds).filter(|(_, holds)| holds.is_none());
            let (now, into): (Vec<Planned>, Vec<_>) =
                open.filter_map(|(run, into)| Some((run.pop_front()?, into))).unzip();
            if now.is_empty() {
                break;
            }
            let read = all(&now);
            for ((one, read), into) in now.into_iter().zip(read).zip(into) {
                match read {
                    Ok(read) => *into = Some((one, read)),
                    Err(reason) => self.told(one.path(), &Outcome::Refused(reason)),
                }
            }
        }
        for (one, read) in holds.into_iter().flatten() {
            let entered = self.present.enter(&one.claim);
            batch.add(&one.claim, &entered, read, &mut self.history);
            let outcome = if entered.instead { Outcome::GoneOnWith } else { Outcome::Taken };
            self.told(one.path(), &outcome);
        }
        // Bundles that did not have to be read.
        for rest in runs.into_iter().flatten() {
            if let Some(outcome) = self.present.already(&rest.claim) {
                self.told(rest.path(), &outcome);
            }
        }
    }
}

/// The day of a run.
fn day_of(run: &OfRun) -> Option<&str> {
    run.front().map(|one| one.claim.day.as_str())
}

/// Reads bundles, on all CPUs.
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
