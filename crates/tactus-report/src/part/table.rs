//! A table: cells of a few short lines.

use super::Mark;

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its heading.
    pub title: String,
    /// Its columns.
    pub head: Vec<Head>,
    /// Its cells, row by row.
    pub rows: Vec<Vec<Cell>>,
    /// Caveats, a sentence each.
    pub remarks: Vec<String>,
    /// Whether a terminal shows it all.
    pub length: Length,
}

/// How long a table is, and who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// It is read from its beginning to its end.
    Whole,
    /// It is long, and only for those who look for something in it.
    Long,
    /// Detail behind another table: a terminal only names it.
    Behind,
    /// It repeats the figure above it. A page folds it, but not its remarks.
    Drawn,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its lines, the first one with the value.
    pub lines: Vec<String>,
    /// The target for a link to it.
    pub id: Option<String>,
    /// The target of a link on its first line.
    pub link: Option<String>,
    /// The meaning of its first line.
    pub mark: Mark,
}

impl Table {
    /// A table that is read from its beginning to its end.
    #[must_use]
    pub fn whole(title: impl Into<String>, head: Vec<Head>, rows: Vec<Vec<Cell>>) -> Self {
        Self { title: title.into(), head, rows, remarks: Vec::new(), length: Length::Whole }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its heading.
    pub name: String,
    /// Whether it contains numbers, which are aligned at their ends.
    pub number: bool,
}

impl Head {
    /// A column of numbers.
    #[must_use]
    pub fn number(name: impl Into<String>) -> Self {
        Self { name: name.into(), number: true }
    }

    /// A column of words.
    #[must_use]
    pub fn words(name: impl Into<String>) -> Self {
        Self { name: name.into(), number: false }
    }

    /// Columns of words.
    #[must_use]
    pub fn all<const N: usize>(names: [&str; N]) -> Vec<Self> {
        names.map(Self::words).to_vec()
    }
}

impl Cell {
    /// A word that stands for something.
    #[must_use]
    pub fn marked(word: impl Into<String>, mark: Mark) -> Self {
        Self { mark, ..Self::from(word.into()) }
    }
}

impl From<Vec<String>> for Cell {
    fn from(lines: Vec<String>) -> Self {
        Self { lines, ..Self::default() }
    }
}

impl From<String> for Cell {
    fn from(line: String) -> Self {
        vec![line].into()
    }
}
