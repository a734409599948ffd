//! `tactus audit --list`: the catalogue.

use std::fmt::Write;

use serde::Serialize;
use tactus_audit::{Applies, Check, FAMILIES, Reversible, SetBy, Source, all};
use tactus_model::finding::Severity;

use crate::exit::{Exit, Failure};
use crate::output;

/// An entry of `tactus audit --list --json`: a stable contract.
#[derive(Debug, Serialize)]
struct Entry {
    id: &'static str,
    title: &'static str,
    family: &'static str,
    source: &'static [Source],
    severity: Severity,
    applies: &'static [Applies],
    arch: tactus_audit::Arch,
    set: &'static [SetBy],
    reversible: Reversible,
}

impl Entry {
    fn of((family, check): (&'static str, &'static Check)) -> Self {
        Self {
            id: check.id,
            title: check.title,
            family,
            source: check.sources,
            severity: check.severity,
            applies: check.applies,
            arch: check.arch,
            set: check.set,
            reversible: check.reversible,
        }
    }
}

pub fn list(json: bool) -> Result<Exit, Failure> {
    let entries: Vec<Entry> = all().map(Entry::of).collect();
    if json {
        output::json(&entries)?;
        return Ok(Exit::Good);
    }
    let mut text = String::new();
    for family in FAMILIES {
        let _ = writeln!(text, "{}", family.title);
        for entry in entries.iter().filter(|entry| entry.family == family.title) {
            let _ = writeln!(text, "  {:<24} {:<8} {}", entry.id, entry.severity, entry.title);
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{} checks; `tactus explain ID` prints one in full", entries.len());
    output::text(&text)?;
    Ok(Exit::Good)
}
