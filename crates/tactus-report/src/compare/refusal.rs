//! Reasons not to compare runs: they were measured differently, or are incomplete.

use std::fmt;

use serde_json::Value;
use tactus_model::bundle::RowResult;
use tactus_model::cpus::CpuSet;
use tactus_model::event::RowStatus;
use tactus_model::{Evidence, Nanos};
use tactus_statistics::LEAST_SITTINGS;

use super::condition::Run;
use super::sittings::By;
use crate::row::{control, died, lacking, never_made, policy};
use crate::units::clean;

/// Properties in which runs must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alike {
    /// The measurement with its parameters.
    Measurement,
    /// The evidence of the numbers.
    Evidence,
    /// Time between wake-ups.
    Interval,
    /// How the threads are scheduled.
    Policy,
    /// Their priority.
    Priority,
    /// The CPUs that are measured, and those of the machine that they run on.
    Cpus,
    /// The load beside it.
    Load,
    /// The injected faults.
    Fault,
    /// How long it measures.
    Duration,
    /// How often it reports.
    Tick,
    /// Whether it is measured in slices, in turn with others, and how long those are.
    Slices,
    /// Whether it is kept who had the CPU, and above which latency: that takes time of each switch.
    Blame,
}

impl Alike {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Measurement,
        Self::Evidence,
        Self::Interval,
        Self::Policy,
        Self::Priority,
        Self::Cpus,
        Self::Load,
        Self::Fault,
        Self::Duration,
        Self::Tick,
        Self::Slices,
        Self::Blame,
    ];

    /// In a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Measurement => "measurement",
            Self::Evidence => "evidence",
            Self::Interval => "interval",
            Self::Policy => "policy",
            Self::Priority => "priority",
            Self::Cpus => "cpus",
            Self::Load => "load",
            Self::Fault => "fault",
            Self::Duration => "duration",
            Self::Tick => "tick",
            Self::Slices => "interleave",
            Self::Blame => "blame_above",
        }
    }

    /// Its value in a run, in words that are equal if the values are.
    fn of(self, run: Run) -> String {
        let result = &run.row.result;
        match self {
            Self::Measurement => serde_json::to_string(&result.measurement).unwrap_or_default(),
            Self::Evidence => result.evidence.map_or_else(|| "not known".into(), |kind| kind.to_string()),
            Self::Interval => known(result, result.interval_ns),
            Self::Policy => policy(result).map_or_else(|| "not known".into(), |policy| policy.to_string()),
            Self::Priority => result.priority.to_string(),
            Self::Cpus => cpus(run),
            Self::Load => tables(&result.load),
            Self::Fault => tables(&result.fault),
            Self::Duration => known(result, result.planned_ns),
            Self::Tick => tick(run),
            Self::Slices => slices(run),
            Self::Blame => blame(run),
        }
    }
}

/// A time that files of other tools need not say, and all others do.
fn known(result: &RowResult, ns: u64) -> String {
    let unknown = ns == 0 && result.evidence == Some(Evidence::Imported);
    if unknown { "not known".into() } else { Nanos(ns).to_string() }
}

/// Loads or faults, in any order.
fn tables(tables: &[Value]) -> String {
    let mut tables: Vec<String> = tables.iter().map(Value::to_string).collect();
    tables.sort();
    if tables.is_empty() { "none".into() } else { tables.join(", ") }
}

/// The CPUs of its threads, or those that the plan names for a measurement of values; and where they run.
fn cpus(run: Run) -> String {
    let result = &run.row.result;
    let threads: Vec<u32> = match &result.threads {
        Some(threads) => threads.iter().map(|thread| thread.cpu).collect(),
        None => result.series().iter().map(|series| series.key.cpu).collect(),
    };
    let planned = || {
        let measuring = run.planned().flat_map(|own| &own.activity).find(|activity| {
            activity.environment == result.environment
                && activity.measure.as_ref().is_some_and(|kind| kind.kind() == result.measurement.kind())
        });
        measuring.and_then(|activity| activity.cpus.as_ref()).map(ToString::to_string)
    };
    let own = match threads.len() {
        0 => planned().unwrap_or_default(),
        many => format!("{} ({many} threads)", threads.into_iter().collect::<CpuSet>()),
    };
    let on: Vec<String> = result.layout.iter().map(|(cpu, outside)| format!("{cpu} on {outside}")).collect();
    if on.is_empty() { own } else { format!("{own}: {}", on.join(", ")) }
}

/// How often it reports, as the resolved plan says.
fn tick(run: Run) -> String {
    run.planned().next().and_then(|own| own.tick).map_or_else(|| "not known".into(), |tick| tick.to_string())
}

/// How long it is measured at one go: of slices the time between the turns of others is in their results.
fn slices(run: Run) -> String {
    let first = run.row.slices.first();
    first.map_or_else(|| "one go".into(), |first| Nanos(first.result.planned_ns).to_string())
}

/// Above which latency it is kept who had the CPU.
fn blame(run: Run) -> String {
    let above = run.planned().next().and_then(|own| own.blame_above);
    above.map_or_else(|| "not kept".into(), |above| above.to_string())
}

