//! The effects from one scenario to another, in words that claim no more than was shown.

use std::collections::BTreeMap;

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult, Sliced};
use tactus_model::latency::Summary;
use tactus_model::number::float;
use tactus_statistics::{Contrast, Difference, Slots, Unknown, at_most, least_pairs, median};

use super::change::Change;
use super::half::Half;
use super::runs::runs;
use super::slots::slots_alike;
use super::unknown::{sentence, word};
use crate::row::{Quantity, broke, figures, is_corrected, never_made};
use crate::units::{duration, latency, signed};

/// The quantities of an effect.
const QUANTITIES: [Quantity; 3] = [Quantity::P50, Quantity::P999, Quantity::Maximum];

/// The runs that an effect is judged from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// One run each, cut into intervals of time.
    TwoRuns {
        /// Without and with.
        slots: [usize; 2],
    },
    /// Pairs of runs, in random order.
    Repeats {
        /// Those that were made.
        pairs: usize,
        /// Those of them in which a run broke.
        broken: usize,
    },
    /// One run each, in slices that were measured in turn, in random order.
    Slices {
        /// Pairs of one round that were made.
        pairs: usize,
        /// Those of them in which a slice broke.
        broken: usize,
        /// How long a slice is, in ns.
        length_ns: u64,
    },
}

