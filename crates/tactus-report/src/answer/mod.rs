//! The answer of a run to its user: can this machine hold my deadline? It is one sentence, the evidence
//! behind it, and the most helpful next step.

mod cases;
mod chosen;
mod closing;
mod conditions;
mod costs;
mod headline;
mod held;
mod next;
mod required;
mod scale;
mod tested;

use tactus_model::Evidence;

pub use cases::{Asked, Came, Case, asked, cases};
pub use chosen::{answer, question};
pub use closing::{Closed, closing};
pub(crate) use conditions::conditions;
pub use headline::{headline, without_rows};
pub use next::called_again;
pub(crate) use required::rank;
pub use scale::{PUBLISHED, Published};

/// The kind that was measured most, wake-ups before others. Gaps, wake-ups and answers to interrupts are
/// different things, so a sentence or figure has only one of them.
#[must_use]
pub fn most_measured<'a>(words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let all: Vec<&str> = words.collect();
    let many = |of: &str| all.iter().filter(|word| **word == of).count();
    all.iter().copied().max_by_key(|word| (many(word), *word == "timer"))
}

/// Each kind of evidence once, the strongest first.
fn kinds(of: impl Iterator<Item = Evidence>) -> Vec<Evidence> {
    let mut kinds: Vec<Evidence> = of.collect();
    kinds.sort_by_key(|kind| *kind as u8);
    kinds.dedup();
    kinds
}
