//! What changes from one scenario to another, in words that say no more than was shown.

use std::collections::BTreeMap;

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult, Sliced};
use tactus_model::latency::Summary;
use tactus_model::number::float;

use super::change::{Change, Contrast, Difference};
use super::median::median;
use super::paired::least_pairs;
use super::runs::{is_whole, pairs, runs};
use super::slots::slots_alike;
use super::unknown::Unknown;
use crate::row::{Quantity, figures, is_corrected, never_made};
use crate::units::{duration, latency, signed};

/// What an effect speaks of.
const QUANTITIES: [Quantity; 3] = [Quantity::P50, Quantity::P999, Quantity::Maximum];

/// What an effect is judged from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// One run each, cut into so many intervals of time.
    TwoRuns {
        /// Without and with.
        slots: [usize; 2],
    },
    /// So many pairs of runs, in an order drawn by lot.
    Repeats {
        /// Whole ones.
        pairs: usize,
    },
    /// One run each, in slices that were measured in turn, in an order drawn by lot.
    Slices {
        /// Pairs of whole ones of one round.
        pairs: usize,
        /// How long a slice is, in ns.
        length_ns: u64,
    },
}

/// The effect of one scenario against another.
#[derive(Clone, Debug)]
pub struct Effect {
    /// What stands in for "it": `load`, or the scenario's name.
    pub subject: String,
    /// Whether periods were missed, so that quantiles are corrected ones.
    pub corrected: bool,
    /// On p50, p99.9 and maximum.
    pub changes: Vec<Change>,
    /// What it is judged from.
    pub design: Design,
    /// What must be known before the numbers are used.
    pub caution: Option<String>,
}

impl Effect {
    /// One sentence for each of p50, p99.9 and maximum; of all together where the same forbids to say anything of each.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut reasons: Vec<Option<Unknown>> =
            self.changes.iter().map(|change| change.difference.err()).collect();
        reasons.dedup();
        if let [Some(why)] = reasons.as_slice() {
            let values = |change: &Change| {
                let (base, with) = (latency(change.base_ns), latency(change.with_ns));
                format!("{} {base} and {with}", change.quantity.said(self.corrected))
            };
            let values: Vec<String> = self.changes.iter().map(values).collect();
            return vec![format!("{why}: {}", values.join(", "))];
        }
        self.changes.iter().map(|change| self.sentence(change)).collect()
    }

    /// `load raises p99.9 by 3.1 us (95 % interval 1.2 to 5.0 us)`, or what the measurement cannot rule out; of two
    /// single runs only what differs between them.
    fn sentence(&self, change: &Change) -> String {
        let values = format!("{} and {}", latency(change.base_ns), latency(change.with_ns));
        let two_runs = matches!(self.design, Design::TwoRuns { .. });
        let (before, name) = match (change.quantity, two_runs) {
            (Quantity::Maximum, true) => {
                let (base, with) = (latency(change.base_ns), latency(change.with_ns));
                let overall = signed(change.with_ns - change.base_ns);
                let before = format!("the maximum is {with} against {base} ({overall}); ");
                (before, "the median of the per-interval maxima".to_owned())
            }
            (Quantity::Maximum, false) if matches!(self.design, Design::Slices { .. }) => {
                (String::new(), "the maximum of a slice".to_owned())
            }
            (quantity, _) => (String::new(), quantity.said(self.corrected)),
        };
        let said = match &change.difference {
            Err(why) => format!("{name}: {why}: {values}"),
            Ok(difference) if two_runs => self.between_runs(&name, change, difference),
            Ok(difference) => self.effect(&name, change, difference),
        };
        before + &said
    }

    fn between_runs(&self, name: &str, change: &Change, difference: &Difference) -> String {
        let interval = range(difference);
        if difference.is_shown() {
            let word = if difference.estimate_ns > 0.0 { "higher" } else { "lower" };
            let (by, place) = (latency(difference.estimate_ns.abs()), self.place());
            return format!("{name} is {by} {word} {place}, between these two runs ({interval})");
        }
        match bound(change, difference) {
            Ok(most) => format!("{name} differs by at most {most} between these two runs ({interval})"),
            Err(open) => format!("{name}: no difference between these two runs is shown{open} ({interval})"),
        }
    }

    fn effect(&self, name: &str, change: &Change, difference: &Difference) -> String {
        let (subject, interval) = (&self.subject, range(difference));
        if difference.is_shown() {
            let verb = if difference.estimate_ns > 0.0 { "raises" } else { "lowers" };
            return format!(
                "{subject} {verb} {name} by {} ({interval})",
                latency(difference.estimate_ns.abs())
            );
        }
        match bound(change, difference) {
            Ok(most) => format!("{subject} has no effect on {name} larger than {most} ({interval})"),
            Err(open) => format!("no effect of {subject} on {name} is shown{open} ({interval})"),
        }
    }

    fn place(&self) -> String {
        if self.subject == LOAD { "under load".into() } else { format!("in {}", self.subject) }
    }

    /// Whether any of the three changes; `None`: nothing is said of any.
    #[must_use]
    pub fn found(&self) -> Option<bool> {
        let any = self.changes.iter().any(|change| change.difference.is_ok());
        any.then(|| self.changes.iter().any(Change::is_shown))
    }

    /// The answer in a few words.
    #[must_use]
    pub fn answer(&self) -> String {
        let names: Vec<&str> =
            self.changes.iter().filter(|c| c.is_shown()).map(|c| c.quantity.name()).collect();
        let (shown, none) = match self.design {
            Design::TwoRuns { .. } => {
                ("these two runs differ in", "no difference between these two runs shown")
            }
            Design::Repeats { .. } | Design::Slices { .. } => ("an effect on", "no effect shown"),
        };
        let unknown: Option<Unknown> = self.changes.iter().find_map(|change| change.difference.err());
        match (names.as_slice(), unknown) {
            ([], Some(why)) => format!("inconclusive: {}", why.word()),
            ([], None) => none.into(),
            ([one], _) => format!("{shown} {one}"),
            ([some @ .., last], _) => format!("{shown} {} and {last}", some.join(", ")),
        }
    }

    /// What it is judged from, in words.
    #[must_use]
    pub fn method(&self) -> String {
        match self.design {
            Design::TwoRuns { slots: [base, with] } => format!(
                "one run each, {base} and {with} intervals of time; what differs from run to run by itself is not \
                 known: `repeat = 8` in the plan tells"
            ),
            Design::Repeats { pairs } => format!("{pairs} pairs of runs in randomised order"),
            Design::Slices { pairs, length_ns } => format!(
                "{pairs} pairs of slices of {} in randomised order; figures are those of a slice",
                duration(length_ns)
            ),
        }
    }
}

