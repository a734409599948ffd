//! The stream of events of a run: the recorder writes it, the live view draws it, a replay feeds it again.
//! `events.jsonl` has one JSON line for each, without the parts that are kept elsewhere in the bundle.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::bundle::{ClockFit, Waits};
use crate::clock::ClockCheck;
use crate::cpus::CpuSet;
use crate::evidence::Evidence;
use crate::facts::Facts;
use crate::latency::{Totals, ratio_mean};
use crate::message::{Control, Injected, Note, Outlier, Tick, Total, Windows};
use crate::number::{float, whole};
use crate::outcome::breakdown::Breakdown;
use crate::outcome::exits::KvmExits;
use crate::outcome::{CardCounts, Ending, Restart, ValueResult};
use crate::partition::CacheUse;
use crate::series::SeriesKey;
use crate::ticks::TickScalars;

pub use crate::outcome::{RowStatus, RunStatus};

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

impl Stamped {
    /// Its form in `events.jsonl`; `None`: it is kept with its row.
    #[must_use]
    pub fn logged(&self) -> Option<Cow<'_, Self>> {
        match &self.event {
            Event::Ticked(_) | Event::Windows { .. } => None,
            Event::Counted { total, .. } if !total.last => None,
            Event::FactsCollected { environment, readings, .. } => {
                let (environment, readings) = (environment.clone(), *readings);
                let event = Event::FactsCollected { environment, readings, facts: None };
                Some(Cow::Owned(Self { at_ms: self.at_ms, event }))
            }
            _ => Some(Cow::Borrowed(self)),
        }
    }
}

/// Something that happened in a run. `row` is the index of a measurement in the resolved plan: a
/// scenario with two measurements has two rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// Name of the plan.
        plan: String,
        /// Rows that will be measured or skipped.
        rows: usize,
        /// The expected time of the whole run, in ns, without start-up.
        expected_ns: u64,
    },
    /// An environment is being brought up for a scenario.
    EnvironmentStarting {
        /// Its name.
        environment: String,
    },
    /// The probe in it answered.
    EnvironmentUp {
        /// Its name.
        environment: String,
        /// The kind of evidence of its numbers.
        evidence: Evidence,
        /// From its start to the probe's first word, in ms.
        after_ms: u64,
    },
    /// The facts of an environment arrived; they are kept in `facts/`.
    FactsCollected {
        /// Its name.
        environment: String,
        /// How many readings.
        readings: usize,
        /// The facts themselves, for listeners; the bundle keeps them elsewhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        facts: Option<Box<Facts>>,
    },
    /// A row begins to measure.
    RowStarted {
        /// The row.
        row: usize,
        /// Its scenario.
        name: String,
        /// The environment of the measurement.
        environment: String,
        /// How long it will measure, in ns.
        duration_ns: u64,
    },
    /// The default control went so.
    Controlled {
        /// The row.
        row: usize,
        /// Its result.
        control: Control,
    },
    /// This was found of the clock of an environment.
    ClockChecked {
        /// The environment.
        environment: String,
        /// The checks.
        clock: ClockCheck,
    },
    /// A fault did this.
    Injected {
        /// The environment that it was in.
        environment: String,
        /// CPUs of the machine that it was on; empty if unknown.
        outside: CpuSet,
        /// Its result.
        injected: Injected,
    },
    /// How long the threads of an environment's virtual CPUs waited on the host.
    Waited {
        /// The environment.
        environment: String,
        /// How long.
        waits: Waits,
    },
    /// Why the virtual CPUs of an environment left it, if that was requested.
    ExitsCounted {
        /// The environment.
        environment: String,
        /// The counts.
        exits: KvmExits,
    },
    /// An environment's clock against this machine's.
    ClockCompared {
        /// The environment.
        environment: String,
        /// The fit.
        clock: ClockFit,
    },
    /// Largest latencies of short windows of time; they are kept in `windows.csv` of their row.
    Windows {
        /// The row.
        row: usize,
        /// Their values.
        windows: Windows,
    },
    /// The part of the cache that a group of CPUs held, if a scenario divides it.
    CacheUsed(CacheUse),
    /// An environment of the scenario before is used again.
    EnvironmentKept {
        /// Its name.
        environment: String,
    },
    /// A series reported.
    Ticked(Ticked),
    /// The counts of a series so far.
    Counted {
        /// The row.
        row: usize,
        /// The counts.
        total: Total,
    },
    /// The value of an item so far. Not every message of the probe is kept: only the first, those after which the
    /// number of repeats had grown by half, and the last.
    ValueMeasured {
        /// The row.
        row: usize,
        /// The value.
        value: ValueResult,
    },
    /// Where the time of CPUs went while a row of values was measured.
    CpuTimeMeasured {
        /// The row.
        row: usize,
        /// The environment whose kernel counted; `None`: this machine's.
        environment: Option<String>,
        /// The times.
        breakdown: Breakdown,
    },
    /// An interrupt card has counted what became of its interrupts.
    CardCounted {
        /// The row.
        row: usize,
        /// How many.
        counts: CardCounts,
    },
    /// Of a row whose environment died it is measured on, by another start of that environment.
    Restarted {
        /// The row.
        row: usize,
        /// The position of the gap, and its length.
        restart: Restart,
    },
    /// A large value.
    Outlier {
        /// The row.
        row: usize,
        /// The outlier.
        outlier: Outlier,
    },
    /// A remark.
    Noted {
        /// The environment it is about, or none for the run.
        environment: Option<String>,
        /// The remark.
        note: Note,
    },
    /// Frames of an environment did not arrive.
    FramesLost {
        /// The environment.
        environment: String,
        /// How many.
        frames: u64,
    },
    /// A row has ended.
    RowFinished {
        /// The row.
        row: usize,
        /// How, and why.
        #[serde(flatten)]
        ending: Ending,
        /// How long it measured, in ns.
        measured_ns: u64,
    },
    /// The run has ended.
    RunFinished {
        /// How.
        status: RunStatus,
    },
}

