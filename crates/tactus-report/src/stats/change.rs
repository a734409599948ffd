//! How one quantity changes from one condition to another.

use tactus_model::document::EffectEntry;

use super::autocorrelation::size;
use super::holm::{ERROR, holm};
use super::interval::Interval;
use super::paired::{least_pairs, paired, paired_p};
use super::quantile::{Quantile, difference, difference_interval, difference_p, is_discrete};
use super::unknown::Unknown;
use crate::row::Quantity;
use crate::units::latency;

/// What a difference is judged from.
#[derive(Clone, Debug)]
pub enum Contrast {
    /// A quantile of one run each: what differs between these two runs, whatever made it differ.
    Runs(Box<[Quantile; 2]>),
    /// Differences of pairs of runs, in ns, whose order was drawn by lot: what the condition does. One is infinite where
    /// one run of its pair broke, and no number where both did.
    Pairs(Vec<f64>),
    /// Nothing: for this reason.
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

/// How one quantity changes.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which.
    pub quantity: Quantity,
    /// Value without, in ns: of the run, or the median of the runs that did not break; no number: all of them did.
    pub base_ns: f64,
    /// Value with, in ns.
    pub with_ns: f64,
    /// The difference, or why nothing is said about it.
    pub difference: Result<Difference, Unknown>,
    contrast: Contrast,
}

impl Change {
    /// Before it is judged.
    #[must_use]
    pub fn new(quantity: Quantity, [base_ns, with_ns]: [f64; 2], contrast: Contrast) -> Self {
        let few = Unknown::TooFewRuns { runs: 0, least: 0 };
        Self { quantity, base_ns, with_ns, difference: Err(few), contrast }
    }

    /// Whether there is a difference.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.difference.is_ok_and(|difference| difference.is_shown())
    }

    /// "lower by 3.2 us (1.1 us to 5.0 us)", or "no effect larger than 2.1 us".
    #[must_use]
    pub fn words(&self) -> String {
        let difference = match self.difference {
            Ok(difference) => difference,
            Err(why) => return why.to_string(),
        };
        let interval = difference.interval;
        if !difference.is_shown() {
            let most = interval.largest();
            return match (most.is_finite(), most <= self.base_ns) {
                (true, true) => format!("no effect larger than {}", latency(most)),
                (true, false) => format!("no effect shown; up to {} cannot be excluded", latency(most)),
                (false, _) => "no effect shown; none can be excluded".into(),
            };
        }
        let (word, near, far) = if difference.estimate_ns < 0.0 {
            ("lower", -interval.high_ns, -interval.low_ns)
        } else {
            ("higher", interval.low_ns, interval.high_ns)
        };
        let (by, near) = (difference.estimate_ns.abs(), near.max(0.0));
        match (by.is_finite(), far.is_finite()) {
            (true, true) => format!("{word} by {} ({} to {})", latency(by), latency(near), latency(far)),
            (true, false) => format!("{word} by {} (at least {})", latency(by), latency(near)),
            (false, _) => format!("{word}: too many runs broke to say by how much"),
        }
    }

    /// As the document has it.
    #[must_use]
    pub fn entry(&self) -> EffectEntry {
        let found = self.difference.ok();
        let known = |ns: f64| ns.is_finite().then_some(ns);
        let end =
            |of: fn(Interval) -> f64| found.map(|found| of(found.interval)).filter(|end| end.is_finite());
        EffectEntry {
            quantity: self.quantity.name().into(),
            without_ns: known(self.base_ns),
            with_ns: known(self.with_ns),
            effect_ns: known(found.map_or(self.with_ns - self.base_ns, |found| found.estimate_ns)),
            low_ns: end(|interval| interval.low_ns),
            high_ns: end(|interval| interval.high_ns),
            p: found.map(|found| found.p),
            shown: self.is_shown(),
        }
    }
}

/// Judges all changes of a report together. What is shown holds together at 95 % (Holm), and so do the intervals
/// (Bonferroni): an effect that only the sharper of the two tells apart from none may have an interval that reaches
/// zero.
pub fn judge(changes: &mut [&mut Change]) {
    let tested: Vec<usize> = (0..changes.len()).filter(|at| changes[*at].contrast.p().is_some()).collect();
    let p: Vec<f64> = tested.iter().filter_map(|at| changes[*at].contrast.p()).collect();
    let error = ERROR / size(tested.len().max(1));
    for change in changes.iter_mut() {
        let found = change.contrast.interval(error);
        change.difference = found.map(|(estimate_ns, interval)| Difference { estimate_ns, interval, p: 1.0 });
    }
    for (at, p) in tested.into_iter().zip(holm(&p)) {
        if let Ok(difference) = &mut changes[at].difference {
            difference.p = p;
        }
    }
}
