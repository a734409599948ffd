//! What counts as one value: a run, or all runs of a sitting.
//!
//! A sitting is one bundle: what one `tactus run` measured. Its runs share what was drawn once: the placement of processes and
//! memory, the clock, the day. So they differ less from each other than from those of another sitting, and what differs
//! between two sittings need not differ between others.

use tactus_statistics::{LEAST_SITTINGS, Samples, TwoSamples, log_t, median};

use super::condition::Run;

/// Runs that a sitting needs for its median to count as normal; and runs or sittings of each condition that a test by ranks
/// needs at least.
pub const LEAST_REPEATS: usize = 5;
/// Runs or sittings of the base that one new one needs at least, by ranks: an error of 5 % allows it to be the worst of 20.
pub const LEAST_BASELINE: usize = 19;

/// Whether runs or sittings are judged, and by which test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The runs of one sitting each: whatever follows holds between these two.
    Runs,
    /// Sittings of fewer than five runs, or values without a logarithm: by ranks, which is exact for any distribution.
    Ranks(Counted),
    /// Sittings of five runs or more: the logarithms of their medians, by Student's t.
    Medians(Counted),
}

/// How many runs of each sitting count: as many as the smallest has. Medians of more runs differ less, and neither test holds
/// for medians of unequal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted(usize);

impl By {
    /// For these runs. The other condition may have no run yet.
    pub fn of(base: &[Run], now: &[Run]) -> Self {
        if sittings(base) <= 1 && sittings(now) <= 1 {
            return Self::Runs;
        }
        let smallest = grouped(base).chain(grouped(now)).map(<[Run]>::len).min().unwrap_or(0);
        let counted = Counted(smallest);
        if smallest >= LEAST_REPEATS { Self::Medians(counted) } else { Self::Ranks(counted) }
    }

    /// The same for these values: one that is not above zero has no logarithm.
    pub fn for_values(self, values: [&[f64]; 2]) -> Self {
        match self {
            Self::Medians(counted) if !values.into_iter().flatten().all(|value| *value > 0.0) => {
                Self::Ranks(counted)
            }
            by => by,
        }
    }

    /// One value for each run, or for each sitting.
    pub fn values(self, runs: &[Run], value: impl Fn(&Run) -> Option<f64>) -> Vec<f64> {
        match self {
            Self::Runs => runs.iter().filter_map(value).collect(),
            Self::Ranks(Counted(most)) | Self::Medians(Counted(most)) => grouped(runs)
                .filter_map(|of| median(of.iter().take(most).filter_map(&value).collect()))
                .collect(),
        }
    }

    /// Whether these numbers of values suffice for a verdict.
    pub const fn are_enough(self, [base, now]: [usize; 2]) -> bool {
        match self {
            Self::Runs | Self::Ranks(_) => {
                (base >= LEAST_REPEATS && now >= LEAST_REPEATS) || (base >= LEAST_BASELINE && now >= 1)
            }
            Self::Medians(_) => base > 0 && now > 0 && base + now >= LEAST_SITTINGS,
        }
    }

    /// The chance of such values if those of `with` are at most `factor` times those of `base`.
    pub fn larger_p(self, ranks: &TwoSamples, samples: Samples, factor: f64) -> f64 {
        match self {
            Self::Runs | Self::Ranks(_) => ranks.larger_p(samples, factor),
            Self::Medians(_) => log_t::larger_p(samples, factor),
        }
    }

    /// The same the other way round.
    pub fn smaller_p(self, ranks: &TwoSamples, samples: Samples, factor: f64) -> f64 {
        match self {
            Self::Runs | Self::Ranks(_) => ranks.smaller_p(samples, factor),
            Self::Medians(_) => log_t::smaller_p(samples, factor),
        }
    }

    /// Lower bound of the ratio at this error.
    pub fn low(self, ranks: &TwoSamples, samples: Samples, error: f64) -> f64 {
        match self {
            Self::Runs | Self::Ranks(_) => ranks.low(samples, error),
            Self::Medians(_) => log_t::low(samples, error),
        }
    }

    /// Upper bound of the ratio at this error.
    pub fn high(self, ranks: &TwoSamples, samples: Samples, error: f64) -> f64 {
        match self {
            Self::Runs | Self::Ranks(_) => ranks.high(samples, error),
            Self::Medians(_) => log_t::high(samples, error),
        }
    }

    /// How many values of each side tell a distance, in logarithms.
    pub fn needed(self, spread: f64, distance: f64, error: f64) -> Option<usize> {
        match self {
            Self::Runs | Self::Ranks(_) => tactus_statistics::runs_needed(spread, distance, error),
            Self::Medians(_) => log_t::needed(spread, distance, error),
        }
    }

    /// Whether medians of several runs are judged.
    pub const fn is_medians(self) -> bool {
        matches!(self, Self::Medians(_))
    }

    /// The word for several: `runs` or `sittings`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Ranks(_) | Self::Medians(_) => "sittings",
        }
    }
}

/// How many runs of each sitting count, where some have more; `None`: all count.
pub fn cut_to(base: &[Run], now: &[Run]) -> Option<usize> {
    let (By::Ranks(Counted(most)) | By::Medians(Counted(most))) = By::of(base, now) else { return None };
    grouped(base).chain(grouped(now)).any(|of| of.len() > most).then_some(most)
}

/// The number of sittings that these runs are of.
pub fn sittings(runs: &[Run]) -> usize {
    grouped(runs).count()
}

/// The runs of each sitting. Runs are in the order of their sittings.
fn grouped<'r, 'a>(runs: &'r [Run<'a>]) -> impl Iterator<Item = &'r [Run<'a>]> {
    runs.chunk_by(|one, other| one.sitting == other.sitting)
}
