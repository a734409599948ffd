//! A cell of the separation in a word, and where a link finds it.

use tactus_model::bundle::slug;
use tactus_model::document::{Doubt, Leak, LeakEntry};

/// Whether a disturbance is seen, and if that is not known what it is for: `not known: noise`.
#[must_use]
pub fn known(cell: &LeakEntry) -> String {
    match (cell.leak, cell.doubt) {
        (Leak::NotKnown, Some(doubt @ (Doubt::NotMeasured | Doubt::NoSuchCpu))) => doubt.word().into(),
        (Leak::NotKnown, Some(doubt)) => format!("not known: {}", doubt.word()),
        (leak, _) => leak.to_string(),
    }
}

/// Id of a cell on a page.
#[must_use]
pub fn anchor(cell: &LeakEntry) -> String {
    format!("leak-{}-{}-{}", slug(&cell.disturbance), slug(&cell.disturbed), slug(&cell.measured))
}