/// One tick of one series: the scalars that the bundle keeps for every tick, in `ticks.csv` of its row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ticked {
    /// The row.
    pub row: usize,
    /// The series.
    pub series: SeriesKey,
    /// Number of the tick.
    pub n: u64,
    /// End of the tick, in ns since the measurement started.
    pub at_ns: u64,
    /// Wake-ups in this tick.
    pub cycles: u64,
    /// Periods swallowed in this tick.
    pub overruns: u64,
    /// Smallest latency, in ns.
    pub min_ns: Option<u64>,
    /// Mean latency, in ns.
    pub mean_ns: Option<f64>,
    /// 99th percentile, in ns.
    pub p99_ns: Option<u64>,
    /// Largest latency, in ns.
    pub max_ns: Option<u64>,
    /// The whole tick with its histogram, for listeners; the bundle keeps it elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Box<Tick>>,
}

impl Ticked {
    /// The scalars of a probe's tick.
    #[must_use]
    pub fn of(row: usize, tick: Tick, p99_ns: Option<u64>) -> Self {
        let Totals { cycles, overruns, min_ns, max_ns, sum_ns } = tick.now;
        // An instrument that tells totals alone has no extremes of one tick, but for a new maximum.
        let told = min_ns != u64::MAX;
        let some = |value, known: bool| (cycles > 0 && known).then_some(value);
        Self {
            row,
            series: tick.series.clone(),
            n: tick.n,
            at_ns: tick.at_ns,
            cycles,
            overruns,
            min_ns: some(min_ns, told),
            mean_ns: if told { ratio_mean(sum_ns, cycles) } else { None },
            p99_ns,
            max_ns: some(max_ns, told || max_ns > 0),
            whole: Some(Box::new(tick)),
        }
    }
}

impl From<&Ticked> for TickScalars {
    fn from(tick: &Ticked) -> Self {
        let Ticked { n, at_ns, cycles, overruns, min_ns, p99_ns, max_ns, .. } = *tick;
        let sum_ns = match &tick.whole {
            Some(exact) => min_ns.map(|_| exact.now.sum_ns),
            None => tick.mean_ns.map(|mean| whole(mean * float(cycles))),
        };
        Self { n, at_ns, cycles, overruns, min_ns, sum_ns, p99_ns, max_ns }
    }
}
