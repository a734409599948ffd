//! What changes from one scenario to another, in numbers with an interval.

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row};
use tactus_model::number::float;

use super::bootstrap::{Interval, Slots, differences};
use crate::row::figures;
use crate::units::{latency, signed};

/// A figure of a row that an effect speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The median.
    P50,
    /// The 99.9th percentile.
    P999,
}

impl Quantity {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P999 => "p99.9",
        }
    }
}

/// How one quantile changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What stands in for "it" in the sentence.
    pub subject: String,
    /// Which quantile.
    pub quantity: Quantity,
    /// Value without, in ns.
    pub base_ns: f64,
    /// Value with, in ns.
    pub with_ns: f64,
    /// The 95 % interval of the difference; `None` when the rows are too short to say.
    pub interval: Option<Interval>,
}

impl Change {
    /// `load raises p99.9 by 3.1 us (95 % interval 1.2 to 5.0 us)`, or the largest effect that the
    /// measurement cannot rule out.
    #[must_use]
    pub fn sentence(&self) -> String {
        let name = self.quantity.name();
        let difference = self.with_ns - self.base_ns;
        match self.interval {
            None => format!(
                "too short to say whether {} changes {name}: {} and {}",
                self.subject,
                latency(self.base_ns),
                latency(self.with_ns)
            ),
            Some(interval) if interval.excludes_zero() => {
                let verb = if difference > 0.0 { "raises" } else { "lowers" };
                format!(
                    "{} {verb} {name} by {} ({})",
                    self.subject,
                    latency(difference.abs()),
                    magnitude(interval)
                )
            }
            Some(interval) => {
                // Below the resolution of the histogram nothing can be ruled out.
                let bound = interval.largest().max(self.base_ns.max(self.with_ns) / 1_000.0);
                let subject = &self.subject;
                format!(
                    "{subject} has no effect on {name} larger than {} ({})",
                    latency(bound),
                    range(interval)
                )
            }
        }
    }
}

/// How the largest value changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Maximum {
    /// What stands in for "it" in the sentence.
    pub subject: String,
    /// Largest value without, exact, in ns.
    pub base_ns: f64,
    /// Largest value with, exact, in ns.
    pub with_ns: f64,
    /// Difference of the medians of the per-interval maxima, in ns.
    pub typical_ns: f64,
    /// Its 95 % interval; `None` when the rows are too short to say.
    pub interval: Option<Interval>,
}

impl Maximum {
    /// The two largest values, and what the maxima of the single intervals say: one largest value
    /// each says little about a difference.
    #[must_use]
    pub fn sentence(&self) -> String {
        let (base, with) = (latency(self.base_ns), latency(self.with_ns));
        let overall =
            format!("the maximum is {with} against {base} ({})", signed(self.with_ns - self.base_ns));
        let typical = "the median of the per-interval maxima";
        match self.interval {
            None => format!("{overall}; too short to say whether {} changes it", self.subject),
            Some(interval) if interval.excludes_zero() => {
                let verb = if self.typical_ns > 0.0 { "raises" } else { "lowers" };
                let by = latency(self.typical_ns.abs());
                format!("{overall}; {} {verb} {typical} by {by} ({})", self.subject, magnitude(interval))
            }
            Some(interval) => {
                let bound = interval.largest().max(self.base_ns.min(self.with_ns) / 1_000.0);
                format!(
                    "{overall}; {} has no effect on {typical} larger than {} ({})",
                    self.subject,
                    latency(bound),
                    range(interval)
                )
            }
        }
    }
}

fn range(interval: Interval) -> String {
    format!("95 % interval {} to {}", signed(interval.low_ns), signed(interval.high_ns))
}

/// The interval of a change whose verb has taken its sign.
fn magnitude(interval: Interval) -> String {
    let (one, other) = (interval.low_ns.abs(), interval.high_ns.abs());
    format!("95 % interval {} to {}", latency(one.min(other)), latency(one.max(other)))
}

/// The effect of one scenario against another.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// On the median.
    pub p50: Change,
    /// On the 99.9th percentile.
    pub p999: Change,
    /// On the maximum.
    pub max: Maximum,
    /// Intervals of time in the two rows.
    pub intervals: (usize, usize),
    /// What must be known before the numbers are used.
    pub caution: Option<String>,
}

impl Effect {
    /// One sentence for each of p50, p99.9 and maximum.
    #[must_use]
    pub fn sentences(&self) -> [String; 3] {
        [self.p50.sentence(), self.p999.sentence(), self.max.sentence()]
    }

    /// Whether any of the three changes; `None`: the rows are too short to say.
    #[must_use]
    pub fn found(&self) -> Option<bool> {
        let intervals = [self.p50.interval, self.p999.interval, self.max.interval];
        let all = intervals.into_iter().collect::<Option<Vec<Interval>>>()?;
        Some(all.into_iter().any(Interval::excludes_zero))
    }