/// The effect of one scenario against another.
#[derive(Clone, Debug)]
pub struct Effect {
    /// The subject of the sentence: `load`, or the scenario's name.
    pub subject: String,
    /// The scenario without it, as a place in a sentence: `idle`, or its name.
    pub base: String,
    /// Whether periods were missed, so that quantiles are corrected ones.
    pub corrected: bool,
    /// On p50, p99.9 and maximum.
    pub changes: Vec<Change>,
    /// The runs that it is judged from.
    pub design: Design,
    /// The runs that broke, without and with, a sentence each.
    pub broke: Vec<String>,
    /// The largest latency of all runs, without and with, in ns; of runs that were cut short as well.
    pub largest_ns: [Option<u64>; 2],
    /// A caveat to read before the numbers are used.
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
            let values =
                |change: &Change| format!("{} {}", change.quantity.said(self.corrected), self.values(change));
            let values: Vec<String> = self.changes.iter().map(values).collect();
            let said = format!("{}: {}", sentence(*why), values.join("; "));
            return self.broke.iter().cloned().chain([said]).collect();
        }
        self.broke.iter().cloned().chain(self.changes.iter().map(|change| self.sentence(change))).collect()
    }

    /// The answer for each quantity without its numbers; none where all are unknown for one reason, which the answer gives.
    #[must_use]
    pub fn plain(&self) -> Vec<String> {
        if self.found().is_none() {
            return Vec::new();
        }
        let two_runs = matches!(self.design, Design::TwoRuns { .. });
        let subject = &self.subject;
        let said = |change: &Change| {
            let name = match (change.quantity, self.design) {
                (Quantity::Maximum, Design::TwoRuns { .. }) => "the maximum",
                (Quantity::Maximum, Design::Slices { .. }) => SLICE_MAXIMUM,
                (Quantity::Maximum, Design::Repeats { .. }) => TYPICAL_MAXIMUM,
                (quantity, _) => quantity.name(),
            };
            match change.difference {
                Err(why) => format!("{name}: {}", sentence(why)),
                Ok(found) if found.is_shown() => {
                    let (raises, higher) =
                        if found.estimate_ns > 0.0 { ("raises", "higher") } else { ("lowers", "lower") };
                    match two_runs {
                        true => format!("{name} was {higher} {} in these two runs", self.place()),
                        false => format!("{subject} {raises} {name}"),
                    }
                }
                Ok(_) if two_runs => format!("no difference in {name} is shown between these two runs"),
                Ok(_) => format!("no effect of {subject} on {name} is shown"),
            }
        };
        self.broke.iter().cloned().chain(self.changes.iter().map(said)).collect()
    }

    /// `load raises p99.9 by 3.1 us (95 % interval 1.2 to 5.0 us)`, or what the measurement cannot rule out; of two
    /// single runs only what differs between them.
    fn sentence(&self, change: &Change) -> String {
        let two_runs = matches!(self.design, Design::TwoRuns { .. });
        let (before, name) = match (change.quantity, two_runs) {
            (Quantity::Maximum, true) => {
                let (base, with) = (latency(change.base_ns), latency(change.with_ns));
                let overall = signed(change.with_ns - change.base_ns);
                let before = format!("the maximum is {with} against {base} ({overall}); ");
                (before, "the median of the per-interval maxima".to_owned())
            }
            (Quantity::Maximum, false) if matches!(self.design, Design::Slices { .. }) => {
                (String::new(), SLICE_MAXIMUM.to_owned())
            }
            (Quantity::Maximum, false) => (String::new(), TYPICAL_MAXIMUM.to_owned()),
            (quantity, _) => (String::new(), quantity.said(self.corrected)),
        };
        let said = match &change.difference {
            Err(why) => format!("{name}: {}: {}", sentence(*why), self.values(change)),
            Ok(difference) if two_runs => self.between_runs(&name, change, difference),
            Ok(difference) => self.effect(&name, change, difference),
        };
        let behind = match change.quantity {
            Quantity::Maximum => self.largest(change.is_shown()),
            _ => String::new(),
        };
        before + &said + &behind
    }

    /// The largest of all runs, beside what is typical of one; and how many runs may do what none of these did.
    fn largest(&self, is_shown: bool) -> String {
        let Design::Repeats { pairs, .. } = self.design else { return String::new() };
        let [Some(base), Some(with)] = self.largest_ns else { return String::new() };
        let [base, with] = [base, with].map(|ns| latency(float(ns)));
        let rare = match is_shown {
            true => String::new(),
            false => format!(
                "; up to {:.0} % of all runs may behave in ways that {pairs} do not show (95 %)",
                at_most(pairs) * 100.0
            ),
        };
        format!("; the largest of all runs is {with} against {base}{rare}")
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
            if difference.estimate_ns.is_infinite() {
                return format!(
                    "{subject} {verb} {name} by an unknown amount: too many runs failed ({interval})"
                );
            }
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

    /// `19 us idle, 25 us under load`.
    fn values(&self, change: &Change) -> String {
        let (base, with) = (latency(change.base_ns), latency(change.with_ns));
        format!("{base} {}, {with} {}", self.base, self.place())
    }

    fn place(&self) -> String {
        if self.subject == LOAD { "under load".into() } else { format!("in {}", self.subject) }
    }

    /// Whether any of the three changes; `None` if all are unknown.
    #[must_use]
    pub fn found(&self) -> Option<bool> {
        let any = self.changes.iter().any(|change| change.difference.is_ok());
        any.then(|| self.changes.iter().any(Change::is_shown))
    }

    /// The answer in a few words.
    #[must_use]
    pub fn answer(&self) -> String {
        let repeats = matches!(self.design, Design::Repeats { .. });
        let name = |change: &Change| match change.quantity {
            Quantity::Maximum if repeats => "typical maximum",
            quantity => quantity.name(),
        };
        let names: Vec<&str> = self.changes.iter().filter(|change| change.is_shown()).map(name).collect();
        let (shown, none) = match self.design {
            Design::TwoRuns { .. } => {
                ("these two runs differ in", "no difference between these two runs shown")
            }
            Design::Repeats { .. } | Design::Slices { .. } => ("an effect on", "no effect shown"),
        };
        let unknown: Option<Unknown> = self.changes.iter().find_map(|change| change.difference.err());
        let said = match (names.as_slice(), unknown) {
            ([], Some(why)) => format!("inconclusive: {}", word(why)),
            ([], None) => none.into(),
            ([one], _) => format!("{shown} {one}"),
            ([some @ .., last], _) => format!("{shown} {} and {last}", some.join(", ")),
        };
        match self.design {
            Design::Repeats { pairs, broken } if broken > 0 => {
                format!("{said}; in {broken} of {pairs} pairs a run did not complete")
            }
            Design::Slices { pairs, broken, .. } if broken > 0 => {
                format!("{said}; in {broken} of {pairs} pairs a slice broke")
            }
            _ if !self.broke.is_empty() => format!("{said}; a run ended early"),
            _ => said,
        }
    }

    /// Whether all of it was measured to its end.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.broke.is_empty()
    }

    /// How it is judged, in words.
    #[must_use]
    pub fn method(&self) -> String {
        match self.design {
            Design::TwoRuns { slots: [base, with] } => format!(
                "one run each, {base} and {with} report intervals; run-to-run variation is unknown: use \
                 `repeat = 8` in the plan"
            ),
            Design::Repeats { pairs, broken } => {
                format!("{pairs} pairs of runs in randomised order{}", counted(pairs, broken, "run"))
            }
            Design::Slices { pairs, broken, length_ns } => format!(
                "{pairs} pairs of slices of {} in randomised order{}; figures are those of a slice",
                duration(length_ns),
                counted(pairs, broken, "slice")
            ),
        }
    }
}

