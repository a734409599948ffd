//! Frequent mistakes in tuning, and whether they affect this system.

mod boot;
mod context;
mod elsewhere;
mod guests;
mod runtime;
#[cfg(test)]
mod tests;

use serde::Serialize;
use tactus_model::change::{Change, Target};

use context::Look;
use tactus_audit::Subject;

/// A known pitfall.
pub struct Pitfall {
    /// Its number in the knowledge base, 1 to 31.
    pub number: u8,
    /// In a few words.
    pub title: &'static str,
    /// The effect, and the remedy.
    pub text: &'static str,
    /// Where it is checked.
    pub scope: Scope,
    /// Names of settings that run into it: checks, kernel parameters, or the ends of paths.
    pub settings: &'static [&'static str],
}

/// Where a pitfall is checked.
#[derive(Clone, Copy)]
pub enum Scope {
    /// Here: a sentence about this system and plan when it lies on the way.
    Plan(fn(&Look<'_>) -> Option<String>),
    /// Elsewhere, for it concerns what is generated or measured: by this command.
    Elsewhere(&'static str),
}

/// A pitfall that lies on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Its number.
    pub number: u8,
    /// In a few words.
    pub title: &'static str,
    /// The effect, and the remedy.
    pub text: &'static str,
    /// The situation on this system.
    pub here: String,
}

/// All of them, by number.
pub fn all() -> impl Iterator<Item = &'static Pitfall> {
    let mut all: Vec<&'static Pitfall> =
        [boot::PITFALLS, runtime::PITFALLS, guests::PITFALLS, elsewhere::PITFALLS]
            .into_iter()
            .flatten()
            .collect();
    all.sort_by_key(|pitfall| pitfall.number);
    all.into_iter()
}

/// The pitfalls that lie on the way of these changes on this system.
#[must_use]
pub fn warnings(subject: &Subject<'_>, changes: &[&Change]) -> Vec<Warning> {
    let look = Look::new(subject, changes);
    all()
        .filter_map(|pitfall| {
            let Scope::Plan(applies) = pitfall.scope else { return None };
            let here = applies(&look)?;
            Some(Warning { number: pitfall.number, title: pitfall.title, text: pitfall.text, here })
        })
        .collect()
}

/// Whether a change is one of those that run into a pitfall.
#[must_use]
pub fn concerns(number: u8, change: &Change) -> bool {
    let Some(pitfall) = all().find(|pitfall| pitfall.number == number) else { return false };
    let name = match &change.target {
        Target::File { path, .. } => path.rsplit('/').next().unwrap_or(path),
        Target::Kernel { parameter } | Target::Module { parameter, .. } => parameter,
        Target::DropIn { key, .. } => key,
        Target::Service { unit } => unit,
        Target::Scheduling(_) | Target::Affinity(_) => "",
    };
    pitfall.settings.iter().any(|setting| *setting == name || *setting == change.check)
}
