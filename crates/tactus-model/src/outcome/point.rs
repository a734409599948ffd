//! A point of a curve: the varied quantity and its value.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::size::Bytes;

/// For how much an item was measured: one that is a curve has a value for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Point {
    /// Bytes of memory that are worked on.
    Bytes(u64),
    /// Processes that take part.
    Processes(u64),
}

impl Point {
    /// How much.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Bytes(number) | Self::Processes(number) => number,
        }
    }

    /// Of what.
    #[must_use]
    pub const fn axis(self) -> &'static str {
        match self {
            Self::Bytes(_) => "array",
            Self::Processes(_) => "processes",
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bytes(bytes) => Bytes(bytes).fmt(f),
            Self::Processes(processes) => write!(f, "{processes} processes"),
        }
    }
}
