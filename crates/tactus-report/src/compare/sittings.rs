//! What counts as one value: a run, or all runs of a sitting.
//!
//! A sitting is one bundle: what one `tactus run` measured. Its runs share what was drawn once: the placement of processes and
//! memory, the clock, the day. So they differ less from each other than from those of another sitting, and what differs
//! between two sittings need not differ between others.

use tactus_statistics::{LEAST_SITTINGS, Samples, TwoSamples, log_t, median};

use super::condition::Run;

/// Runs that a sitting needs for its median to count as normal.
const RUNS_OF_A_SITTING: usize = 5;

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The runs of one sitting each: whatever follows holds between these two.
    Runs,
    /// Sittings, one of them with fewer than five runs: by ranks, which is exact for any distribution.
    Ranks,
    /// Sittings of five runs or more: the logarithms of their medians, by Student's t.
    Medians,
}

impl By {
    /// For these runs. The other condition may have no run yet.
    pub fn of(base: &[Run], now: &[Run]) -> Self {
        if sittings(base) <= 1 && sittings(now) <= 1 {
            return Self::Runs;
        }
        let large = |runs: &[Run]| grouped(runs).all(|of| of.len() >= RUNS_OF_A_SITTING);
        if large(base) && large(now) { Self::Medians } else { Self::Ranks }
    }

    /// One value for each run, or for each sitting.
    pub fn values(self, runs: &[Run], value: impl Fn(&Run) -> Option<f64>) -> Vec<f64> {
        match self {
            Self::Runs => runs.iter().filter_map(value).collect(),
            Self::Ranks | Self::Medians => {
                grouped(runs).filter_map(|of| median(of.iter().filter_map(&value).collect())).collect()
            }
        }
    }

    /// Whether these numbers of values suffice for a verdict.
    pub const fn are_enough(self, [base, now]: [usize; 2]) -> bool {
        match self {
            Self::Runs | Self::Ranks => super::judge::are_enough([base, now]),
            Self::Medians => base > 0 && now > 0 && base + now >= LEAST_SITTINGS,
        }
    }

    /// The chance of such values if those of `with` are at most `factor` times those of `base`.
    pub fn larger_p(self, ranks: &TwoSamples, samples: Samples, factor: f64) -> f64 {
        match self {
            Self::Runs | Self::Ranks => ranks.larger_p(samples, factor),
            Self::Medians => log_t::larger_p(samples, factor),
        }
    }

    /// The same the other way round.
    pub fn smaller_p(self, ranks: &TwoSamples, samples: Samples, factor: f64) -> f64 {
        match self {
            Self::Runs | Self::Ranks => ranks.smaller_p(samples, factor),
            Self::Medians => log_t::smaller_p(samples, factor),
        }
    }

    /// Lower bound of the ratio at this error.
    pub fn low(self, ranks: &TwoSamples, samples: Samples, error: f64) -> f64 {
        match self {
            Self::Runs | Self::Ranks => ranks.low(samples, error),
            Self::Medians => log_t::low(samples, error),
        }
    }

    /// Upper bound of the ratio at this error.
    pub fn high(self, ranks: &TwoSamples, samples: Samples, error: f64) -> f64 {
        match self {
            Self::Runs | Self::Ranks => ranks.high(samples, error),
            Self::Medians => log_t::high(samples, error),
        }
    }

    /// How many values of each side tell a distance, in logarithms.
    pub fn needed(self, spread: f64, distance: f64, error: f64) -> Option<usize> {
        match self {
            Self::Runs | Self::Ranks => tactus_statistics::runs_needed(spread, distance, error),
            Self::Medians => log_t::needed(spread, distance, error),
        }
    }

    /// The word for several: `runs` or `sittings`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Ranks | Self::Medians => "sittings",
        }
    }
}

/// The number of sittings that these runs are of.
pub fn sittings(runs: &[Run]) -> usize {
    grouped(runs).count()
}

/// The runs of each sitting. Runs are in the order of their sittings.
fn grouped<'r, 'a>(runs: &'r [Run<'a>]) -> impl Iterator<Item = &'r [Run<'a>]> {
    runs.chunk_by(|one, other| one.sitting == other.sitting)
}
