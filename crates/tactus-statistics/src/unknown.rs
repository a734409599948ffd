//! Reasons for an unknown difference.

/// With fewer slots, or slots worth fewer independent ones, a difference is unknown.
pub const ENOUGH: usize = 8;

/// A reason, with the numbers that show the remedy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unknown {
    /// One of the runs has too few slots of time.
    TooShort {
        /// How many.
        slots: usize,
    },
    /// Slots depend on each other.
    TooCorrelated {
        /// How many there are.
        slots: usize,
        /// How many independent ones they are worth.
        effective: f64,
    },
    /// The level of a run rises or falls over time: the next run would differ as well.
    Drift,
    /// Nothing varied: the values are coarser than the question.
    TooDiscrete,
    /// Too few pairs of runs for an interval at this error.
    TooFewRuns {
        /// Pairs of whole runs.
        runs: usize,
        /// How many it takes.
        least: usize,
    },
}
