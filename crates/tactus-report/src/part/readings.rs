//! Readings that are folded until a reader opens them.

use super::Tone;

/// A finding of an audit, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is, in a word.
    pub severity: String,
    /// The same, for the eye.
    pub tone: Tone,
    /// Its name.
    pub name: String,
    /// The finding, in a sentence.
    pub said: String,
    /// The details: a word and a text each.
    pub parts: Vec<(&'static str, String)>,
}

/// All readings of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readings {
    /// The place.
    pub name: String,
    /// Its readings, but for those that are as in another place.
    pub all: Vec<Reading>,
    /// How many are, and where.
    pub same: Option<(usize, String)>,
}

/// A reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Name of the reading.
    pub name: String,
    /// Its text, in lines.
    pub text: String,
    /// Whether it is there at all.
    pub there: bool,
}
