//! The kinds of parts.

use super::{Answer, Card, Finding, Grid, List, Readings, Table};
use crate::figure::Figure;

/// The reader of a section. A section tells each reader as much as it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A user at a terminal: the decisive facts, in as few lines as possible.
    Terminal,
    /// Readers of an issue or a README.
    Markdown,
    /// A colleague with the whole page: everything, with figures.
    Page,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// The answer to the question that the report is opened with.
    Answer(Answer),
    /// A heading within the section, and what a link may lead to it by.
    Heading(String, Option<String>),
    /// A sentence that a reader must know.
    Remark(String),
    /// Sentences, each with a word before it.
    List(List),
    /// A table of words and numbers.
    Table(Table),
    /// Small tables of one kind, beside each other where there is room.
    Tables(Vec<Table>),
    /// The measurements: the rows of the bundle, in the columns of their outcome.
    Grid(Grid),
    /// Answers to questions, each with its numbers.
    Cards(Vec<Card>),
    /// A drawing.
    Figure(Figure),
    /// A finding, folded.
    Finding(Finding),
    /// Everything that was read, folded, to be searched.
    Readings(Vec<Readings>),
    /// A text as it is, folded: its heading and its lines.
    Source(String, String),
    /// Repeats in full what another part shows in short: a page folds it below a sentence.
    Folded(String, Vec<Part>),
}

impl Part {
    /// Whether it needs no heading to be understood.
    #[must_use]
    pub fn names_itself(&self) -> bool {
        match self {
            Self::Table(table) => !table.title.is_empty(),
            Self::List(list) => list.led,
            Self::Answer(_) | Self::Heading(..) | Self::Grid(_) | Self::Cards(_) | Self::Figure(_) => true,
            Self::Folded(_, parts) => parts.first().is_some_and(Self::names_itself),
            Self::Remark(_) | Self::Tables(_) | Self::Finding(_) | Self::Readings(_) | Self::Source(..) => {
                false
            }
        }
    }

    /// Its drawings, folded or not.
    #[must_use]
    pub fn figures(self) -> Vec<Figure> {
        match self {
            Self::Figure(figure) => vec![figure],
            Self::Folded(_, parts) => parts.into_iter().flat_map(Self::figures).collect(),
            _ => Vec::new(),
        }
    }
}