/// The largest difference that is not excluded, if that bounds anything; else the words for what stays open.
fn bound(change: &Change, difference: &Difference) -> Result<String, String> {
    let most = difference.interval.largest();
    if most <= change.base_ns {
        Ok(latency(most))
    } else if most.is_finite() {
        Err(format!(", and up to {} cannot be excluded", latency(most)))
    } else {
        Err(", and none can be excluded".into())
    }
}

/// The interval; of a difference that is shown without its sign, which the verb has.
fn range(difference: &Difference) -> String {
    let interval = difference.interval;
    if difference.is_shown() {
        let (one, other) = (interval.low_ns.abs(), interval.high_ns.abs());
        let most = if difference.estimate_ns > 0.0 { interval.high_ns } else { -interval.low_ns };
        return match (interval.excludes_zero(), most.is_finite()) {
            (true, true) => format!("95 % interval {} to {}", latency(one.min(other)), latency(most)),
            (true, false) => format!("at least {}, 95 %", latency(one.min(other))),
            (false, true) => format!("at most {}, 95 %", latency(most)),
            (false, false) => "its size is not known".into(),
        };
    }
    let end = |ns: f64| if ns.is_finite() { signed(ns) } else { "unknown".into() };
    format!("95 % interval {} to {}", end(interval.low_ns), end(interval.high_ns))
}

/// The subject where load is all that two scenarios differ in.
const LOAD: &str = "load";

/// The effect of the scenario of `with` against that of `base`, before it is judged.
///
/// # Errors
/// When one of them has no numbers, a fault in them was never made, or they were not measured alike: the sentence that says so.
pub(super) fn draft(contents: &Contents, base: &str, with: &str) -> Result<Effect, String> {
    let (base, with) = (runs(contents, base), runs(contents, with));
    let (Some(first), Some(other)) = (base.first(), with.first()) else {
        return Err("nothing was measured".into());
    };
    let (first, other) = (*first, *other);
    alike(&first.result, &other.result)?;
    if let Some(never) = base.iter().chain(&with).find_map(|row| never_made(&row.result)) {
        return Err(never);
    }
    let repeated = base.len() > 1 || with.len() > 1;
    let (design, changes) = if repeated {
        between(&base, &with)?
    } else {
        match slices(first, other) {
            Some(found) => found,
            None => within(first, other)?,
        }
    };
    let all = || base.iter().chain(&with).filter_map(|row| figures(&row.result));
    Ok(Effect {
        subject: subject(&first.result, &other.result),
        corrected: all().any(is_corrected),
        changes,
        design,
        caution: caution(&first.result, &other.result),
    })
}

