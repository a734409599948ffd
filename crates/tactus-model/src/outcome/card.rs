//! The counts of an interrupt card beside its latencies.

use serde::{Deserialize, Serialize};

/// What became of a card's interrupts, those of its warm-up and of its control among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardCounts {
    /// Raised, and unanswered for a second: each counts as a latency of a second.
    pub lost: u64,
    /// Those of them that were answered later.
    pub late: u64,
    /// How many more interrupts the guest handled than were raised.
    pub duplicates: u64,
    /// Periods in which the card itself was kept from its CPU, and raised nothing.
    pub left_out: u64,
}
