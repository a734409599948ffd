//! The judged quantities of a row: the one definition for effects, settings under test, verdicts and tables.
//!
//! Quantiles are those of measured and missed periods together, corrected for coordinated omission (G. Tene,
//! "How NOT to measure latency"): a stall of 10 ms at an interval of 200 us is one late wake-up among
//! thousands, and fifty missed periods. The maximum is exact and needs no correction.

use tactus_model::latency::Summary;

/// A figure of a row that is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// The median.
    P50,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The largest value.
    Maximum,
}

impl Quantity {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Maximum => "maximum",
        }
    }

    /// The same with the word that says how it was come by, where some periods were missed.
    #[must_use]
    pub fn said(self, corrected: bool) -> String {
        let word = if corrected && self != Self::Maximum { "corrected " } else { "" };
        format!("{word}{}", self.name())
    }

    /// The part of all periods that are not above it; `None` for the maximum.
    #[must_use]
    pub const fn part(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.5),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
            Self::Maximum => None,
        }
    }

    /// Its value in ns, corrected for missed periods.
    #[must_use]
    pub const fn of(self, all: &Summary) -> Option<u64> {
        match self {
            Self::P50 => all.corrected.p50_ns,
            Self::P99 => all.corrected.p99_ns,
            Self::P999 => all.corrected.p999_ns,
            Self::Maximum => all.max_ns,
        }
    }
}

/// Whether periods were missed, so that judged figures differ from measured ones.
#[must_use]
pub fn is_corrected(all: &Summary) -> bool {
    all.missed() > 0
}
