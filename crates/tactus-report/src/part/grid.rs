//! The table of measurements: a group of lines for each row of the bundle, in the columns of its outcome.

use tactus_model::Evidence;
use tactus_model::document::Outcome;

use super::{Head, Tone};

/// A table of rows of the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The meaning of the numbers, above the names: `latency in us`.
    pub corner: String,
    /// The columns.
    pub columns: Vec<Head>,
    /// The column that is looked at first.
    pub telling: Option<usize>,
    /// A group for each row.
    pub groups: Vec<Group>,
}

/// A row of the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The target for a link to it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The evidence of its numbers.
    pub evidence: Option<Evidence>,
    /// The verdict on its requirement.
    pub verdict: Option<Outcome>,
    /// How it was measured: what ran beside it, for how long.
    pub how: String,
    /// The conditions where it was measured, and the target of a link to them.
    pub conditions: Option<(String, String)>,
    /// Its numbers. A row of values has none; it has a line for each item instead.
    pub values: Vec<Stacked>,
    /// Replaces the numbers: how it ended, and why.
    pub instead: Option<(&'static str, Tone, String)>,
    /// Lines that explain it, and its items.
    pub lines: Vec<GridLine>,
}

/// A line below a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridLine {
    /// The kind of line.
    pub kind: LineKind,
    /// Its name.
    pub label: String,
    /// Its numbers, a column each; empty for a sentence.
    pub values: Vec<Stacked>,
    /// A sentence instead of numbers; may be empty.
    pub text: String,
}

/// The kind of a line below a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// A part of the result.
    Item,
    /// It explains the numbers above it.
    Explains,
    /// Published numbers of another source.
    Published,
    /// The difference to another row; `true` if that is other evidence.
    Against(bool),
    /// A caveat.
    Doubt,
}

/// A number, and a smaller one that belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacked {
    /// The number.
    pub first: String,
    /// Text below it, or behind it in brackets.
    pub below: String,
}

impl From<String> for Stacked {
    fn from(first: String) -> Self {
        Self { first, below: String::new() }
    }
}

impl GridLine {
    /// A line of numbers.
    #[must_use]
    pub fn numbers(kind: LineKind, label: impl Into<String>, values: Vec<Stacked>) -> Self {
        Self { kind, label: label.into(), values, text: String::new() }
    }

    /// A sentence.
    #[must_use]
    pub fn sentence(text: impl Into<String>) -> Self {
        Self { kind: LineKind::Doubt, label: String::new(), values: Vec::new(), text: text.into() }
    }
}
