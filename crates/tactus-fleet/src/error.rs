//! Errors of a fleet.

use std::io;
use std::path::Path;

/// An error, and what would help.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct FleetError {
    what: String,
    /// The remedy.
    pub hint: Option<String>,
}

impl FleetError {
    /// In words, with a hint.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: Some(hint.into()) }
    }

    /// Of a file.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| Self { what: format!("{}: {error}", path.display()), hint: None }
    }

    /// Of a client of an engine, by its own words.
    pub fn client(argv: &[String], words: &str) -> Self {
        let command = argv.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(" ");
        Self::new(
            format!("{command}: {words}"),
            "this message is from the engine's own client: does the same command work in this shell?",
        )
    }
}
