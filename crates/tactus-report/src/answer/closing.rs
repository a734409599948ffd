//! The outcome of each required limit, over all measurements: the closing list of a run.

use tactus_model::bundle::Contents;
use tactus_model::document::{LimitEntry, Outcome};

use super::required::{Judged, asked_of, judged, over, part, rank};
use crate::row::{Runs, came_of, figure_words, limit_words, taken_words};
use crate::stats::Line;
use crate::units::{TOLD, beginning, clean, listed, number};

/// A limit, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The worst outcome of all measurements. A limit that only warns never fails.
    pub outcome: Outcome,
    /// `max 100 us`; all limits that were asked for if none could be judged; empty if none is on a latency.
    pub limit: String,
    /// `187 us on host loaded, 87.0 us too much (10 s, under scheduler load, bare metal)`.
    pub said: String,
}

impl Closed {
    /// How a limit came out, in a word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self.outcome {
            Outcome::Pass => "met",
            Outcome::Warn => "warning",
            Outcome::Inconclusive => "not decided",
            Outcome::Fail => "NOT MET",
        }
    }
}

/// One limit of one measurement.
struct One<'a> {
    judged: &'a Judged<'a>,
    entry: &'a LimitEntry,
}

/// Every limit that was asked for with its outcome, the worst first; empty without any. `lines`: the
/// comparison of the bundle.
#[must_use]
pub fn closing(contents: &Contents, lines: &[Line]) -> Vec<Closed> {
    let all = Runs::new(contents);
    let judged: Vec<Judged<'_>> = lines.iter().filter_map(|line| judged(&all, line)).collect();
    let mut groups: Vec<Vec<One<'_>>> = Vec::new();
    for one in
        judged.iter().flat_map(|own| own.verdict.limits.iter().map(move |entry| One { judged: own, entry }))
    {
        match groups
            .iter_mut()
            .find(|group| group.first().is_some_and(|first| is_same(first.entry, one.entry)))
        {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    let mut closed: Vec<Closed> = groups.iter().filter_map(|group| of_limit(group)).collect();
    closed.extend(not_judged(&judged));
    closed.sort_by_key(|one| std::cmp::Reverse(rank(one.outcome)));
    closed
}

fn is_same(one: &LimitEntry, other: &LimitEntry) -> bool {
    (&one.quantity, one.warns) == (&other.quantity, other.warns) && one.limit.total_cmp(&other.limit).is_eq()
}

/// The outcome of a limit in one measurement.
const fn outcome(one: &One<'_>) -> Outcome {
    came_of(one.entry, one.judged.verdict)
}

/// Over all measurements that have the limit: of those that came out worst the one that takes most of it.
fn of_limit(group: &[One<'_>]) -> Option<Closed> {
    let worst = group.iter().map(|one| rank(outcome(one))).max()?;
    let own = || group.iter().filter(|one| rank(outcome(one)) == worst);
    let decides = own().max_by(|one, other| part(one.entry).total_cmp(&part(other.entry)))?;
    let (entry, outcome) = (decides.entry, outcome(decides));
    let others: Vec<String> = own()
        .filter(|one| outcome != Outcome::Pass && one.judged.line.row != decides.judged.line.row)
        .map(|one| clean(&one.judged.line.name))
        .collect();
    let others = if others.is_empty() { String::new() } else { format!("; also {}", listed(&others, "; ")) };
    let name = clean(&decides.judged.line.name);
    let by = match outcome {
        Outcome::Fail | Outcome::Warn if entry.high > entry.limit && entry.limit > 0.0 => {
            let excess = figure_words(entry, entry.high - entry.limit);
            // Beside a far smaller limit the excess is rounded to the figure itself.
            match excess == figure_words(entry, entry.high) {
                true => format!(", {} times the limit", number(entry.high / entry.limit)),
                false => format!(", {excess} too much"),
            }
        }
        _ => String::new(),
    };
    let why = match outcome {
        Outcome::Inconclusive => format!(": {}", doubt(&entry.reason)),
        _ => format!(" ({})", over(decides.judged, entry)),
    };
    let said = format!("{} in {name}{by}{why}{others}", taken_words(entry));
    let limit = format!("{} {}", clean(&entry.quantity), limit_words(entry));
    Some(Closed { outcome, limit, said })
}

/// Why nothing is decided: what stands behind the `but` of a reason.
fn doubt(reason: &str) -> String {
    clean(&beginning(reason.split_once(", but ").map_or(reason, |(_, doubt)| doubt), 2 * TOLD))
}

/// The measurements of which no limit could be judged, those with the same reason together.
fn not_judged(all: &[Judged<'_>]) -> Vec<Closed> {
    let mut reasons: Vec<(String, String, Vec<String>)> = Vec::new();
    for one in all.iter().filter(|one| one.verdict.limits.is_empty()) {
        let (limit, reason, name) =
            (asked_of(one).unwrap_or_default(), doubt(&one.verdict.reason), clean(&one.line.name));
        match reasons.iter_mut().find(|known| (&known.0, &known.1) == (&limit, &reason)) {
            Some((.., names)) => names.push(name),
            None => reasons.push((limit, reason, vec![name])),
        }
    }
    let closed = |(limit, reason, names): (String, String, Vec<String>)| {
        let said = format!("{}: {reason}", listed(&names, "; "));
        Closed { outcome: Outcome::Inconclusive, limit, said }
    };
    reasons.into_iter().map(closed).collect()
}
