//! The benefit of each setting under test: pairs of measurements with and without it.

use std::collections::BTreeMap;

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::clock::ClockCheck;
use tactus_model::number::float;
use tactus_model::plan::Proof;
use tactus_statistics::{ERROR, Unknown, order_p};

use super::change::Change;
use super::effect::changed;
use super::half::Half;
use super::unknown::sentence;
use crate::row::{Quantity, figures, is_corrected, spared, unproven};
use crate::units::{TOLD, beginning, clean, listed};

/// The judged quantities of a setting.
pub const PROVEN: [Quantity; 3] = [Quantity::P99, Quantity::P999, Quantity::Maximum];

/// Fewer pairs than this are a look.
const EXPLORATORY: usize = 10;

/// A setting under test and what came of it.
#[derive(Clone, Debug)]
pub struct Proven {
    /// Id of its check.
    pub setting: String,
    /// Name of the environment.
    pub environment: String,
    /// The difference between the halves.
    pub what: String,
    /// The evidence of the numbers.
    pub evidence: Option<Evidence>,
    /// Pairs of which both halves were measured whole.
    pub whole: usize,
    /// Pairs of which a half broke: it counts as later than every latency.
    pub broken: usize,
    /// Pairs that were planned.
    pub planned: usize,
    /// Whether periods were missed, so that quantiles are corrected ones.
    pub corrected: bool,
    /// The effects on p99, p99.9 and the maximum; for a setting that is not tested, the measured medians.
    pub effects: Vec<Change>,
    /// Why it is not tested; `None` if it is.
    pub reason: Option<String>,
    /// Caveats: pairs that do not count, or an order that mattered.
    pub cautions: Vec<String>,
}

impl Proven {
    /// Whether there were enough pairs that an effect could be shown.
    #[must_use]
    pub const fn is_tested(&self) -> bool {
        self.reason.is_none()
    }
}

/// The runs of each scenario by its name, with their place in the order in which they were measured; of several
/// measurements of a scenario the first.
struct Runs<'a>(BTreeMap<&'a str, Vec<(usize, &'a RowResult)>>);

impl<'a> Runs<'a> {
    fn of(contents: &'a Contents) -> Self {
        let mut all: BTreeMap<&str, Vec<(usize, &RowResult)>> = BTreeMap::new();
        for (at, row) in contents.rows.iter().enumerate() {
            let own = all.entry(row.result.name.as_str()).or_default();
            if own.iter().all(|(_, other)| other.repeat != row.result.repeat) {
                own.push((at, &row.result));
            }
        }
        Self(all)
    }

    /// The pairs of two scenarios, without and with: those of the same round.
    fn pairs(&self, without: &str, with: &str) -> Vec<Pair<'a>> {
        let of = |name: &str| self.0.get(name).map(Vec::as_slice).unwrap_or_default();
        let mut pairs = Vec::new();
        for (at, own) in of(without) {
            if let Some((other_at, other)) = of(with).iter().find(|(_, other)| other.repeat == own.repeat) {
                pairs.push(Pair { at: [*at, *other_at], halves: [own, other] });
            }
        }
        pairs
    }
}

/// A measurement without the setting and one with it, each with its place in the order.
struct Pair<'a> {
    at: [usize; 2],
    halves: [&'a RowResult; 2],
}

/// The result of a pair: the state of each half, without and with, or why the pair does not count.
type Said<'a> = Result<[Half; 2], (&'a str, String)>;

/// Every setting under test of a bundle, in the plan's order, before they are judged.
pub(super) fn drafts(contents: &Contents) -> Vec<Proven> {
    let runs = Runs::of(contents);
    let spared = spared(contents);
    let is_due = |result: &RowResult| !result.control.is_empty() || !spared.contains(result.name.as_str());
    contents.plan.proof.iter().map(|proof| draft(proof, &runs, &is_due)).collect()
}

