//! The document of `tactus report --json`.

use tactus_model::bundle::{Contents, FORMAT};
use tactus_model::document::{Document, RunEntry, RunNote};

use crate::row::entry;
use crate::section::SECTIONS;

/// A run in numbers: one entry per row, in the plan's order, and what each section has to add.
#[must_use]
pub fn document(contents: &Contents) -> Document {
    let mut document = Document {
        format: FORMAT,
        status: contents.manifest.status,
        run: Some(run(contents)),
        answer: None,
        scenarios: contents.rows.iter().map(|row| entry(contents, row)).collect(),
        repeated: Vec::new(),
        damage: contents.damage.clone(),
        claims: Vec::new(),
        proofs: Vec::new(),
        matrices: Vec::new(),
        systems: Vec::new(),
        separation: None,
        technologies: Vec::new(),
        partitions: Vec::new(),
        degradations: Vec::new(),
        network: Vec::new(),
        caches: Vec::new(),
        fitness: Vec::new(),
        interrupts: Vec::new(),
        audits: Vec::new(),
    };
    for section in SECTIONS {
        section.fill(contents, &mut document);
    }
    document
}

/// The run: what was measured where, by which version and when.
fn run(contents: &Contents) -> RunEntry {
    let manifest = &contents.manifest;
    let note = |(environment, note): &(Option<String>, _)| RunNote {
        environment: environment.clone(),
        note: Clone::clone(note),
    };
    RunEntry {
        plan: manifest.plan.clone(),
        plan_sha256: manifest.files.get("plan.toml").cloned(),
        tactus: manifest.tactus.clone(),
        started: manifest.started.clone(),
        finished: manifest.finished.clone(),
        sessions: manifest.sessions.len().max(1),
        machine: manifest.machine.clone(),
        job: manifest.sessions.first().and_then(|session| session.job.clone()),
        notes: contents.notes.iter().map(note).collect(),
    }
}
