//! Differences between two conditions; all differences of a report are judged together.

use super::autocorrelation::size;
use super::holm::{ERROR, holm};
use super::interval::Interval;
use super::quantile::{Quantile, difference, difference_interval, difference_p, is_discrete};
use super::signed_rank::{least_pairs, paired, paired_p};
use super::unknown::Unknown;

/// The data from which a difference is judged.
#[derive(Clone, Debug)]
pub enum Contrast {
    /// A quantile of one run each: the difference between these two runs, whatever caused it.
    Runs(Box<[Quantile; 2]>),
    /// Differences of pairs of runs, in ns, whose order was drawn at random: the effect of the condition. A
    /// difference is infinite if one run of its pair broke, and NaN if both did.
    Pairs(Vec<f64>),
    /// No data, for this reason.
    Nothing(Unknown),
}

impl Contrast {
    /// Of two quantiles, if both are known.
    #[must_use]
    pub fn runs(base: Result<Quantile, Unknown>, with: Result<Quantile, Unknown>) -> Self {
        match (base, with) {
            (Ok(base), Ok(with)) => Self::Runs(Box::new([base, with])),
            (Err(why), _) | (_, Err(why)) => Self::Nothing(why),
        }
    }

    fn p(&self) -> Option<f64> {
        match self {
            Self::Runs(of) => Some(difference_p(&of[0], &of[1])),
            Self::Pairs(differences) => Some(paired_p(differences)),
            Self::Nothing(_) => None,
        }
    }

    /// Estimate and interval but for this error.
    fn interval(&self, error: f64) -> Result<(f64, Interval), Unknown> {
        let (estimate, interval) = match self {
            Self::Nothing(why) => return Err(*why),
            Self::Runs(of) => {
                if is_discrete(&of[0], &of[1], error) {
                    return Err(Unknown::TooDiscrete);
                }
                (difference(&of[0], &of[1]), difference_interval(&of[0], &of[1], error))
            }
            Self::Pairs(differences) => {
                let whole = differences.iter().filter(|difference| difference.is_finite()).count();
                let few = Unknown::TooFewRuns { runs: whole, least: least_pairs(error) };
                let found = paired(differences, error).ok_or(few)?;
                // Where an end is beyond every number nothing is known but its sign.
                let low_ns = if found.low == f64::INFINITY { 0.0 } else { found.low };
                let high_ns = if found.high == f64::NEG_INFINITY { 0.0 } else { found.high };
                (found.estimate, Interval { low_ns, high_ns })
            }
        };
        if interval.is_point() { Err(Unknown::TooDiscrete) } else { Ok((estimate, interval)) }
    }
}

/// A difference, judged together with all others of its report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// With minus without, in ns.
    pub estimate_ns: f64,
    /// Where it lies; all intervals of a report hold together at 95 %.
    pub interval: Interval,
    /// Its p-value, adjusted for all that the report tests (Holm).
    pub p: f64,
}

impl Difference {
    /// Whether it is one; all that a report shows hold together at 95 %.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.p <= ERROR
    }
}

/// Judges all contrasts of a report together. All effects that are shown hold together at 95 % (Holm), and so
/// do the intervals (Bonferroni). Holm is the sharper of the two: an effect that it alone shows may have an
/// interval that reaches zero.
#[must_use]
pub fn judge(contrasts: &[&Contrast]) -> Vec<Result<Difference, Unknown>> {
    let p: Vec<Option<f64>> = contrasts.iter().map(|contrast| contrast.p()).collect();
    let tested: Vec<f64> = p.iter().flatten().copied().collect();
    let error = ERROR / size(tested.len().max(1));
    let mut adjusted = holm(&tested).into_iter();
    let judged = |(contrast, p): (&&Contrast, Option<f64>)| {
        let p = p.and_then(|_| adjusted.next()).unwrap_or(1.0);
        let (estimate_ns, interval) = contrast.interval(error)?;
        Ok(Difference { estimate_ns, interval, p })
    };
    contrasts.iter().zip(p).map(judged).collect()
}
