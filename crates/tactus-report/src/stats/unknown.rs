//! Why nothing is said about a difference.

use std::fmt;

/// With fewer slots, or slots that are worth fewer independent ones, nothing is said about a difference.
pub const ENOUGH: usize = 8;

/// With fewer slots than this the correlation that is seen may be chance: independent noise counts as fewer than eight in
/// 89 of 100 runs of ten slots, in 24 of twenty, and in none of sixty.
const SEEN: usize = 60;
/// What tells more in the same time, however the noise is correlated.
const SLICES: &str = "slices tell more in the same time: `--interleave 1s`";

/// A reason, with what would fix it.
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

impl Unknown {
    /// In two or three words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::TooShort { .. } => "too short to say",
            Self::TooCorrelated { slots, .. } if slots < SEEN => "too short to say",
            Self::TooCorrelated { .. } => "too correlated to say",
            Self::TooDiscrete => "too discrete to say",
            Self::TooFewRuns { .. } => "too few runs to say",
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Self::TooShort { slots } => write!(f, " ({slots} intervals of time; {ENOUGH} are needed)"),
            Self::TooCorrelated { slots, effective } => write!(
                f,
                " ({slots} intervals of time count as {effective:.1} independent ones; {ENOUGH} are needed; {SLICES})"
            ),
            Self::TooDiscrete => f.write_str(" (nothing varied)"),
            Self::TooFewRuns { runs, least } => {
                write!(f, " ({runs} pairs of whole runs; {least} are needed)")
            }
        }
    }
}
