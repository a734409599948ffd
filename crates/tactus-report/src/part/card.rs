//! The answer to one question, with the numbers behind it.

use super::Tone;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The question.
    pub title: String,
    /// What is held against what.
    pub pair: String,
    /// What somebody claims.
    pub quote: Option<String>,
    /// The answer in a few words.
    pub answer: String,
    /// What kind of answer it is: `Doubt` where there is none, `Bad` for an effect, `Good` for none.
    pub tone: Tone,
    /// The numbers, a sentence each.
    pub sentences: Vec<String>,
    /// What must be known before the numbers are used.
    pub caution: Option<String>,
    /// How they were come by.
    pub method: Option<String>,
}