fn alike(base: &RowResult, with: &RowResult) -> Result<(), String> {
    if base.measurement.kind() != with.measurement.kind() {
        return Err("the two scenarios measure different things".into());
    }
    if base.interval_ns != with.interval_ns {
        let [one, other] = [base, with].map(|of| latency(float(of.interval_ns)));
        return Err(format!("they wake at different intervals: {one} and {other}"));
    }
    Ok(())
}

fn numbers(row: &Row) -> Result<&Summary, String> {
    figures(&row.result).ok_or_else(|| {
        let reason = row.result.reason.as_deref().unwrap_or("nothing was measured");
        format!("`{}` has no numbers: {reason}", row.result.name)
    })
}

/// Of one run each.
fn within(base: &Row, with: &Row) -> Result<(Design, Vec<Change>), String> {
    let all = [numbers(base)?, numbers(with)?];
    let slots = slots_alike(base, with)?;
    let maxima = [slots[0].maxima(), slots[1].maxima()];
    let change = |quantity: Quantity| {
        let value = |at: usize| {
            let none = || format!("no sample of `{}` reached its histogram", [base, with][at].result.name);
            quantity.of(all[at]).map(float).ok_or_else(none)
        };
        let known = |at: usize| match quantity.part() {
            Some(part) => slots[at].quantile(part),
            None => maxima[at].quantile(0.5),
        };
        Ok::<Change, String>(Change::new(
            quantity,
            [value(0)?, value(1)?],
            Contrast::runs(known(0), known(1)),
        ))
    };
    let changes = QUANTITIES.into_iter().map(change).collect::<Result<_, _>>()?;
    Ok((Design::TwoRuns { slots: [slots[0].len(), slots[1].len()] }, changes))
}

/// Of pairs of slices of one round, where there are enough for the lot to tell something by: whichever of the two the lot
/// had measured first, without an effect their difference is as likely one way as the other.
fn slices(base: &Row, with: &Row) -> Option<(Design, Vec<Change>)> {
    let round = |of: &Sliced| of.result.slice.map(|slice| (slice.number, slice.of));
    let mut others = BTreeMap::new();
    for other in &with.slices {
        others.entry(round(other)).or_insert(&other.result);
    }
    let pairs: Vec<[&RowResult; 2]> = base
        .slices
        .iter()
        .filter_map(|one| Some([&one.result, *others.get(&round(one))?]))
        .filter(|pair| pair.iter().all(|result| is_whole(result)))
        .collect();
    let length_ns = pairs.first()?[0].planned_ns;
    let alike = pairs.iter().flatten().all(|result| result.planned_ns == length_ns);
    if pairs.len() < least_pairs(0.05 / float(QUANTITIES.len() as u64)) || !alike {
        return None;
    }
    let changes = QUANTITIES.into_iter().map(|quantity| changed(quantity, &pairs)).collect();
    Some((Design::Slices { pairs: pairs.len(), length_ns }, changes))
}

/// Of pairs of runs.
fn between(base: &[&Row], with: &[&Row]) -> Result<(Design, Vec<Change>), String> {
    let planned = [base[0].result.planned_ns, with[0].result.planned_ns];
    if planned[0] != planned[1] {
        let [one, other] = planned.map(duration);
        return Err(format!("they measure for different times: {one} and {other}"));
    }
    let pairs = pairs(base, with);
    if pairs.is_empty() {
        numbers(base[0])?;
        numbers(with[0])?;
    }
    let change = |quantity: Quantity| changed(quantity, &pairs);
    Ok((Design::Repeats { pairs: pairs.len() }, QUANTITIES.into_iter().map(change).collect()))
}

/// How a quantity changes over pairs of whole runs, each without and with.
pub(super) fn changed(quantity: Quantity, pairs: &[[&RowResult; 2]]) -> Change {
    let value = |result: &RowResult| Some(float(quantity.of(figures(result)?)?));
    let values: Vec<[f64; 2]> =
        pairs.iter().filter_map(|[base, with]| Some([value(base)?, value(with)?])).collect();
    let differences = values.iter().map(|[base, with]| with - base).collect();
    let middle = |at: usize| median(values.iter().map(|pair| pair[at]).collect()).unwrap_or(0.0);
    Change::new(quantity, [middle(0), middle(1)], Contrast::Pairs(differences))
}

/// "load" when that is what the two differ in, else the second scenario's name.
fn subject(base: &RowResult, with: &RowResult) -> String {
    let idle = |result: &RowResult| result.load.is_empty() && result.fault.is_empty();
    let same_place = base.environment == with.environment;
    if same_place && idle(base) && !with.load.is_empty() && with.fault.is_empty() {
        LOAD.into()
    } else {
        format!("`{}`", with.name)
    }
}

/// What must be known before two rows are held against each other.
#[must_use]
pub fn caution(base: &RowResult, with: &RowResult) -> Option<String> {
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
