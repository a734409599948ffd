//! What a generator makes.

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

/// What a generator made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The files.
    pub files: Vec<File>,
    /// What the user should know, also of what was left out, a sentence each.
    pub notes: Vec<String>,
}