/// How the pairs count in which something broke.
fn counted(pairs: usize, broken: usize, what: &str) -> String {
    match broken {
        0 => String::new(),
        _ => format!(
            ", {} of {pairs} of them complete; a {what} that broke counts as worse than any that did not",
            pairs - broken
        ),
    }
}

/// The largest difference that is not excluded, if that bounds anything; else words for the unknown.
fn bound(change: &Change, difference: &Difference) -> Result<String, String> {
    let most = difference.interval.largest();
    if most <= change.base_ns {
        Ok(latency(most))
    } else if most.is_finite() {
        Err(format!("; a change of up to {} is possible", latency(most)))
    } else {
        Err("; a change of any size is possible".into())
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
            (false, false) => "its size is unknown".into(),
        };
    }
    let end = |ns: f64| if ns.is_finite() { signed(ns) } else { "unknown".into() };
    format!("95 % interval {} to {}", end(interval.low_ns), end(interval.high_ns))
}

/// The name of a maximum that is the median of several runs.
const TYPICAL_MAXIMUM: &str = "the typical maximum of a run";

/// The same of slices.
const SLICE_MAXIMUM: &str = "the typical maximum of a slice";

/// The subject where load is all that two scenarios differ in.
const LOAD: &str = "load";

/// The effect of the scenario of `with` against that of `base`, before it is judged.
///
/// # Errors
/// When one of them lacks numbers, a fault in them was never made, or they were not measured alike: the
/// sentence that says so.
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
    let largest = |runs: &[&Row]| runs.iter().filter_map(|row| figures(&row.result)?.max_ns).max();
    let broke =
        |runs: &[&Row]| broke(contents, runs).map(|words| format!("`{}`: {words}", runs[0].result.name));
    let subject = subject(&first.result, &other.result);
    Ok(Effect {
        base: if subject == LOAD { "idle".into() } else { format!("in `{}`", first.result.name) },
        broke: [&base, &with].into_iter().filter_map(|runs| broke(runs)).collect(),
        largest_ns: [largest(&base), largest(&with)],
        subject,
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
        format!("`{}` was not measured: {reason}", row.result.name)
    })
}

/// Of one run each.
fn within(base: &Row, with: &Row) -> Result<(Design, Vec<Change>), String> {
    if base.result.damaged || with.result.damaged {
        return Err("the bundle is damaged".into());
    }
    let all = [numbers(base)?, numbers(with)?];
    let slots = slots_alike(base, with)?;
    let maxima = [slots[0].maxima(), slots[1].maxima()];
    let drifts = slots.iter().any(Slots::drifts);
    let change = |quantity: Quantity| {
        let value = |at: usize| {
            let none = || format!("no sample of `{}` reached its histogram", [base, with][at].result.name);
            quantity.of(all[at]).map(float).ok_or_else(none)
        };
        let known = |at: usize| match quantity.part() {
            Some(part) => slots[at].quantile(part),
            None => maxima[at].quantile(0.5),
        };
        let contrast = match Contrast::runs(known(0), known(1)) {
            Contrast::Runs(_) if drifts => Contrast::Nothing(Unknown::Drift),
            contrast => contrast,
        };
        Ok::<Change, String>(Change::new(quantity, [value(0)?, value(1)?], contrast))
    };
    let changes = QUANTITIES.into_iter().map(change).collect::<Result<_, _>>()?;
    Ok((Design::TwoRuns { slots: [slots[0].len(), slots[1].len()] }, changes))
}