fn draft(proof: &Proof, runs: &Runs<'_>, is_due: &dyn Fn(&RowResult) -> bool) -> Proven {
    let names = proof.without.iter().zip(&proof.with);
    let pairs: Vec<Pair> = names.flat_map(|(without, with)| runs.pairs(without, with)).collect();
    let said: Vec<Said> = pairs.iter().map(|pair| said(pair, is_due)).collect();
    let counted: Vec<(&Pair, &[Half; 2])> =
        pairs.iter().zip(&said).filter_map(|(pair, said)| Some((pair, said.as_ref().ok()?))).collect();
    let (whole, broken): (Vec<_>, Vec<_>) =
        counted.iter().partition(|(_, halves)| halves.iter().all(|half| *half == Half::Whole));
    let planned = proof.with.len().min(proof.without.len()).max(pairs.len());
    let reason =
        proof.reason.clone().or_else(|| unseen(&pairs, is_due)).or_else(|| nothing(&counted, &said, planned));
    let mut made: Vec<[Option<&RowResult>; 2]> = Vec::new();
    for (pair, halves) in &counted {
        made.push([0, 1].map(|at| (halves[at] == Half::Whole).then_some(pair.halves[at])));
    }
    let effects = match reason {
        Some(_) => Vec::new(),
        None => PROVEN.into_iter().map(|quantity| changed(quantity, &made)).collect(),
    };
    let mut cautions = Vec::new();
    if reason.is_none() {
        cautions.extend(left_out(&said, planned));
        cautions.extend(broke(&broken, planned));
        cautions.extend(unseen_at_the_end(&pairs, is_due));
        cautions.extend(order(&whole));
    }
    let halves = || counted.iter().flat_map(|(pair, _)| pair.halves);
    Proven {
        setting: proof.setting.clone(),
        environment: proof.environment.clone(),
        what: proof.what.clone(),
        evidence: halves().find_map(|half| half.evidence),
        whole: whole.len(),
        broken: broken.len(),
        planned,
        corrected: halves().filter_map(figures).any(is_corrected),
        effects,
        reason,
        cautions,
    }
}

/// The result of a pair. A pair with an unknown half, or one measured by an unproven instrument, does not
/// count.
fn said<'a>(pair: &Pair<'a>, is_due: &dyn Fn(&RowResult) -> bool) -> Said<'a> {
    let halves = pair.halves.map(Half::of);
    // The problem that came first in time ended the pair.
    let order = if pair.at[1] < pair.at[0] { [1, 0] } else { [0, 1] };
    for at in order {
        let (half, result) = (&halves[at], pair.halves[at]);
        let why = match half {
            Half::Unknown(why) => Some(why.clone()),
            Half::Whole => doubt(result, is_due).map(|why| format!("self-test not passed: {why}")),
            Half::Broken(_) => None,
        };
        if let Some(why) = why {
            return Err((&result.name, why));
        }
    }
    Ok(halves)
}

/// Why the instrument of a half is not proven, where that half was to prove it.
fn doubt(result: &RowResult, is_due: &dyn Fn(&RowResult) -> bool) -> Option<String> {
    match is_due(result) {
        true => unproven(result),
        false => result.clock.as_ref().and_then(ClockCheck::refusal),
    }
}

/// How the self-test went of each pair that has one and was measured: whether a half passed it, and of one that did not
/// its name and why.
fn tests<'a>(
    pairs: &[Pair<'a>],
    is_due: &dyn Fn(&RowResult) -> bool,
) -> Vec<Result<usize, (&'a str, String)>> {
    let of = |(at, pair): (usize, &Pair<'a>)| {
        let due = pair.halves.into_iter().filter(|half| is_due(half) && Half::of(half) == Half::Whole);
        let mut doubts = due.map(|half| (half.name.as_str(), unproven(half))).peekable();
        doubts.peek()?;
        let doubts: Option<Vec<(&str, String)>> = doubts.map(|(name, why)| Some((name, why?))).collect();
        Some(doubts.and_then(|doubts| doubts.into_iter().next()).map_or(Ok(at), Err))
    };
    pairs.iter().enumerate().filter_map(of).collect()
}

