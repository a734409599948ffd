//! The messages between the host side and the probe. Every message travels in [`crate::wire`] frames.
//!
//! ```text
//! probe  hello, facts            as soon as it runs
//! host   job                     what to do
//! probe  note*, facts*, ready    threads are up, memory is locked (facts: again, where the job made settings);
//!                                or refused
//! host   prove                   to one probe after the other: hogs of two at once would be seen by both
//! probe  trial*, note*, proven
//! host   go                      to all probes of a scenario at once
//! probe  tick*, outlier*, note*  once a tick, per series (trial*: before, where nobody said prove)
//! probe  windows*                once a tick, per series, where the job asks for them
//! probe  total*                 per series: beside each tick on a narrow channel, and the last ones several times
//! probe  value*                 once a tick, per item of a measurement that yields values, and at its end
//! probe  breakdown*              at the end of a measurement of values, per phase
//! probe  card                    at the end of a measurement by an interrupt card
//! probe  done                    at the end of the duration, after a stop, or at a break
//! host   prove                   to one probe after the other: whether it still sees what it saw before
//! probe  trial*, note*, proven
//! host   job ... or quit
//! host   greet                   at any time on a line that outlives its users: hello comes again
//! ```
//!
//! At any time the host side may call for files and programs of the environment ([`crate::rpc`]), and ask for its
//! clock.
//!
//! All times are nanoseconds of the environment's own CLOCK_MONOTONIC; `at_ns` counts from the moment the measurement
//! started.

use serde::{Deserialize, Serialize};

use crate::catalogue::{Fault, Load, Measure};
use crate::change::Change;
use crate::control::ControlBy;
use crate::cpus::CpuSet;
use crate::facts::Facts;
use crate::latency::{Sparse, Totals};
use crate::outcome::CardCounts;
use crate::outcome::breakdown::Breakdown;
use crate::outcome::{ValueResult, Yields};
use crate::rpc::{Answer, Call, Exited, Output};
use crate::scheduling::Policy;
use crate::series::SeriesKey;
use crate::trace::Source;
use crate::windows::Moments;
use crate::wire::row::row;

pub use super::card_end::CardEnd;
pub use super::link::{End as LinkEnd, Link};
pub use super::self_test::{Control, Counted, Proven, Stage, Trial};
pub use crate::series::{Outlier, ThreadCounters};

/// The version of this protocol. A probe of another one is refused.
pub const PROTOCOL: u32 = 5;

/// From the host side to the probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub enum ToProbe {
    /// The next job.
    Job(Job),
    /// Prove the instrument as the job says, and wait; or, when the job has ended, prove it once more.
    Prove,
    /// Start the job.
    Go,
    /// End the running job now and keep its results.
    Stop,
    /// End the probe (as PID 1 of a guest: power off).
    Quit,
    /// Begin the conversation again, with hello: another user has taken the line. A running job is ended.
    Greet,
    /// Something to do with the system that the probe is on, at any time.
    Call(Call),
    /// Ask for its clock, at any time; only for probes that [offer](Hello::can) [`CLOCK`].
    Clock(ClockQuestion),
}

/// From the probe to the host side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub enum FromProbe {
    /// The first message.
    Hello(Hello),
    /// Facts of the environment; several messages add up.
    Facts {
        /// The readings.
        readings: Facts,
        /// Whether these are the last ones.
        last: bool,
    },
    /// The job is prepared and waits for `prove` or `go`.
    Ready,
    /// The control is over; the job waits for `go`, or has ended.
    Proven(Proven),
    /// The job cannot be done here.
    Refused(Refusal),
    /// The values of one measuring thread in the control.
    Trial(Trial),
    /// The values of one series in one tick.
    Tick(Tick),
    /// The largest latencies of successive windows of time, where the job asks for them.
    Windows(Windows),
    /// The counts of one series so far.
    Total(Total),
    /// One of the largest values of a series.
    Outlier(Outlier),
    /// The value of an item so far; a later message replaces it.
    Value(Value),
    /// Where the time of its CPUs went while values were measured.
    Breakdown(BreakdownOf),
    /// The counts of an interrupt card's interrupts; before `done`.
    Card(CardOf),
    /// The result of a fault; before `done`.
    Injected(Injected),
    /// A side effect, an obstacle, something the reader must know.
    Note(Note),
    /// The job has ended.
    Done(Done),
    /// The reading of its clock.
    Clock(ClockAnswer),
    /// How a call went.
    Answer(Answer),
    /// The output of a child of a call.
    Output(Output),
    /// A child of a call has ended.
    Exited(Exited),
}

