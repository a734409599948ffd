//! All words that `tactus explain` knows.

use tactus_audit as audit;
use tactus_environment::ENVIRONMENTS;
use tactus_fleet::ENGINES;
use tactus_format::export::EXPORTS;
use tactus_model::catalogue::{fault, load, measure};
use tactus_report::render::FORMATS;
use tactus_run::plan::STUDIES;
use tactus_tune::generate::GENERATORS;

use crate::glossary::TERMS;

/// All words that are explained, and those for which others are written.
pub fn words() -> Vec<&'static str> {
    let families = [measure::MEASURES, load::LOADS, fault::FAULTS];
    let mut words: Vec<&str> = ENVIRONMENTS.iter().map(|environment| environment.kind()).collect();
    words.extend(families.iter().flat_map(|family| family.iter()).map(|entry| entry.name));
    words.extend(STUDIES.iter().map(|study| study.name));
    words.extend(GENERATORS.iter().map(|generator| generator.name));
    words.extend(ENGINES.iter().map(|engine| engine.name()));
    words.extend(FORMATS.iter().map(|format| format.name));
    words.extend(EXPORTS.iter().map(|format| format.name));
    words.extend(audit::all().map(|(_, check)| check.id));
    words.extend(TERMS.iter().flat_map(|term| std::iter::once(term.word).chain(term.also.iter().copied())));
    words
}

/// The studies that ship with tactus.
pub fn studies() -> Vec<&'static str> {
    STUDIES.iter().map(|study| study.name).collect()
}

/// The formats of a report.
pub fn formats() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

/// The formats of an export.
pub fn exports() -> Vec<&'static str> {
    EXPORTS.iter().map(|format| format.name).collect()
}

/// What starts jobs on many machines.
pub fn engines() -> Vec<&'static str> {
    ENGINES.iter().map(|engine| engine.name()).collect()
}

/// What files are generated for.
pub fn generators() -> Vec<&'static str> {
    GENERATORS.iter().map(|generator| generator.name).collect()
}
