//! The tail bound of a row: whether anything may be said at all, what the worst of its series says, and what follows for a
//! requirement.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use tactus_model::Evidence;
use tactus_model::bundle::{Row, RowResult};
use tactus_model::document::{
    LimitEntry, Side, TailEntry, TailLevel, TailProvisional, TailRefused, TailTest,
};
use tactus_model::number::{float, whole};
use tactus_model::outcome::RowEnd;
use tactus_model::plan::TailLimit;
use tactus_model::ticks::{SeriesTicks, Stretch};
use tactus_statistics::tail::{Bound, LEAST_BLOCKS, Level, Maxima, PROMISED_BLOCKS, Refusal, Tested, bound};

use super::grounds::{Doubt, Found, asked, evidence};
use super::standing::doubts;
use super::summary::figures;
use super::tail_refusal::sentence;
use crate::units::{count, duration, latency};

/// A stretch of time with less than this part of the periods of the others did not arrive as a whole.
const WHOLE: f64 = 0.9;
/// Largest factor between the run that is asked for and the run that was made.
const LONGEST: f64 = 100.0;
/// An exceedance within this share of the horizon breaks a limit at once: with less than one in the horizon,
/// its probability is at most this.
const BROKEN: f64 = 0.025;
/// Results that are remembered: a report asks for each several times.
const KNOWN: usize = 256;

/// Why a row has no bound.
#[derive(Clone, Debug, PartialEq)]
pub enum NoTail {
    /// It is no evidence of the hardware's latency, and the sentence that says so.
    Evidence(Evidence, String),
    /// It was ended by its largest latency.
    Broke,
    /// There is no ground for any verdict on it.
    Ground(Doubt),
    /// The series with this name gives no bound.
    Series(String, Refusal),
}

impl NoTail {
    /// In a word, for machines.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Evidence(Evidence::Imported, _) => "imported",
            Self::Evidence(..) => "emulated",
            Self::Broke => "ended-by-break",
            Self::Ground(_) => "no-ground",
            Self::Series(_, why) => why.word(),
        }
    }

    /// How much longer of the same would fix it, in ns: there is a bound then.
    #[must_use]
    pub fn longer_ns(&self) -> Option<u64> {
        self.longer_for(LEAST_BLOCKS)
    }

    /// How much longer to measure for this number of blocks, in ns.
    fn longer_for(&self, blocks: u64) -> Option<u64> {
        match self {
            Self::Evidence(..) | Self::Broke => None,
            Self::Ground(doubt) => doubt.longer_ns,
            Self::Series(_, why) => why.longer_ns(blocks),
        }
    }
}

impl fmt::Display for NoTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evidence(_, said) => f.write_str(said),
            Self::Broke => f.write_str("ended by `break`: the largest latency chose when to stop"),
            Self::Ground(doubt) => f.write_str(&doubt.said),
            Self::Series(_, why) => f.write_str(&sentence(why)),
        }
    }
}

/// Why a bound is provisional; `None` if it is a promise.
#[must_use]
pub fn provisional(bound: &Bound) -> Option<String> {
    (!bound.is_promise()).then(|| {
        format!(
            "provisional: fewer than {} blocks seldom contain events that are rare and ten times longer. In \
             simulations with such events, up to one bound in four was too low",
            count(PROMISED_BLOCKS)
        )
    })
}

/// The bound of a row that measured latencies, or why it has none.
#[must_use]
pub fn tail(row: &Row) -> Option<Result<Bound, NoTail>> {
    figures(&row.result)?;
    let horizon_ns =
        row.result.require.as_ref().and_then(|require| require.tail).map(|limit| limit.horizon.0);
    Some(tail_for(row, horizon_ns))
}

fn tail_for(row: &Row, horizon_ns: Option<u64>) -> Result<Bound, NoTail> {
    let result = &row.result;
    if let Err(said) = evidence(result) {
        return Err(match result.evidence {
            Some(of) => NoTail::Evidence(of, said),
            None => NoTail::Ground(said.into()),
        });
    }
    if result.ended == RowEnd::Broke {
        return Err(NoTail::Broke);
    }
    let series: Vec<Maxima> =
        row.ticks.series.values().map(|own| maxima(own, row.ticks.joined, &begins(row))).collect();
    // A row that is much too short is refused in the words of this bound, not in those of a verdict.
    for (key, own) in row.ticks.series.keys().zip(&series) {
        let (ticks, block_ns) = (own.values.len() as u64, own.tick_ns.saturating_mul(own.ticks));
        if ticks < LEAST_BLOCKS {
            let why = Refusal::TooShort { blocks: ticks, least: LEAST_BLOCKS, block_ns };
            return Err(NoTail::Series(key.to_string(), why));
        }
    }
    match doubts(result) {
        Err(doubt) | Ok(Some(doubt)) => return Err(NoTail::Ground(doubt)),
        Ok(None) => {}
    }
    if series.is_empty() {
        return Err(NoTail::Ground("its report intervals were not kept".into()));
    }
    remembered(&series, horizon_ns).map_err(|(n, why)| {
        let name = row.ticks.series.keys().nth(n).map(ToString::to_string);
        NoTail::Series(name.unwrap_or_default(), why)
    })
}