/// The probe's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Version of the probe.
    pub version: String,
    /// `x86_64` or `aarch64`.
    pub arch: String,
    /// Process id as the environment sees it (1: the probe is the whole system).
    pub pid: u32,
    /// CLOCK_MONOTONIC now, in ns.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME now, in ns since the epoch.
    pub realtime_ns: u64,
    /// Names of measurements, loads and faults that this probe knows, and [`CLOCK`].
    pub can: Vec<String>,
}

/// The word of [`Hello::can`] of a probe that answers questions of its clock.
pub const CLOCK: &str = "clock";

/// A question of the clock. Its answer is written before anything else is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockQuestion {
    /// Its number.
    pub n: u64,
    /// Whether the clock is shown in the [page](super::clock_page) first, until that is ended there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub page: bool,
}

/// The answer. Times are of CLOCK_MONOTONIC, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAnswer {
    /// The question's number.
    pub n: u64,
    /// When the question was there.
    pub heard_ns: u64,
    /// When this was about to be written.
    pub said_ns: u64,
    /// When the last measurement began; 0: none did.
    #[serde(default)]
    pub began_ns: u64,
}

/// The work of a probe for one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// How long to measure, in ns.
    pub duration_ns: u64,
    /// How often to report, in ns.
    pub tick_ns: u64,
    /// The control that proves the instrument before measuring.
    #[serde(with = "crate::wire::row")]
    pub control: ControlBy,
    /// Leave the system as it is: do not hold cpu_dma_latency, use no counter of the processor, do not stop ftrace.
    pub no_side_effects: bool,
    /// CPUs for everything but measurements, loads and faults (the probe's session thread).
    pub housekeeping: CpuSet,
    /// The activities that run together.
    pub activities: Vec<Activity>,
    /// Settings that are made before anything of the job starts, in this order. Files, scheduling and
    /// CPUs of threads; a job with others is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::wire::row::many")]
    pub changes: Vec<Change>,
    /// Whether the former values are restored at the job's end, whatever the end is.
    #[serde(default)]
    pub restore: bool,
    /// Bytes a second that the channel carries; 0: as many as there are. The probe then joins ticks and
    /// says fewer outliers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub budget: u64,
    /// Whether the misses of the last-level cache are counted on the measured CPUs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cache_misses: bool,
    /// The windows and random times, if the job must show whether disturbances are seen when they are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_in: Option<LockIn>,
    /// Whether to keep the kernel's activity on the measured CPUs during the largest latencies, and during every one
    /// above this many ns; `None`: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame_above: Option<u64>,
    /// The only source to use for it; `None`: the first one that works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame_by: Option<Source>,
}

/// Measurements report the largest latency of every short window of time. Faults are made, and loads are on, at random
/// times that are reported ([`crate::lot`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockIn {
    /// Length of a window, in ns.
    pub window_ns: u64,
    /// The seed of the draws.
    pub seed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's way to ask")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Its number within the job, from 0; ticks name it.
    pub id: u32,
    /// CPUs of the environment.
    pub cpus: CpuSet,
    /// The other environment that it has to do with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// The way to it, where one leads there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Its end of an interrupt card, if it uses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardEnd>,
    /// The activity's work.
    #[serde(with = "crate::wire::row")]
    pub what: What,
}

impl Activity {
    /// An activity without a peer.
    #[must_use]
    pub const fn new(id: u32, cpus: CpuSet, what: What) -> Self {
        Self { id, cpus, peer: None, link: None, card: None, what }
    }
}

/// The environment at the other end of an activity, by the plan's name for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// It sends to this environment.
    To(String),
    /// It measures messages from this environment.
    From(String),
}

impl Peer {
    /// The plan's name for the environment.
    #[must_use]
    pub fn environment(&self) -> &str {
        match self {
            Self::To(name) | Self::From(name) => name,
        }
    }
}