    /// The answer in a few words.
    #[must_use]
    pub fn answer(&self) -> String {
        let parts =
            [("p50", self.p50.interval), ("p99.9", self.p999.interval), ("maximum", self.max.interval)];
        if parts.iter().any(|(_, interval)| interval.is_none()) {
            return "inconclusive: too short to say".into();
        }
        let shown: Vec<&str> = parts
            .iter()
            .filter(|(_, i)| i.is_some_and(Interval::excludes_zero))
            .map(|(name, _)| *name)
            .collect();
        match shown.as_slice() {
            [] => "no effect shown".into(),
            [one] => format!("an effect on {one}"),
            [some @ .., last] => format!("an effect on {} and {last}", some.join(", ")),
        }
    }
}

/// The effect of `with` against `base`.
///
/// # Errors
/// When one of them has no numbers: the sentence that says so.
pub fn effect(base: &Row, with: &Row) -> Result<Effect, String> {
    let numbers = |row: &Row| -> Result<(f64, Slots), String> {
        let none = || {
            let reason = row.result.reason.as_deref().unwrap_or("nothing was measured");
            format!("`{}` has no numbers: {reason}", row.result.name)
        };
        let all = figures(&row.result).ok_or_else(none)?;
        Ok((float(all.max_ns.ok_or_else(none)?), Slots::of(row)))
    };
    let ((base_max, base_slots), (with_max, with_slots)) = (numbers(base)?, numbers(with)?);
    if base.result.measurement.kind() != with.result.measurement.kind() {
        return Err("the two scenarios measure different things".into());
    }
    let found = differences(&base_slots, &with_slots, &[0.5, 0.999]);
    let subject = subject(base, with);
    let quantile = |row: &Row, quantity| {
        let all = figures(&row.result);
        let ns = match quantity {
            Quantity::P50 => all.and_then(|all| all.p50_ns),
            Quantity::P999 => all.and_then(|all| all.p999_ns),
        };
        ns.map(float).ok_or_else(|| format!("no sample of `{}` reached its histogram", row.result.name))
    };
    let change = |quantity, at: usize| {
        Ok::<Change, String>(Change {
            subject: subject.clone(),
            quantity,
            base_ns: quantile(base, quantity)?,
            with_ns: quantile(with, quantity)?,
            interval: found.quantiles[at].interval,
        })
    };
    Ok(Effect {
        p50: change(Quantity::P50, 0)?,
        p999: change(Quantity::P999, 1)?,
        max: Maximum {
            subject: subject.clone(),
            base_ns: base_max,
            with_ns: with_max,
            typical_ns: found.maxima.difference_ns,
            interval: found.maxima.interval,
        },
        intervals: (base_slots.len(), with_slots.len()),
        caution: caution(base, with),
    })
}

/// "load" when that is what the two differ in, else the second scenario's name.
fn subject(base: &Row, with: &Row) -> String {
    let idle = |row: &Row| row.result.load.is_empty() && row.result.fault.is_empty();
    let same_place = base.result.environment == with.result.environment;
    if same_place && idle(base) && !with.result.load.is_empty() && with.result.fault.is_empty() {
        "load".into()
    } else {
        format!("`{}`", with.result.name)
    }
}

fn caution(base: &Row, with: &Row) -> Option<String> {
    let (base, with) = (&base.result, &with.result);
    if base.evidence != with.evidence {
        return Some(
            "The two are different kinds of evidence: the difference is not the scenario's alone.".into(),
        );
    }
    match base.evidence {
        Some(Evidence::Emulated) => Some("Both are emulated: this says nothing about hardware.".into()),
        Some(Evidence::VirtualHost) => Some("As seen inside this virtual machine.".into()),
        _ => None,
    }
}

/// A claim of the plan, and what was measured of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its heading.
    pub name: String,
    /// The document's words.
    pub claim: Option<String>,
    /// The scenario without.
    pub base: String,
    /// The scenario with.
    pub with: String,
    /// The effect, or why there is none to speak of.
    pub effect: Result<Effect, String>,
}

/// Every claim of the plan.
#[must_use]
pub fn claims(contents: &Contents) -> Vec<Claim> {
    let row = |name: &str| contents.rows.iter().find(|row| row.result.name == name);
    let claim = |compare: &tactus_model::plan::Compare| {
        let effect = match (row(&compare.base), row(&compare.with)) {
            (Some(base), Some(with)) => effect(base, with),
            (None, _) => Err(format!("`{}` is not in this bundle", compare.base)),
            (_, None) => Err(format!("`{}` is not in this bundle", compare.with)),
        };
        Claim {
            name: compare.name.clone(),
            claim: compare.claim.clone(),
            base: compare.base.clone(),
            with: compare.with.clone(),
            effect,
        }
    };
    contents.plan.compare.iter().map(claim).collect()
}
