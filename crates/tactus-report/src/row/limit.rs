//! One limit of a verdict: how it came out, and its figures in words.

use tactus_model::document::{LimitEntry, Outcome, Side, Verdict};

use crate::units::{beside, exactly, number};

/// How a limit came out. A limit that is kept is not decided where the verdict is not.
#[must_use]
pub const fn came_of(limit: &LimitEntry, verdict: &Verdict) -> Outcome {
    match (limit.side, limit.warns, verdict.outcome) {
        (Side::Broken, false, _) => Outcome::Fail,
        (Side::Broken, true, _) => Outcome::Warn,
        (Side::Open, ..) | (Side::Kept, _, Outcome::Inconclusive) => Outcome::Inconclusive,
        (Side::Kept, ..) => Outcome::Pass,
    }
}

/// The limit with all its digits and its unit.
#[must_use]
pub fn limit_words(limit: &LimitEntry) -> String {
    if limit.unit == "ns" { exactly(limit.limit) } else { with_unit(limit, limit.limit) }
}

/// A figure of the same quantity, with more digits where fewer would make it the limit.
#[must_use]
pub fn figure_words(limit: &LimitEntry, value: f64) -> String {
    if limit.unit == "ns" { beside(value, limit.limit) } else { with_unit(limit, value) }
}

fn with_unit(limit: &LimitEntry, value: f64) -> String {
    format!("{} {}", number(value), limit.unit).trim_end().to_owned()
}
