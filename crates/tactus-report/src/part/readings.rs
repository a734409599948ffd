//! What is folded away until somebody asks for it.

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
    /// What was found, in a sentence.
    pub said: String,
    /// What is behind it: a word and a text.
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
    /// What was read.
    pub name: String,
    /// What it said, in lines.
    pub text: String,
    /// Whether it is there at all.
    pub there: bool,
}