row! {
    /// A measurement, a load or a fault.
    #[derive(Clone, Debug, PartialEq)]
    pub enum What {
        /// Measure.
        Measure {
            /// The measurement and its own parameters.
            measure: Measure,
            /// Time between two wake-ups, in ns.
            interval_ns: u64,
            /// Real-time priority of the first thread on each CPU.
            priority: u32,
            /// How the threads are scheduled.
            policy: Policy,
        },
        /// Make load.
        Load(load: Load),
        /// Disturb.
        Fault(fault: Fault),
    }
}

impl What {
    /// The word of the plan.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Measure { measure, .. } => measure.kind(),
            Self::Load(load) => load.kind(),
            Self::Fault(fault) => fault.kind(),
        }
    }

    /// The kind of its results; `None`: it does not measure.
    #[must_use]
    pub fn yields(&self) -> Option<Yields> {
        match self {
            Self::Measure { measure, .. } => Some(measure.yields()),
            Self::Load(_) | Self::Fault(_) => None,
        }
    }
}

/// Why a job cannot be done, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The obstacle, with the system's own words.
    pub reason: String,
    /// An action that the user can take.
    pub hint: Option<String>,
}

/// The result of a fault at the job's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injected {
    /// The fault's activity.
    pub activity: u32,
    /// The word of the plan.
    pub kind: String,
    /// The way in which it was carried out: `hwlat tracer`, `SCHED_FIFO 99`, `ptrace`.
    pub way: String,
    /// CPUs of the environment that it was on.
    pub cpus: CpuSet,
    /// How long each was to be, in ns.
    pub length_ns: u64,
    /// How often, in ns.
    pub every_ns: u64,
    /// How often it was carried out, on all CPUs together; `None`: its mechanism does not count.
    #[serde(default)]
    pub times: Option<u64>,
    /// The longest time that was really held, in ns; `None`: its mechanism does not report it.
    #[serde(default)]
    pub longest_ns: Option<u64>,
    /// When each of them began, on CLOCK_MONOTONIC of the kernel that carried them out, where the job asks for it: at
    /// most the first [`crate::lot::MOST_MOMENTS`]. For a load: when it was let run.
    #[serde(default, skip_serializing_if = "Moments::is_empty")]
    pub at: Moments,
}

/// The values of one series in one tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// The measuring activity.
    pub activity: u32,
    /// The series.
    pub series: SeriesKey,
    /// Number of the tick, from 0.
    pub n: u64,
    /// End of the tick, in ns since the measurement started.
    pub at_ns: u64,
    /// Counted in this tick, exact.
    pub now: Totals,
    /// Counted since the start, exact: the counts of a lost tick are the difference.
    pub total: Totals,
    /// Histogram of this tick.
    pub counts: Sparse,
    /// Latencies that the periods swallowed in this tick would have had.
    #[serde(default, skip_serializing_if = "Sparse::is_empty")]
    pub missed: Sparse,
    /// The counters of the thread since the start.
    pub thread: ThreadCounters,
}

/// The largest latencies of successive windows of time of one series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// The measuring activity.
    pub activity: u32,
    /// The series.
    pub series: SeriesKey,
    /// When the measurement started, CLOCK_MONOTONIC in ns.
    pub began_ns: u64,
    /// Number of the first of them: it begins at this many lengths on CLOCK_MONOTONIC.
    pub first: u64,
    /// The largest latency of a thread that woke in the window, in ns; 0: no thread did.
    pub maxima: Vec<u64>,
}

/// The exact counts of one series since the start. It is one frame, so that it often arrives even if one of the thirty
/// frames of a tick is lost. The last one is sent several times; without it, the end of a series is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// The measuring activity.
    pub activity: u32,
    /// The series.
    pub series: SeriesKey,
    /// Until when was counted, in ns since the measurement started.
    pub at_ns: u64,
    /// The counts.
    pub total: Totals,
    /// Whether its thread has ended, and nothing more will come.
    pub last: bool,
}

/// The value of an item of a measurement so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The measuring activity.
    pub activity: u32,
    /// The item.
    #[serde(flatten)]
    pub value: ValueResult,
}

