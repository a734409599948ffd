//! The output of a generator.

use serde::Serialize;

/// A generated file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Where it belongs; with a `…` where that is the user's choice.
    pub belongs: String,
    /// Its mode, as chmod(2) takes it.
    pub mode: u32,
    /// Its text.
    pub text: String,
}

/// The output of a generator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The files.
    pub files: Vec<File>,
    /// Notes for the user, also on settings that were left out, a sentence each.
    pub notes: Vec<String>,
}
