//! The notes of a run, each one once, with where it was made.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::bundle::Contents;
use tactus_model::message::{Note, NoteKind};

use super::alike::Alike;
use super::attribution::attribution_notes;

/// A note and the environments that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The note.
    pub note: Note,
    /// The environments, in order; empty for the run as a whole.
    pub environments: Vec<String>,
}

/// All notes of a kind, in the order in which they were first made, followed by those that the results imply.
/// Notes that differ only in amounts are one note, with the range of the amounts.
#[must_use]
pub fn remarks(contents: &Contents, kind: NoteKind) -> Vec<Remark> {
    let of_rows = contents
        .rows
        .iter()
        .flat_map(|row| row.result.notes.iter().map(|note| (Some(&row.result.environment), note)));
    let derived = attribution_notes(contents);
    let derived = derived.iter().map(|(environment, note)| (Some(environment), note));
    let of_run = contents.notes.iter().map(|(environment, note)| (environment.as_ref(), note));
    let mut all: Vec<(Remark, Alike)> = Vec::new();
    // Where each is, and which environment made it: a hostile bundle may contain very many.
    let (mut places, mut made) = (BTreeMap::new(), BTreeSet::new());
    for (environment, note) in of_run.chain(of_rows).chain(derived).filter(|(_, note)| note.kind == kind) {
        let own = Alike::of(&note.text);
        let at = *places.entry((own.key(), &note.hint)).or_insert_with(|| {
            all.push((Remark { note: note.clone(), environments: Vec::new() }, own.clone()));
            all.len() - 1
        });
        all[at].1.absorb(own);
        if let Some(environment) = environment.filter(|name| made.insert((at, *name))) {
            all[at].0.environments.push(environment.clone());
        }
    }
    let said = |(remark, alike): (Remark, Alike)| {
        let text = alike.text();
        Remark { note: Note { text, ..remark.note }, ..remark }
    };
    all.into_iter().map(said).collect()
}
