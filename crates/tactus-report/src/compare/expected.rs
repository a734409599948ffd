//! What a gate will be able to show, before anything is measured: from how much the sittings of its baseline differ.

use tactus_model::number::float;
use tactus_statistics::{ERROR, LEAST_SITTINGS, log_t};

use super::baseline::judged;
use super::condition::Condition;
use super::margins::Margins;
use super::sittings::By;

/// What a new sitting of several runs can be told by.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// The baseline has too few sittings of five runs or more.
    TooFew {
        /// How many it has; 0: none may be judged.
        sittings: usize,
        /// How many more it needs.
        more: usize,
    },
    /// A sitting decides.
    Decides {
        /// The scenario of the quantity that needs the largest ratio.
        scenario: String,
        /// The quantity.
        quantity: String,
        /// The ratio that one new sitting shows to be a regression in 80 of 100 cases.
        ratio: f64,
    },
}

/// What one new sitting of five runs or more will show against this baseline.
#[must_use]
pub fn expected(base: &Condition, margins: &Margins) -> Expected {
    let all = judged(base, margins);
    let large = |by: By| by.is_medians();
    let sittings = all.iter().map(|(_, of)| if large(of.by) { of.base.len() } else { of.base.len().min(1) });
    let sittings = sittings.min().unwrap_or(0);
    let error = ERROR / float(all.len().max(1) as u64);
    let shows = all.iter().filter(|_| sittings + 1 >= LEAST_SITTINGS).filter_map(|(key, of)| {
        let apart = log_t::apart(of.spread()?, [of.base.len(), 1], error)?;
        Some(Expected::Decides {
            scenario: key.name.clone(),
            quantity: of.quantity.clone(),
            ratio: of.limit * apart.exp(),
        })
    });
    let ratio = |one: &Expected| if let Expected::Decides { ratio, .. } = one { *ratio } else { 0.0 };
    shows
        .max_by(|one, other| ratio(one).total_cmp(&ratio(other)))
        .unwrap_or(Expected::TooFew { sittings, more: (LEAST_SITTINGS - 1).saturating_sub(sittings).max(1) })
}