/// Where the time of CPUs went while values were measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakdownOf {
    /// The measuring activity.
    pub activity: u32,
    /// The times.
    #[serde(flatten)]
    pub breakdown: Breakdown,
}

/// The counts of an interrupt card's interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardOf {
    /// The measuring activity.
    pub activity: u32,
    /// How many.
    #[serde(flatten)]
    pub counts: CardCounts,
}

/// The kind of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Measuring changed something on the system.
    SideEffect,
    /// Something stands in the way of a good measurement.
    #[serde(rename = "limitation")]
    Obstacle,
    /// Good to know.
    Info,
}

/// The name of the injected fault when the held thread is a stand-in for a user's program.
pub const STAND_IN: &str = "hog of a stand-in";

/// A remark of the probe or of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// Its kind.
    pub kind: NoteKind,
    /// One sentence.
    pub text: String,
    /// A hint for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The question that cannot be answered; `text` gives the reason.
    #[serde(rename = "unavailable", default, skip_serializing_if = "Option::is_none")]
    pub unknowable: Option<Unknowable>,
}

/// Questions beside latencies and values that not every system can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unknowable {
    /// The threads and interrupts that had the CPU during the largest latencies ([`Job::blame_above`]).
    Blame,
    /// The latency under a load: the load ended before its time.
    Load,
    /// The latency of the machine alone: something else measured it at the same time.
    Alone,
}

impl Note {
    /// A note about something that measuring changed.
    #[must_use]
    pub fn side_effect(text: impl Into<String>) -> Self {
        Self { kind: NoteKind::SideEffect, text: text.into(), hint: None, unknowable: None }
    }

    /// A note about an obstacle, with its remedy.
    #[must_use]
    pub fn obstacle(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind: NoteKind::Obstacle, text: text.into(), hint: Some(hint.into()), unknowable: None }
    }

    /// A note about something that cannot be known here: why, and what would help.
    #[must_use]
    pub fn unknowable(what: Unknowable, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { unknowable: Some(what), ..Self::obstacle(text, hint) }
    }

    /// Something good to know.
    #[must_use]
    pub fn info(text: impl Into<String>) -> Self {
        Self { kind: NoteKind::Info, text: text.into(), hint: None, unknowable: None }
    }
}

/// Why a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Its duration was over.
    Complete,
    /// It was told to stop.
    Stopped,
    /// A latency exceeded the limit of `break`.
    Break,
    /// It could not continue.
    Failed,
}

/// The end of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Why it ended.
    pub end: End,
    /// The reason, if `end` is `break` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long was measured, in ns.
    pub measured_ns: u64,
    /// Rounds that each load did, as `scheduler` counts messages, by activity.
    pub load_rounds: Vec<(u32, u64)>,
    /// The largest jump of another clock of the system against CLOCK_MONOTONIC while it was measured, in ns.
    #[serde(default)]
    pub jump_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::load::Cpu;

    #[test]
    fn the_totals_of_a_series_are_one_frame_whatever_they_are() {
        let series = SeriesKey { cpu: u32::MAX, thread: u32::MAX, priority: 99, kind: "interrupt".into() };
        let most = u64::MAX;
        let total = Totals { cycles: most, overruns: most, min_ns: most, max_ns: most, sum_ns: most };
        let total = Total { activity: u32::MAX, series, at_ns: most, total, last: false };
        let bytes = crate::wire::Encoder::new().encode(&FromProbe::Total(total)).unwrap();
        assert_eq!(
            bytes.iter().filter(|byte| **byte == b'\n').count(),
            1,
            "{}",
            String::from_utf8_lossy(&bytes)
        );
    }

    #[test]
    fn an_activity_says_where_its_other_end_is_and_nothing_where_it_has_none() {
        let alone = Activity::new(1, CpuSet::one(2), What::Load(Load::Cpu(Cpu::default())));
        assert!(!serde_json::to_string(&alone).unwrap().contains("peer"));
        for peer in [None, Some(Peer::To("guest-2".into())), Some(Peer::From("card".into()))] {
            let activity = Activity { peer, ..alone.clone() };
            let text = serde_json::to_string(&activity).unwrap();
            assert_eq!(serde_json::from_str::<Activity>(&text).unwrap(), activity, "{text}");
        }
    }
}