/// Why runs are not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// They were not made alike.
    Differs {
        /// The property in which they differ.
        what: Alike,
        /// Its value in the base, or in the first run.
        base: String,
        /// Its value in the other.
        now: String,
        /// The condition, where its own runs differ.
        within: Option<String>,
    },
    /// A run measured nothing.
    Unmeasured {
        /// Of this condition.
        condition: String,
        /// Why.
        why: String,
    },
    /// A run is not all that was planned.
    Incomplete {
        /// Of this condition.
        condition: String,
        /// The lacking data, in words.
        why: String,
    },
    /// A run's instrument did not see its control.
    Unproven {
        /// Of this condition.
        condition: String,
    },
    /// No verdict rests on such numbers.
    NoVerdict(Option<Evidence>),
    /// Too few runs or sittings to show how much they differ by themselves.
    TooFew {
        /// Whether runs or sittings are judged.
        by: By,
        /// Of the base, and of the other.
        counts: [usize; 2],
    },
}

impl Refusal {
    /// In one word or two.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Differs { what, .. } => what.word(),
            Self::Unmeasured { .. } => "unmeasured",
            Self::Incomplete { .. } => "incomplete",
            Self::Unproven { .. } => "unproven",
            Self::NoVerdict(_) => "no verdict",
            Self::TooFew { by, .. } => by.word(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs { what, base, now, within: None } => {
                write!(f, "measured differently: {} is {} there and {} here", what.word(), clean(base), clean(now))
            }
            Self::Differs { what, base, now, within: Some(own) } => write!(
                f,
                "the runs of {} were measured differently: {} is {} and {}",
                clean(own),
                what.word(),
                clean(base),
                clean(now)
            ),
            Self::Unmeasured { condition, why } => {
                write!(f, "not measured in {}: {}", clean(condition), clean(why))
            }
            Self::Incomplete { condition, why } => {
                write!(f, "a run of {} is incomplete: {}", clean(condition), clean(why))
            }
            Self::Unproven { condition } => {
                write!(f, "a run of {} did not pass its self-test", clean(condition))
            }
            Self::NoVerdict(Some(Evidence::Emulated)) => {
                f.write_str("emulated: this says nothing about hardware, and is not judged (--judge-emulated: under this emulator)")
            }
            Self::NoVerdict(Some(kind)) => {
                write!(f, "{kind}: not judged, tactus did not measure it")
            }
            Self::NoVerdict(None) => f.write_str("the kind of evidence is unknown"),
            Self::TooFew { by: By::Runs, counts: [1, 1] } => f.write_str(
                "run-to-run variation unknown, with one run each: measure both with `tactus run --repeat 8` (at least \
                    5)",
            ),
            Self::TooFew { by: By::Runs, counts: [base, now] } => write!(
                f,
                "run-to-run variation unknown: {base} and {now} runs are too few: 5 of each are needed, or \
                 19 of the base for one new run"
            ),
            Self::TooFew { by: By::Ranks(_), counts: [base, now] } => write!(
                f,
                "{base} and {now} sittings of fewer than 5 runs are too few: 5 of each are needed, or 19 of the base \
                 for one new one. With `--repeat 5` or more {LEAST_SITTINGS} in all are enough"
            ),
            Self::TooFew { by: By::Medians(_), counts: [base, now] } => write!(
                f,
                "{base} and {now} sittings are too few to show how much sittings differ: {LEAST_SITTINGS} in all are \
                 needed, such as {} of the base for one new one",
                LEAST_SITTINGS - 1
            ),
        }
    }
}

/// Why a run cannot be compared with any other; `None` if it can.
pub fn unfit(condition: &str, run: Run) -> Option<Refusal> {
    let result: &RowResult = &run.row.result;
    let condition = condition.to_owned();
    let why = || result.reason.clone().unwrap_or_else(|| "no reason was recorded".into());
    if result.status != RowStatus::Measured || result.outcome.is_empty() {
        return Some(Refusal::Unmeasured { condition, why: why() });
    }
    if result.damaged {
        return Some(Refusal::Incomplete { condition, why: "its bundle is damaged".into() });
    }
    let is_judged = match result.evidence {
        Some(Evidence::BareMetal | Evidence::VirtualHost) => true,
        Some(Evidence::Emulated) => run.judges_emulated,
        Some(Evidence::Imported) | None => false,
    };
    if !is_judged {
        return Some(Refusal::NoVerdict(result.evidence));
    }
    if result.ended != tactus_model::outcome::RowEnd::Complete {
        return Some(Refusal::Incomplete { condition, why: why() });
    }
    let lacking =
        result.all().and_then(|_| lacking(result)).or_else(|| never_made(result)).or_else(|| died(result));
    if let Some(why) = lacking {
        return Some(Refusal::Incomplete { condition, why });
    }
    control(result).is_some_and(|control| !control.passed).then_some(Refusal::Unproven { condition })
}

/// Whether two times of imported runs are the same but for rounding. Many tools report only cycles, end a cycle or a second
/// early, or print whole microseconds. Half a per cent is the same, as at the end of a run of tactus.
fn alike_imports(what: Alike, one: &RowResult, other: &RowResult) -> bool {
    let time = |result: &RowResult| match what {
        Alike::Duration => result.planned_ns,
        Alike::Interval => result.interval_ns,
        _ => 0,
    };
    let imported = [one, other].iter().all(|result| result.evidence == Some(Evidence::Imported));
    let (one, other) = (time(one), time(other));
    imported && one > 0 && other > 0 && one.abs_diff(other) <= one.max(other) / 200
}

/// The property in which a run differs from another; `None` if they agree in everything that matters.
pub fn unlike(one: Run, other: Run) -> Option<(Alike, String, String)> {
    let differs = |what: &Alike| {
        if alike_imports(*what, &one.row.result, &other.row.result) {
            return None;
        }
        let (base, now) = (what.of(one), what.of(other));
        (base != now).then_some((*what, base, now))
    };
    Alike::ALL.iter().find_map(differs)
}
