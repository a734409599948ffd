//! Why nothing is said about a difference.

/// With fewer slots, or slots that are worth fewer independent ones, nothing is said about a difference.
pub const ENOUGH: usize = 8;

/// A reason, with the numbers that tell what would fix it.
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
    /// Nothing varied: the values are coarser than what is asked.
    TooDiscrete,
    /// Too few pairs of runs for an interval at this error.
    TooFewRuns {
        /// Pairs of whole runs.
        runs: usize,
        /// How many it takes.
        least: usize,
    },
}
