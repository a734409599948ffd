//! A cell of the separation in a word, and where a link finds it.

use tactus_model::bundle::slug;
use tactus_model::document::{Doubt, Leak, LeakEntry};

use super::judge::percent;

/// Whether a disturbance is seen. If not, how often it may still be: `no (<= 9.8 %)`. If that is unknown, the
/// reason: `not known: noise`.
#[must_use]
pub fn known(cell: &LeakEntry) -> String {
    match (cell.leak, cell.doubt) {
        (Leak::NotKnown, Some(doubt @ (Doubt::NotMeasured | Doubt::NoSuchCpu))) => doubt.word().into(),
        (Leak::NotKnown, Some(doubt)) => format!("unknown: {}", doubt.word()),
        (leak, _) => leak.to_string() + &bound(cell),
    }
}

/// In how many injections it may be seen all the same; empty where it is seen or not known.
#[must_use]
pub fn bound(cell: &LeakEntry) -> String {
    let unseen = matches!(cell.leak, Leak::No | Leak::NotSeen);
    cell.at_most.filter(|_| unseen).map(|part| format!(" (<= {})", percent(part))).unwrap_or_default()
}

/// Id of a cell on a page.
#[must_use]
pub fn anchor(cell: &LeakEntry) -> String {
    format!("leak-{}-{}-{}", slug(&cell.disturbance), slug(&cell.disturbed), slug(&cell.measured))
}
