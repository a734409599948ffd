//! By how much the values of one environment are worse than those of another.
//!
//! Two runs of the same thing differ (where pages lie, how warm the machine is), and no interval from within
//! a run shows that. So a degradation is judged from pairs of runs in random order.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::bundle::{Contents, RowResult};
use tactus_model::catalogue::Measure;
use tactus_model::document::Degradation;
use tactus_model::outcome::exits::KvmExits;
use tactus_model::outcome::{Better, RowEnd, ValueResult, wholes};
use tactus_statistics::ERROR;
use tactus_statistics::max_t::{least, simultaneous};

use super::comparison::is_host;
use super::conditions::{keys, measures};
use super::measured::{Measured, Run};
use super::ratio::value_ratio;
use super::typical::{place, valued};

/// Runs of one measurement in two places.
#[derive(Clone, Debug)]
pub struct Degraded<'a> {
    /// The first run of the base.
    pub base: &'a RowResult,
    /// The number of that run in the bundle.
    pub base_row: usize,
    /// The first run of the other one.
    pub with: &'a RowResult,
    /// The number of that run in the bundle.
    pub with_row: usize,
    /// Whole runs of the same round in both.
    pub rounds: usize,
    /// Rounds in which a run broke: its values are unknown, and an effect may be hidden in them.
    pub broken: usize,
    /// The items that both have.
    pub items: Vec<DegradedItem>,
}

/// An item of both.
#[derive(Clone, Debug)]
pub struct DegradedItem {
    /// There; of several runs the median.
    pub base: ValueResult,
    /// Here.
    pub with: ValueResult,
    /// The difference between them.
    pub degradation: Degradation,
    /// Logarithms of the worse value over the better one, by round.
    differences: Vec<Option<f64>>,
}

/// Compares the rows that yield values with those of the first place: a host's if there is one. Streams over
/// network paths are compared with those over the first path. Nothing is judged yet.
#[must_use]
pub fn held_against(contents: &Contents) -> Vec<Degraded<'_>> {
    let pairs = pairs(contents);
    let all = Measured::all(contents, pairs.iter().flat_map(|(base, with)| [*base, *with]));
    let degraded =
        pairs.iter().filter_map(|(base, with)| Some(Degraded::new(all.get(&base.0)?, all.get(&with.0)?)));
    degraded.filter(|pair| !pair.items.is_empty()).collect()
}

/// The same of streams over network paths, or of all others, judged.
///
/// All degradations in a report hold together with 95 %: each pair of places, or of paths, has an equal part
/// of the error and shares it among its items.
#[must_use]
pub fn degradations(contents: &Contents, network: bool) -> Vec<Degraded<'_>> {
    let mut all = held_against(contents);
    let groups: BTreeSet<(&str, &str)> =
        all.iter().filter(|pair| pair.is_repeated()).map(Degraded::group).collect();
    let parts = groups.len();
    all.retain(|pair| pair.is_network() == network);
    let mut own: BTreeMap<(&str, &str), Vec<&mut Degraded>> = BTreeMap::new();
    for pair in all.iter_mut().filter(|pair| pair.is_repeated()) {
        own.entry(pair.group()).or_default().push(pair);
    }
    for group in own.into_values() {
        judge(group.into_iter(), parts);
    }
    all
}

/// Rounds that are needed for this number of places beside the first.
#[must_use]
pub fn least_rounds(places: usize) -> usize {
    least(part_of_error(places))
}

impl<'a> Degraded<'a> {
    /// Before it is judged together with others.
    pub(super) fn new(base: &Measured<'a>, with: &Measured<'a>) -> Self {
        let (rounds, broken) = whole_rounds(base, with);
        let item = |own: &ValueResult| {
            let theirs = base.value(own)?;
            let ratio = logarithm(theirs, own)?;
            let of = |run: &Run<'a>| run.values.get(&place(own)).copied();
            let difference = |[base, with]: &[&Run<'a>; 2]| logarithm(of(base)?, of(with)?);
            let (low, high) = within(theirs, own).filter(|_| rounds.len() < 2).unzip();
            Some(DegradedItem {
                differences: rounds.iter().map(difference).collect(),
                degradation: Degradation { value: ratio.exp_m1(), low, high, rounds: 1, seen: false },
                base: theirs.clone(),
                with: own.clone(),
            })
        };
        let items = wholes(&with.values).filter_map(item).collect();
        Self {
            base: base.first,
            base_row: base.row,
            with: with.first,
            with_row: with.row,
            rounds: rounds.len(),
            broken,
            items,
        }
    }

    /// Whether there are runs enough to judge at all.
    #[must_use]
    pub const fn is_repeated(&self) -> bool {
        self.rounds > 1
    }

    /// Whether it is about streams over network paths.
    #[must_use]
    pub const fn is_network(&self) -> bool {
        is_network(self.with)
    }

    /// The group that is judged together: all measurements in the same two places, and each path by itself.
    fn group(&self) -> (&'a str, &'a str) {
        if self.is_network() {
            (&self.base.name, &self.with.name)
        } else {
            (&self.base.environment, &self.with.environment)
        }
    }
}

/// Judges one family of pairs together. Each of `families` has an equal part of the error.
pub(super) fn judge<'a: 'b, 'b>(pairs: impl Iterator<Item = &'b mut Degraded<'a>>, families: usize) {
    let items: Vec<&mut DegradedItem> = pairs.flat_map(|pair| &mut pair.items).collect();
    let differences: Vec<Vec<Option<f64>>> = items.iter().map(|item| item.differences.clone()).collect();
    let found = simultaneous(&differences, part_of_error(families));
    for (item, found) in items.into_iter().zip(found) {
        let rounds = item.differences.iter().flatten().count() as u64;
        item.degradation = match found {
            Some(found) => Degradation {
                value: found.estimate.exp_m1(),
                low: Some((found.estimate - found.margin).exp_m1()),
                high: Some((found.estimate + found.margin).exp_m1()),
                rounds,
                seen: found.is_shown(),
            },
            None => Degradation { low: None, high: None, rounds, ..item.degradation },
        };
    }
}

