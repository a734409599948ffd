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

/// Whether it is a limit on a quantile: `low` is then the quantile, and `high` its upper bound.
fn is_of_quantile(limit: &LimitEntry) -> bool {
    limit.unit == "ns" && limit.quantity.starts_with("p99")
}

/// The figure that is compared with a limit: of a quantile that is kept or open the measured one, of a tail its upper bound.
/// `None`: it is unknown.
#[must_use]
pub fn taken(limit: &LimitEntry) -> Option<f64> {
    let is_bounded = limit.high < f64::MAX;
    if is_of_quantile(limit) && limit.side != Side::Broken {
        return (limit.low > 0.0 || is_bounded).then_some(limit.low);
    }
    is_bounded.then_some(limit.high)
}

/// The figure of [`taken`] in words. A quantile that keeps its limit has its upper bound beside it.
#[must_use]
pub fn taken_words(limit: &LimitEntry) -> String {
    let Some(taken) = taken(limit) else { return "unknown".into() };
    let own = figure_words(limit, taken);
    let is_bounded = is_of_quantile(limit) && limit.side == Side::Kept && limit.low < limit.high;
    if is_bounded && limit.high < f64::MAX {
        format!("{own} (at most {}, 95 %)", figure_words(limit, limit.high))
    } else {
        own
    }
}

fn with_unit(limit: &LimitEntry, value: f64) -> String {
    format!("{} {}", number(value), limit.unit).trim_end().to_owned()
}
