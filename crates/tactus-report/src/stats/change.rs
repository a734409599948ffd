//! How one quantity changes from one condition to another.

use tactus_model::document::EffectEntry;
use tactus_statistics::{Contrast, Difference, Interval, Unknown};

use super::unknown::sentence;
use crate::row::Quantity;
use crate::units::latency;

/// How one quantity changes.
#[derive(Clone, Debug)]
pub struct Change {
    /// The quantity.
    pub quantity: Quantity,
    /// Value without, in ns: of the run, or the median of the runs that did not break; NaN if all of them
    /// broke.
    pub base_ns: f64,
    /// Value with, in ns.
    pub with_ns: f64,
    /// The difference, or why it is unknown.
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
            Err(why) => return sentence(why),
        };
        let interval = difference.interval;
        if !difference.is_shown() {
            let most = interval.largest();
            return match (most.is_finite(), most <= self.base_ns) {
                (true, true) => format!("no effect larger than {}", latency(most)),
                (true, false) => format!("no effect shown; up to {} is possible", latency(most)),
                (false, _) => "no effect shown; any size is possible".into(),
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
            (false, _) => format!("{word} by an unknown amount: too many runs failed"),
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

/// Judges all changes of a report together.
pub fn judge(changes: &mut [&mut Change]) {
    let contrasts: Vec<&Contrast> = changes.iter().map(|change| &change.contrast).collect();
    let differences = tactus_statistics::judge(&contrasts);
    for (change, difference) in changes.iter_mut().zip(differences) {
        change.difference = difference;
    }
}