fn part_of_error(families: usize) -> f64 {
    ERROR / u32::try_from(families.max(1)).map_or(f64::INFINITY, f64::from)
}

/// Of one item: above zero where `own` is worse.
fn logarithm(theirs: &ValueResult, own: &ValueResult) -> Option<f64> {
    let ratio = (own.value / theirs.value).ln();
    let worse = match own.better {
        Better::Lower => ratio,
        Better::Higher => -ratio,
    };
    worse.is_finite().then_some(worse)
}

/// Between the ends that the intervals of two runs allow together.
fn within(theirs: &ValueResult, own: &ValueResult) -> Option<(f64, f64)> {
    let (low, high) = value_ratio(own, theirs)?.interval.filter(|(low, _)| *low > 0.0)?;
    Some(match own.better {
        Better::Lower => (low - 1.0, high - 1.0),
        Better::Higher => (1.0 / high - 1.0, 1.0 / low - 1.0),
    })
}

/// Whole runs of the same round in both places, and how many rounds are not whole because a run broke.
fn whole_rounds<'m, 'a>(base: &'m Measured<'a>, with: &'m Measured<'a>) -> (Vec<[&'m Run<'a>; 2]>, usize) {
    let is_whole = |run: &Run| run.result.ended == RowEnd::Complete && !run.result.values().is_empty();
    let rounds = with.runs.chunk_by(|one, other| one.result.repeat == other.result.repeat);
    let made = rounds
        .filter_map(<[Run]>::first)
        .flat_map(|own| base.round(own.result.repeat).iter().map(move |theirs| [theirs, own]))
        .filter(|pair| pair.iter().all(|run| was_made(run.result)));
    let (whole, broken): (Vec<_>, Vec<_>) = made.partition(|pair| pair.iter().all(|run| is_whole(run)));
    (whole, broken.len())
}

/// Whether it was made, and ended by itself if it ended early: what did not says nothing of the place.
const fn was_made(result: &RowResult) -> bool {
    use RowEnd::{Broke, Complete, Failed, Stopped};
    !result.damaged && matches!(result.ended, Complete | Stopped | Broke | Failed)
}

const fn is_network(result: &RowResult) -> bool {
    matches!(result.measurement, Measure::Network(_))
}

/// Whether tracing made each of its exits longer: a difference is then not the cost of the place.
const fn has_paid_for_tracing(result: &RowResult) -> bool {
    matches!(result.exits, Some(KvmExits::Counted(_)))
}

/// A run, with its number in the bundle.
type Numbered<'a> = (usize, &'a RowResult);

/// The pairs of first runs to compare.
fn pairs(contents: &Contents) -> Vec<(Numbered<'_>, Numbered<'_>)> {
    let results = valued(contents).into_iter().map(|(number, row)| (number, &row.result));
    let firsts: Vec<Numbered> = results.filter(|(_, result)| !has_paid_for_tracing(result)).collect();
    let keys: Vec<[String; 2]> = firsts.iter().map(|(_, own)| comparable(own)).collect();
    let (mut hosts, mut all): (BTreeMap<&str, usize>, BTreeMap<&str, usize>) = Default::default();
    for (at, ((_, own), keys)) in firsts.iter().zip(&keys).enumerate() {
        for key in keys {
            all.entry(key).or_insert(at);
            if is_host(own) && !is_network(own) {
                hosts.entry(key).or_insert(at);
            }
        }
    }
    let first = |of: &BTreeMap<&str, usize>, keys: &[String; 2]| {
        keys.iter().filter_map(|key| of.get(key.as_str()).copied()).min()
    };
    let base = |keys| firsts.get(first(&hosts, keys).or_else(|| first(&all, keys))?).copied();
    let elsewhere = |base: &RowResult, own: &RowResult| {
        is_network(own) && base.name != own.name || base.environment != own.environment
    };
    firsts
        .iter()
        .zip(&keys)
        .filter_map(|(own, keys)| Some((base(keys)?, *own)))
        .filter(|((_, base), (_, own))| elsewhere(base, own))
        .collect()
}

/// A text that two rows share if they can be compared; streams over network paths need nothing more in
/// common.
fn comparable(result: &RowResult) -> [String; 2] {
    if is_network(result) {
        return ["network", "network"].map(String::from);
    }
    let alike = format!("{} {:?} {}", measures(&result.measurement), result.policy, result.priority);
    keys(&alike, result)
}