/// Why a setting has no result. Its instrument is proven if a half passed the self-test in the first and in
/// the last pair with one.
fn unseen(pairs: &[Pair<'_>], is_due: &dyn Fn(&RowResult) -> bool) -> Option<String> {
    let tests = tests(pairs, is_due);
    let (Some(first), Some(last)) = (tests.first(), tests.last()) else {
        let mut halves = pairs.iter().flat_map(|pair| pair.halves);
        let was_measured = halves.any(|half| Half::of(half) == Half::Whole);
        return was_measured.then(|| "no self-test was made in any of its pairs".to_owned());
    };
    let failed = [first, last].into_iter().find_map(|test| test.as_ref().err());
    failed.map(|(name, why)| format!("self-test not passed in `{}`: {why}", clean(name)))
}

/// Says that the last pair was to have a self-test, and has none.
fn unseen_at_the_end(pairs: &[Pair<'_>], is_due: &dyn Fn(&RowResult) -> bool) -> Option<String> {
    let last = pairs.len().checked_sub(1)?;
    let is_asked = pairs[last].halves.into_iter().any(is_due);
    let seen = tests(pairs, is_due).into_iter().filter_map(Result::ok).next_back()?;
    (is_asked && seen < last).then(|| {
        format!("no self-test was made after pair {}: the last pair was not measured completely", seen + 1)
    })
}

/// Why there is nothing to judge: no measurement came to its end.
fn nothing(counted: &[(&Pair<'_>, &[Half; 2])], said: &[Said<'_>], planned: usize) -> Option<String> {
    let halves = || counted.iter().flat_map(|(pair, halves)| pair.halves.into_iter().zip(halves.iter()));
    if halves().any(|(_, half)| *half == Half::Whole) {
        return None;
    }
    let broke = halves().filter_map(|(result, half)| match half {
        Half::Broken(why) => Some((result.name.as_str(), why.as_str())),
        Half::Whole | Half::Unknown(_) => None,
    });
    let unknown = said.iter().filter_map(|said| said.as_ref().err()).map(|(name, why)| (*name, why.as_str()));
    let all: Vec<(&str, &str)> = broke.chain(unknown).collect();
    let why = if all.is_empty() { String::new() } else { format!(": {}", grouped(&all)) };
    Some(format!("none of {planned} pairs was measured completely{why}"))
}

/// The pairs that do not count, and why.
fn left_out(said: &[Said<'_>], planned: usize) -> Option<String> {
    let out: Vec<(&str, &str)> =
        said.iter().filter_map(|said| said.as_ref().err()).map(|(name, why)| (*name, why.as_str())).collect();
    let does = if out.len() == 1 { "does" } else { "do" };
    (!out.is_empty()).then(|| format!("{} of {planned} pairs {does} not count: {}", out.len(), grouped(&out)))
}

/// The pairs that broke, on each side.
fn broke(broken: &[&(&Pair<'_>, &[Half; 2])], planned: usize) -> Option<String> {
    let side = |at: usize, word: &str| {
        let own = broken.iter().filter_map(|(pair, halves)| match &halves[at] {
            Half::Broken(why) => Some((pair.halves[at].name.as_str(), why.as_str())),
            Half::Whole | Half::Unknown(_) => None,
        });
        let own: Vec<(&str, &str)> = own.collect();
        (!own.is_empty()).then(|| format!("{} {word} it: {}", own.len(), grouped(&own)))
    };
    let sides: Vec<String> = [side(1, "with"), side(0, "without")].into_iter().flatten().collect();
    (!sides.is_empty()).then(|| {
        format!(
            "in {} of {planned} pairs a measurement broke and counts as worse than every latency: {}",
            broken.len(),
            sides.join("; ")
        )
    })
}

/// Names with their reasons, each reason once: "`thp with, 7` and 3 more: the guest broke".
fn grouped(all: &[(&str, &str)]) -> String {
    let mut groups: Vec<(&str, &str, usize)> = Vec::new();
    for (name, why) in all {
        match groups.iter_mut().find(|(_, known, _)| known == why) {
            Some((.., more)) => *more += 1,
            None => groups.push((name, why, 0)),
        }
    }
    let words = |(name, why, more): &(&str, &str, usize)| {
        let more = if *more > 0 { format!(" and {more} more") } else { String::new() };
        // A reason may be a sentence of a probe or a peer.
        format!("`{}`{more}: {}", clean(name), clean(&beginning(why, TOLD)))
    };
    listed(&groups.iter().map(words).collect::<Vec<_>>(), "; ")
}

/// Whether differences depend on which half came first, in the pairs that were measured whole.
fn order(whole: &[&(&Pair<'_>, &[Half; 2])]) -> Option<String> {
    let value = |quantity: Quantity, result: &RowResult| Some(float(quantity.of(figures(result)?)?));
    let with_first: Vec<bool> = whole.iter().map(|(pair, _)| pair.at[1] < pair.at[0]).collect();
    let depends = |quantity: Quantity| {
        let difference =
            |pair: &Pair| Some(value(quantity, pair.halves[1])? - value(quantity, pair.halves[0])?);
        let differences: Option<Vec<f64>> = whole.iter().map(|(pair, _)| difference(pair)).collect();
        // One error for all three quantities.
        differences.is_some_and(|of| order_p(&of, &with_first) * 3.0 <= ERROR)
    };
    let names: Vec<&str> = PROVEN.into_iter().filter(|q| depends(*q)).map(Quantity::name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the difference in {} depends on which half of a pair came first: the setting acts for longer \
             than a half takes; prove it again with a longer --duration",
            names.join(" and ")
        )
    })
}

/// After they were judged: where there are too few pairs for any effect to be shown, it is not tested.
pub(super) fn close(proven: &mut Proven) {
    if !proven.is_tested() {
        return;
    }
    if proven.planned < EXPLORATORY {
        let said = format!("exploratory: only {} pairs were planned", proven.planned);
        proven.cautions.insert(0, said);
    }
    let few = proven.effects.iter().find_map(|change| match change.difference {
        Err(Unknown::TooFewRuns { least, .. }) => Some(least),
        _ => None,
    });
    let counted = proven.whole + proven.broken;
    proven.reason = match few {
        Some(least) => Some(format!(
            "{counted} of {} pairs can be judged, too few for all that is tested here: {least} are needed",
            proven.planned
        )),
        None => {
            let unknown: Option<Vec<Unknown>> =
                proven.effects.iter().map(|change| change.difference.err()).collect();
            unknown.and_then(|all| all.first().copied().map(sentence))
        }
    };
}
