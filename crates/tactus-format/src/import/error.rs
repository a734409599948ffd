//! Why a file cannot be read, and where.

use std::fmt;

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, from 1.
    Line(u64),
    /// A byte, from 0.
    Byte(u64),
    /// Nowhere in particular.
    File,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}: "),
            Self::Byte(byte) => write!(f, "byte {byte}: "),
            Self::File => Ok(()),
        }
    }
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}{what}")]
pub struct ImportError {
    /// Where.
    pub at: Place,
    /// Why.
    pub what: String,
    /// The remedy, if it is known.
    pub hint: Option<String>,
}

impl ImportError {
    /// The same, with the remedy.
    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Of a line, from 1.
    pub(super) fn line(line: u64, what: impl Into<String>) -> Self {
        Self { at: Place::Line(line), what: what.into(), hint: None }
    }

    /// Of a byte, from 0.
    pub(super) fn byte(byte: u64, what: impl Into<String>) -> Self {
        Self { at: Place::Byte(byte), what: what.into(), hint: None }
    }

    /// Of the file as a whole.
    pub(super) fn whole(what: impl Into<String>) -> Self {
        Self { at: Place::File, what: what.into(), hint: None }
    }
}
