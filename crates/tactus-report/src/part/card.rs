//! The answer to one question, with the numbers behind it.

use super::Tone;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The question.
    pub title: String,
    /// The two sides of the comparison.
    pub pair: String,
    /// The claim that it answers, quoted.
    pub quote: Option<String>,
    /// The answer in a few words.
    pub answer: String,
    /// The kind of the answer: `Doubt` without an answer, `Bad` for an effect, `Good` for no effect.
    pub tone: Tone,
    /// The answer for each quantity, a short sentence each: a page shows these, and folds the numbers. Empty: it shows
    /// the numbers.
    pub plain: Vec<String>,
    /// The numbers, a sentence each.
    pub sentences: Vec<String>,
    /// A caveat to read before the numbers are used.
    pub caution: Option<String>,
    /// How they were measured and judged.
    pub method: Option<String>,
}
