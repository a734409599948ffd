//! The counts of an interrupt card beside its latencies.

use serde::{Deserialize, Serialize};

/// Counts of a card's interrupts, including those of its warm-up and its self-test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardCounts {
    /// Interrupts that were unanswered for a second. Each counts as a latency of a second.
    pub lost: u64,
    /// Lost interrupts that were answered later.
    pub late: u64,
    /// Number of interrupts that the guest handled beyond those that were raised.
    pub duplicates: u64,
    /// Periods in which the card itself was kept off its CPU, and raised nothing.
    pub left_out: u64,
}
