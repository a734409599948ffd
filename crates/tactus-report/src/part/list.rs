//! Sentences, each with a word before it.

use tactus_model::Evidence;
use tactus_model::document::Outcome;

/// Sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// The sentences.
    pub items: Vec<Item>,
    /// Whether the word before each says what the list is, so that a terminal needs no heading.
    pub led: bool,
}

/// A sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The word before it.
    pub lead: String,
    /// The meaning of that word.
    pub mark: Mark,
    /// Its subject, by name; may be empty.
    pub name: String,
    /// The text.
    pub text: String,
    /// Where that holds; may be empty.
    pub place: String,
    /// Advice.
    pub hint: Option<String>,
}

/// The meaning of a word. Colour is never the only carrier of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Nothing beyond itself.
    #[default]
    None,
    /// How good the news is.
    Tone(Tone),
    /// The evidence of numbers.
    Evidence(Evidence),
}

/// How good news is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A heading for the items below it.
    Heading,
    /// For those who look for it.
    Quiet,
    /// As it should be.
    Good,
    /// As it should not be.
    Bad,
    /// Not known, or not all of it.
    Doubt,
}

impl From<Outcome> for Tone {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Pass => Self::Good,
            Outcome::Fail => Self::Bad,
            Outcome::Warn | Outcome::Inconclusive => Self::Doubt,
        }
    }
}

impl Item {
    /// A sentence alone.
    #[must_use]
    pub fn said(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A sentence with a word before it.
    #[must_use]
    pub fn led(lead: impl Into<String>, tone: Tone, text: impl Into<String>) -> Self {
        Self { lead: lead.into(), mark: Mark::Tone(tone), text: text.into(), ..Self::default() }
    }
}

impl From<Vec<Item>> for List {
    fn from(items: Vec<Item>) -> Self {
        Self { items, led: false }
    }
}
