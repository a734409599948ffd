//! The transaction: all is done, or nothing.

use std::io;

use tactus_system::System;
use tracing::warn;

use super::ours::is_ours;
use super::undo::{Undone, undo_all};
use super::{Action, Entry, Failed, Journal};

/// How many quick steps are written down at once: a sync of the disk takes milliseconds.
const TOGETHER: usize = 256;

/// A step, and the check that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Id of the check, or the profile's word.
    pub check: String,
    /// The action.
    pub action: Action,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done, and the system says what was asked for.
    Done,
    /// It was done, and the system says something else.
    Says(String),
    /// It was refused, and the rest was done without it.
    Refused(Failed),
}

/// Why a transaction was taken back, and what became of that.
#[derive(Debug)]
pub struct Broken {
    /// The step that failed; its check and why.
    pub check: String,
    /// Why.
    pub failed: Failed,
    /// Steps that could not be taken back.
    pub left: Vec<(Entry, Undone)>,
}

/// Does everything in order, each step written down before. When one fails, all are taken back,
/// newest first.
///
/// # Errors
/// The first step that failed.
pub fn commit(
    system: &dyn System,
    journal: &mut Journal<'_>,
    boot: &str,
    steps: &[Step],
) -> Result<Vec<Outcome>, Box<Broken>> {
    if let Some(step) = steps.iter().find(|step| !is_ours(&step.action)) {
        let failed = Failed {
            what: step.action.to_string(),
            word: "this cannot be reverted: tactus does not know the form of the current value".into(),
            hint: "leave it out with --without, and report it".into(),
            bearable: false,
        };
        return Err(Box::new(Broken { check: step.check.clone(), failed, left: Vec::new() }));
    }
    let mut did: Vec<Entry> = Vec::new();
    let mut outcomes = Vec::new();
    for batch in batches(steps) {
        if let Err((check, failed)) = together(system, journal, boot, batch, &mut did, &mut outcomes) {
            warn!(check, why = failed.word, "a step failed, so all are reverted: {}", failed.what);
            let (_, left) = undo_all(system, journal, &did, boot, false);
            return Err(Box::new(Broken { check, failed, left }));
        }
    }
    Ok(outcomes)
}

/// Quick steps in groups, others alone.
fn batches(steps: &[Step]) -> impl Iterator<Item = &[Step]> {
    steps
        .chunk_by(|one, other| one.action.is_quick() && other.action.is_quick())
        .flat_map(|quick| quick.chunks(TOGETHER))
}

fn together(
    system: &dyn System,
    journal: &mut Journal<'_>,
    boot: &str,
    batch: &[Step],
    did: &mut Vec<Entry>,
    outcomes: &mut Vec<Outcome>,
) -> Result<(), (String, Failed)> {
    let whose = || batch.first().map(|step| step.check.clone()).unwrap_or_default();
    let actions: Vec<&Action> = batch.iter().map(|step| &step.action).collect();
    let first = journal.intend(boot, &actions).map_err(|error| (whose(), unwritten(&error)))?;
    let (mut done, mut refused) = (Vec::new(), Vec::new());
    let mut broken = None;
    for (id, step) in (first..).zip(batch) {
        let action = step.action.clone();
        match action.act(system) {
            Ok(()) => {
                let reads = action.current(system).unwrap_or_default();
                let good = action.then().is_none_or(|then| action.same(&reads, then));
                outcomes.push(if good { Outcome::Done } else { Outcome::Says(reads.trim().to_owned()) });
                done.push((id, reads.clone()));
                did.push(Entry { id, boot: boot.to_owned(), action, reads: Some(reads), unfinished: true });
            }
            Err(failed) if failed.bearable => {
                refused.push(id);
                outcomes.push(Outcome::Refused(failed));
            }
            Err(failed) => {
                // It may have done half of what it does.
                did.push(Entry { id, boot: boot.to_owned(), action, reads: None, unfinished: true });
                broken = Some((step.check.clone(), failed));
                break;
            }
        }
    }
    if let Some(broken) = broken {
        return Err(broken);
    }
    let written = journal.done(done).and_then(|()| journal.undone(&refused));
    written.map_err(|error| (whose(), unwritten(&error)))
}

fn unwritten(error: &io::Error) -> Failed {
    Failed {
        what: "write the journal".into(),
        word: error.to_string(),
        hint: "tactus changes nothing that it cannot log: make room, or make the directory writable".into(),
        bearable: false,
    }
}
