//! Which question a run answers: whether a deadline was held; without one, what settings are worth; without those, what
//! was held; and where values were measured and no latency, what environments cost.

use tactus_model::bundle::Contents;

use super::{costs, held, next, required, tested};
use crate::part::{Answer, Tone};
use crate::stats::comparison;

/// The question that a run answers.
#[must_use]
pub fn question(contents: &Contents) -> &'static str {
    match answer(contents).word {
        costs::SHOWN | costs::NONE_SHOWN | costs::NOT_JUDGED => "What does each environment cost?",
        _ => "Can this machine hold the deadline?",
    }
}

/// The answer of a run.
#[must_use]
pub fn answer(contents: &Contents) -> Answer {
    let lines = comparison(contents);
    if let Some(decided) = required::answer(&lines) {
        let next = decided.next.or_else(|| next::step(contents));
        return Answer { next, ..decided };
    }
    if let Some(worth) = tested::answer(contents) {
        return worth;
    }
    if let Some(held) = held::answer(&lines) {
        return Answer { next: next::step(contents), ..held };
    }
    if let Some(cost) = costs::answer(contents) {
        return cost;
    }
    let sentence = match lines.iter().any(crate::stats::Line::has_numbers) {
        true => "no latency was measured, and no deadline was asked for: the values are in the tables below",
        false => "nothing was measured",
    };
    Answer {
        word: "NO ANSWER",
        tone: Tone::Doubt,
        sentence: format!("{sentence}."),
        evidence: Vec::new(),
        next: None,
    }
}
