//! Reasons for no bound.

use super::stationarity::Tested;

/// The tick of long runs, in ns: that of a short one is a twentieth of it.
const LONGEST_TICK_NS: u64 = 1_000_000_000;

/// A reason, with the numbers that tell what would fix it.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// Too few blocks of time.
    TooShort {
        /// How many there are.
        blocks: u64,
        /// How many it takes.
        least: u64,
        /// Their length, in ns.
        block_ns: u64,
    },
    /// Blocks are not independent, or not of one distribution, as far as they could be made longer.
    Unsteady {
        /// The tests that failed.
        failed: Vec<Tested>,
        /// Length of the longest blocks that could be tried, in ns.
        block_ns: u64,
        /// The longer blocks of which there are too few; `None` if no longer ones can be tried.
        longer: Option<Blocks>,
    },
    /// Exceedances come in clusters.
    Clustered {
        /// The extremal index.
        index: f64,
        /// Length of the longest blocks that could be tried, in ns.
        block_ns: u64,
        /// As for `Unsteady`.
        longer: Option<Blocks>,
    },
    /// Values are equal that would differ if they were measured finely enough.
    Tied {
        /// The part of the exceedances that are equal to another one.
        part: f64,
    },
    /// Too few exceedances above any threshold.
    TooFew {
        /// How many.
        exceedances: u64,
        /// How many it takes.
        least: u64,
    },
    /// Above no threshold do exceedances look like a generalised Pareto distribution.
    NoThreshold {
        /// The best of the chances.
        p: f64,
    },
    /// Maxima of blocks of ten times the length disagree.
    Disagreement {
        /// The estimate from the exceedances, in ns.
        by_exceedances_ns: f64,
        /// The estimate from the longer blocks, in ns.
        by_blocks_ns: f64,
    },
    /// The tail may be so heavy that it has no mean.
    TooHeavy {
        /// The upper end of its shape.
        xi: f64,
    },
    /// The horizon is further from the measurement than the exceedances allow.
    TooFar {
        /// The horizon, in ns.
        horizon_ns: u64,
        /// The longest horizon that they allow, in ns.
        most_ns: u64,
        /// How much longer it must be measured for that, in ns.
        longer_ns: u64,
        /// The blocks that there are.
        of: Blocks,
    },
}

/// Blocks of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// How many.
    pub many: u64,
    /// The length of each, in ns.
    pub length_ns: u64,
}

impl Blocks {
    /// How much longer to measure until there are `least` blocks, in ns.
    #[must_use]
    pub const fn lacking_ns(self, least: u64) -> u64 {
        least.saturating_sub(self.many).saturating_mul(self.length_ns)
    }
}

impl Refusal {
    /// In a word, for machines.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::TooShort { .. } => "too-short",
            Self::Unsteady { .. } => "not-stationary-or-not-independent",
            Self::Clustered { .. } => "clustered",
            Self::Tied { .. } => "tied",
            Self::TooFew { .. } => "too-few-exceedances",
            Self::NoThreshold { .. } => "no-threshold",
            Self::Disagreement { .. } => "methods-disagree",
            Self::TooHeavy { .. } => "too-heavy",
            Self::TooFar { .. } => "horizon-too-far",
        }
    }

    /// How much longer the run must be for a bound of `blocks` blocks, in ns; `None` if time alone does not
    /// help.
    #[must_use]
    pub fn longer_ns(&self, blocks: u64) -> Option<u64> {
        match self {
            // A longer run has longer blocks, up to the tick of long runs.
            Self::TooShort { blocks: many, block_ns, .. } => {
                let needed = blocks.saturating_mul((*block_ns).max(LONGEST_TICK_NS));
                Some(needed.saturating_sub(many.saturating_mul(*block_ns)))
            }
            Self::Unsteady { longer, .. } | Self::Clustered { longer, .. } => {
                longer.map(|longer| longer.lacking_ns(blocks))
            }
            Self::TooFar { longer_ns, of, .. } => Some(of.lacking_ns(blocks).max(*longer_ns)),
            Self::TooFew { .. }
            | Self::Tied { .. }
            | Self::NoThreshold { .. }
            | Self::Disagreement { .. }
            | Self::TooHeavy { .. } => None,
        }
    }
}