/// Pairs of slices of one round, if there are enough for a verdict from their random order. Without an
/// effect, their difference is as likely one way as the other, whichever was measured first.
fn slices(base: &Row, with: &Row) -> Option<(Design, Vec<Change>)> {
    let round = |of: &Sliced| of.result.slice.map(|slice| (slice.number, slice.of));
    let mut others = BTreeMap::new();
    for other in &with.slices {
        others.entry(round(other)).or_insert(&other.result);
    }
    let pairs: Vec<Pair<'_>> =
        base.slices.iter().filter_map(|one| pair(&one.result, others.get(&round(one))?)).collect();
    let mut whole = pairs.iter().flatten().flatten();
    let length_ns = whole.next()?.planned_ns;
    let alike = whole.all(|result| result.planned_ns == length_ns);
    if pairs.len() < least_pairs(0.05 / float(QUANTITIES.len() as u64)) || !alike {
        return None;
    }
    let changes = QUANTITIES.into_iter().map(|quantity| changed(quantity, &pairs)).collect();
    Some((Design::Slices { pairs: pairs.len(), broken: broken(&pairs), length_ns }, changes))
}

/// Of pairs of runs.
fn between(base: &[&Row], with: &[&Row]) -> Result<(Design, Vec<Change>), String> {
    let planned = [base[0].result.planned_ns, with[0].result.planned_ns];
    if planned[0] != planned[1] {
        let [one, other] = planned.map(duration);
        return Err(format!("they measure for different durations: {one} and {other}"));
    }
    let pairs = pairs(base, with);
    if pairs.iter().flatten().flatten().next().is_none() {
        numbers(base[0])?;
        numbers(with[0])?;
    }
    let change = |quantity: Quantity| changed(quantity, &pairs);
    Ok((
        Design::Repeats { pairs: pairs.len(), broken: broken(&pairs) },
        QUANTITIES.into_iter().map(change).collect(),
    ))
}

/// Runs of one round, without and with. One that broke is `None`: it counts as worse than any that did not.
type Pair<'a> = [Option<&'a RowResult>; 2];

/// The pair of two runs; `None` where one of them says nothing.
fn pair<'a>(base: &'a RowResult, with: &'a RowResult) -> Option<Pair<'a>> {
    let half = |result: &'a RowResult| match Half::of(result) {
        Half::Whole => Some(Some(result)),
        Half::Broken(_) => Some(None),
        Half::Unknown(_) => None,
    };
    Some([half(base)?, half(with)?])
}

/// Runs of one round that were made, without and with.
fn pairs<'a>(base: &[&'a Row], with: &[&'a Row]) -> Vec<Pair<'a>> {
    let of = |row: &&Row| with.iter().find(|other| other.result.repeat == row.result.repeat).copied();
    base.iter().filter_map(|row| pair(&row.result, &of(row)?.result)).collect()
}

/// In how many of these a run broke.
fn broken(pairs: &[Pair<'_>]) -> usize {
    pairs.iter().filter(|pair| pair.iter().any(Option::is_none)).count()
}

/// How a quantity changes over pairs of runs, each without and with. One that broke is worse than any that did not; where
/// both did, their difference may be any.
pub(super) fn changed(quantity: Quantity, pairs: &[Pair<'_>]) -> Change {
    let value = |half: Option<&RowResult>| half.and_then(figures).and_then(|all| quantity.of(all)).map(float);
    let values: Vec<[Option<f64>; 2]> = pairs.iter().map(|pair| pair.map(value)).collect();
    let worst = |value: Option<f64>| value.unwrap_or(f64::INFINITY);
    let differences = values.iter().map(|[base, with]| worst(*with) - worst(*base)).collect();
    let middle = |at: usize| median(values.iter().filter_map(|pair| pair[at]).collect()).unwrap_or(f64::NAN);
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

/// A caveat to the comparison of two rows.
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