/// Numbers of the ticks that do not follow the one before them at once: the first of each slice. A row whose environment
/// died has no bound.
fn begins(row: &Row) -> Vec<u64> {
    let slices = row.slices.iter().skip(1).map(|slice| slice.first_tick);
    let all: BTreeSet<u64> = slices.filter(|first| *first > 0).collect();
    all.into_iter().collect()
}

/// Maxima of the stretches that arrived as a whole.
fn maxima(own: &SeriesTicks, ticks: u64, begins: &[u64]) -> Maxima {
    let periods = |one: &Stretch| one.cycles.saturating_add(one.overruns);
    let middle = |mut values: Vec<u64>| {
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or(0)
    };
    let typical = middle(own.stretches.iter().map(periods).collect());
    let length = |one: &Stretch| one.at_ns / one.last.saturating_add(1);
    let is_whole = |one: &&Stretch| float(periods(one)) >= WHOLE * float(typical);
    let kept: Vec<(u64, u64)> =
        own.stretches.iter().filter(is_whole).filter_map(|one| Some((one.first, one.max_ns?))).collect();
    let start = |begin: &u64| kept.partition_point(|(first, _)| first < begin);
    Maxima {
        starts: begins.iter().map(start).collect(),
        values: kept.iter().map(|(_, max)| *max).collect(),
        ticks,
        tick_ns: middle(own.stretches.iter().map(length).collect()).max(1),
    }
}

type Known = Result<Bound, (usize, Refusal)>;

/// The same question has the same answer, which takes some tens of milliseconds where a run is long.
fn remembered(series: &[Maxima], horizon_ns: Option<u64>) -> Known {
    thread_local! {
        static ANSWERS: RefCell<BTreeMap<u64, Known>> = const { RefCell::new(BTreeMap::new()) };
    }
    let mut hasher = DefaultHasher::new();
    horizon_ns.hash(&mut hasher);
    for one in series {
        (&one.values, one.ticks, one.tick_ns, &one.starts).hash(&mut hasher);
    }
    let key = hasher.finish();
    ANSWERS.with_borrow_mut(|answers| {
        if answers.len() >= KNOWN {
            answers.clear();
        }
        answers.entry(key).or_insert_with(|| bound(series, horizon_ns)).clone()
    })
}

/// The same for the JSON document.
pub(super) fn tail_entry(row: &Row) -> Option<TailEntry> {
    let tests = |all: &[Tested]| -> Vec<TailTest> {
        let of =
            |one: &Tested| TailTest { name: one.against.name().into(), statistic: one.statistic, p: one.p };
        all.iter().map(of).collect()
    };
    Some(match tail(row)? {
        Ok(bound) => TailEntry {
            level_ns: Some(bound.level.high),
            estimate_ns: Some(bound.estimate_ns),
            low_ns: Some(bound.level.low),
            horizon_s: Some(float(bound.horizon_ns) / 1e9),
            series: row.ticks.series.keys().nth(bound.series).map(|key| key.id(&row.result.environment)),
            observed_ns: Some(bound.observed_ns),
            k: Some(bound.tail.k()),
            threshold_ns: Some(bound.tail.threshold),
            xi: Some(bound.tail.fit.gpd.xi),
            xi_low: Some(bound.tail.xi.low),
            xi_high: Some(bound.tail.xi.high),
            block_ns: Some(bound.tail.block_ns),
            blocks: Some(bound.tail.blocks().many),
            provisional: provisional(&bound)
                .map(|reason| TailProvisional { reason, longer_ns: bound.lacking_ns }),
            levels: bound.levels().iter().map(level_entry).collect(),
            extremal_index: Some(bound.tail.extremal),
            variation: Some(bound.tail.variation().0),
            tests: tests(&bound.tail.tests),
            refused: None,
        },
        Err(why) => TailEntry {
            tests: match &why {
                NoTail::Series(_, Refusal::Unsteady { failed, .. }) => tests(failed),
                _ => Vec::new(),
            },
            refused: Some(TailRefused {
                why: why.word().into(),
                reason: why.to_string(),
                longer_ns: why.longer_ns(),
            }),
            ..TailEntry::default()
        },
    })
}

fn level_entry(level: &Level) -> TailLevel {
    let Level { time_ns, estimate_ns, low_ns, high_ns } = *level;
    TailLevel { time_s: time_ns / 1e9, estimate_ns, low_ns, high_ns }
}

/// Whether a time that is short against the horizon has a latency above the limit. With less than one in the
/// horizon that is rare ([`BROKEN`]): the chance of one or more is at most their expected number, whatever
/// their dependence (A. A. Markov).
pub(super) fn is_broken_early(result: &RowResult, limit: TailLimit) -> bool {
    let observed = result.all().and_then(|all| all.max_ns).unwrap_or(0);
    observed > limit.max.0 && float(result.measured_ns) <= BROKEN * float(limit.horizon.0)
}

/// Judges a row by a requirement on the tail.
pub(super) fn tail_limit(row: &Row, limit: TailLimit, warns: bool) -> Found {
    let (max, horizon) = (float(limit.max.0), duration(limit.horizon.0));
    let asked = format!("the {} {} in {horizon}", asked(warns), latency(max));
    let observed = row.result.all().and_then(|all| all.max_ns).unwrap_or(0);
    let entry = |low: f64, high: f64, side: Side| LimitEntry {
        quantity: "tail".to_owned(),
        limit: max,
        low,
        high,
        unit: "ns".to_owned(),
        warns,
        side,
        reason: String::new(),
    };
    let found = tail_for(row, Some(limit.horizon.0));
    if is_broken_early(&row.result, limit) {
        let said = format!(
            "{} was reached within {}, which exceeds {asked}",
            latency(float(observed)),
            duration(row.result.measured_ns)
        );
        let high = found.map_or(float(observed), |bound| bound.level.high.max(float(observed)));
        return Found::settled(entry(float(observed), high, Side::Broken), said);
    }
    let bound = match found {
        Ok(bound) => bound,
        Err(why) => {
            let decides = match &why {
                NoTail::Series(_, Refusal::TooShort { .. }) => {
                    format!(" for a bound, and {} to decide", count(PROMISED_BLOCKS))
                }
                _ => String::new(),
            };
            let said = format!("no bound on the tail, and {asked} is undecided: {why}{decides}");
            // The tail is unknown: it may be anything.
            return Found {
                longer_ns: why.longer_for(PROMISED_BLOCKS),
                ..Found::new(entry(0.0, f64::MAX, Side::Open), said)
            };
        }
    };
    let (low, high) = (bound.level.low, bound.level.high);
    let own = format!(
        "exceeded less than once in {}: at most {} (95 %)",
        duration(bound.horizon_ns),
        latency(high)
    );
    let (side, said) = if let Some(why) = provisional(&bound) {
        // Neither passes on it nor fails.
        (Side::Open, format!("{own}, {asked}; {why}"))
    } else if high <= max {
        (
            Side::Kept,
            format!("{own}, within {asked}, if conditions stay as measured; {}", not_covered(&bound)),
        )
    } else if low > max {
        (
            Side::Broken,
            format!(
                "exceeded once in {}: at least {}, above {asked}",
                duration(bound.horizon_ns),
                latency(low)
            ),
        )
    } else {
        (
            Side::Open,
            format!(
                "{own}; the estimate is {}, and {asked} lies within the interval",
                latency(bound.estimate_ns)
            ),
        )
    };
    let longer_ns = match side {
        Side::Open if bound.is_promise() => longer(&bound, max),
        Side::Open => Some(longer(&bound, max).unwrap_or(0).max(bound.lacking_ns)),
        Side::Kept | Side::Broken => None,
    };
    Found { longer_ns, ..Found::new(entry(low, high, side), said) }
}

/// The causes of latencies that the measurement was too short for: with 95 % it saw those that come more often than three
/// times in it (rule of three; J. A. Hanley, A. Lippman-Hand, JAMA 249, 1983). The fit knows only what was seen.
pub fn not_covered(bound: &Bound) -> String {
    let seen = duration(bound.tail.measured_ns() / 3);
    format!("a cause rarer than once in {seen} may not have occurred, and is not covered")
}

/// How much longer to measure, in ns, until the interval excludes this limit, if the estimate stays. The
/// width shrinks with the root of the time. `None` if the estimate is above the limit, or that time is too
/// long.
fn longer(bound: &Bound, max: f64) -> Option<u64> {
    let now = (bound.level.high / bound.estimate_ns).ln();
    let needed = (max / bound.estimate_ns).ln();
    let times = (now / needed).powi(2);
    let measured = float(bound.tail.measured_ns());
    (needed > 0.0 && times > 1.0 && times <= LONGEST).then(|| whole(measured * (times - 1.0)))
}
