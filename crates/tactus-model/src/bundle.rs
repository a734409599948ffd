//! The bundle: the directory that a run leaves.
//!
//! ```text
//! manifest.json                       format version, tool version, status, SHA-256 of every file
//! plan.toml                           the resolved plan
//! facts/<environment>.json            raw readings
//! audit/<environment>.json            what the audit says of them
//! events.jsonl                        what happened
//! scenarios/<row>-<name>/result.json  figures of one row
//! scenarios/<row>-<name>/ticks.csv    scalars of every tick; ticks.csv.gz: those of a long row
//! scenarios/<row>-<name>/windows.csv  largest latencies of short windows of time, where a separation asks for them
//! scenarios/<row>-<name>/latency.hlog histograms over time (HdrHistogram interval log)
//! scenarios/<row>-<name>/missed.hlog  the missed periods, where there are any
//! scenarios/<row>-<name>/pending.jsonl ticks since the last interval; only while it runs
//! console/<environment>.log           a guest's console
//! log.txt                             what tactus did last, of a run that broke
//! SHA256SUMS                          the checksums of the manifest and the certificates, where somebody signed them
//! signature.sig                       a signature of SHA256SUMS
//! ```
//! A scenario that is measured in slices has a row's directory for each of them; a reader makes one row of them.

mod asked;
mod clock_fit;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::buckets::Packed;
use crate::catalogue::Measure;
use crate::catalogue::measure::Timer;
use crate::clock::ClockCheck;
use crate::cpus::CpuSet;
use crate::evidence::Evidence;
use crate::facts::Facts;
use crate::finding::Audit;
use crate::histograms::Histograms;
use crate::latency::{Latency, Summary};
use crate::message::{Control, Injected, Note};
use crate::outcome::breakdown::Breakdown;
use crate::outcome::exits::KvmExits;
use crate::outcome::{
    CardCounts, Ending, Outcome, Restart, RowEnd, RowStatus, RunStatus, SeriesResult, ValueResult,
};
use crate::partition::CacheHeld;
use crate::plan::{Plan, Require};
use crate::scheduling::Policy;
use crate::series::{SeriesKey, Thread};
use crate::ticks::{Ticks, ticks_per_interval};
use crate::windows::RowWindows;

pub use asked::Asked;
pub use clock_fit::ClockFit;
pub use waits::{Wait, Waits};

/// The version of the bundle's format that this program writes. It reads bundles of this major version and refuses all
/// others.
pub const FORMAT: Format = Format { major: 2, minor: 0 };

/// A version of a format: a reader accepts its major version, with any minor one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Format {
    /// Changes when old readers would misread it.
    pub major: u32,
    /// Changes when something is added.
    pub minor: u32,
}

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: Format,
    /// Version of the tactus that wrote it.
    pub tactus: String,
    /// Name of the plan.
    pub plan: String,
    /// When the run began, RFC 3339.
    pub started: String,
    /// When it ended; `null` while it runs, or after it died.
    pub finished: Option<String>,
    /// How it ended; `interrupted` while it runs, which is also right if it dies now.
    pub status: RunStatus,
    /// The name and the properties of the machine.
    pub machine: Machine,
    /// SHA-256 of every other file, in hex, by path; during the run, only of the files that it no longer changes.
    pub files: BTreeMap<String, String>,
    /// Each session in which this run was worked on, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<Session>,
    /// The options that the user gave beside the plan.
    #[serde(rename = "options", default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
}

/// One time at which a run was begun or continued.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// When it began, RFC 3339.
    pub started: String,
    /// When it ended; `null` while it runs, or after it died.
    pub finished: Option<String>,
    /// The machine as it was then.
    pub machine: Machine,
    /// The job that started it, if an engine did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// The state that the machine was in, if the plan declares states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Present>,
}

/// The state of a machine, and the conditions missing for others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Present {
    /// Name of the state; `other` if the plan does not define the state.
    pub name: String,
    /// Whether the user declared it, and nothing was compared.
    #[serde(default)]
    pub declared: bool,
    /// For each state of the plan, the conditions that do not hold, in words; an empty list: the state holds.
    pub lacks: BTreeMap<String, Vec<String>>,
}

/// The machine in one line's worth of facts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Its name: the one its user gave it, else its host name.
    pub name: String,
    /// Processor model.
    pub processor: String,
    /// CPUs that are online.
    pub cpus: String,
    /// Kernel release and version.
    pub kernel: String,
    /// Distribution.
    pub system: String,
    /// Key of its installed system, made from machine-id(5), which itself is not stored. It stays the same until the
    /// system is installed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Key of its mainboard, made from the firmware's data (DMI), if root may read them. It stays the same as long as
    /// the mainboard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// Maker, version and date of its firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bios: Option<String>,
    /// The microcode of its first CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microcode: Option<String>,
}

/// The job of an engine (Slurm, a cluster, CI) that a run is a part of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Job {
    /// The engine, as `slurm`.
    pub engine: String,
    /// The job, as the engine names it.
    pub id: String,
}

/// `result.json`: one row of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowResult {
    /// The scenario's name.
    pub name: String,
    /// Name of the measurement's environment.
    pub environment: String,
    /// Its kind.
    pub kind: String,
    /// The kind of evidence; `null` when it never came up.
    pub evidence: Option<Evidence>,
    /// The measurement.
    pub measurement: Measure,
    /// Time between two wake-ups, in ns.
    pub interval_ns: u64,
    /// Priority of the first thread.
    pub priority: u32,
    /// How the threads were scheduled.
    pub policy: Policy,
    /// Loads of the scenario, as the plan's tables with their `in`.
    pub load: Vec<serde_json::Value>,
    /// Faults of the scenario, as the plan's tables with their `in`.
    pub fault: Vec<serde_json::Value>,
    /// The status of `ended`, in one word.
    pub status: RowStatus,
    /// How it ended.
    pub ended: RowEnd,
    /// Why numbers are missing or fewer than planned.
    pub reason: Option<String>,
    /// When it began to measure, RFC 3339.
    pub started: Option<String>,
    /// How long it was to measure, in ns.
    pub planned_ns: u64,
    /// How long it measured, in ns.
    pub measured_ns: u64,
    /// From the environment's start to the probe's first word, in ms.
    pub start_up_ms: Option<u64>,
    /// Its results: `series` and `all`, or `values`.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The threads that should measure latency; `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<Thread>>,
    /// How the self-tests went.
    #[serde(rename = "self_tests")]
    pub control: Vec<Control>,
    /// The checks of the clock with which it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockCheck>,
    /// Deaths and restarts of its environment, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<Restart>,
    /// Side effects, limitations and remarks.
    pub notes: Vec<Note>,
    /// Frames that did not arrive.
    pub frames_lost: u64,
    /// The plan's requirements.
    pub require: Option<Require>,
    /// Which run of its scenario it is, from 1, where the plan repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// The part of its measurement that it is, if that is made in slices. A row that a reader has put together has no
    /// slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<Slice>,
    /// The state of the machine that it was, or is to be, measured in, where the plan declares states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// For each CPU of the environment, the CPU of the machine that it runs on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layout: Vec<(u32, u32)>,
    /// The results of the scenario's faults, in any environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<InjectedIn>,
    /// Where the time of CPUs went meanwhile, in any environment; empty for latencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakdown: Vec<BreakdownIn>,
    /// Why its virtual CPUs left the guest, and for how long; `None`: it was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exits: Option<KvmExits>,
    /// The counts of an interrupt card's interrupts; `None`: no card, or it sent no counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardCounts>,
    /// The environment at the other end of the measurement: the guest that takes a card's interrupts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How long the threads of its virtual CPUs waited on the host meanwhile; `None`: it has no known virtual CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// Length of the windows of time whose largest latencies are kept, in ns; `None`: no windows are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// The environment's clock against this machine's, as far as the arrival of ticks tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_fit: Option<ClockFit>,
    /// Whether its bundle has been changed after it was written, so that it decides no verdict. It is known when a
    /// bundle is read.
    #[serde(skip)]
    pub damaged: bool,
}

/// A part of a measurement that is made at one go, before it is another scenario's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Its number, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
    /// How long all of them together measure, in ns.
    pub whole_ns: u64,
    /// How often they report, in ns.
    pub tick_ns: u64,
}

impl Slice {
    /// Ticks in an interval of the histogram logs. It depends on the whole duration, so that the number of intervals is
    /// the same as without slices.
    #[must_use]
    pub fn ticks_per_interval(&self) -> u64 {
        ticks_per_interval(self.whole_ns, self.tick_ns)
    }
}

/// A slice of a row that was put together.
#[derive(Clone, Debug, PartialEq)]
pub struct Sliced {
    /// The number that its first tick has in the row.
    pub first_tick: u64,
    /// When it began, in ns on the time of the row.
    pub at_ns: u64,
    /// Its own figures.
    pub result: RowResult,
}

/// The result of a fault, and its environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectedIn {
    /// The environment.
    #[serde(rename = "in")]
    pub environment: String,
    /// CPUs of the machine that it was on; empty if unknown.
    pub outside: CpuSet,
    /// Its result.
    #[serde(flatten)]
    pub injected: Injected,
}

/// Where the time of CPUs went, and whose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BreakdownIn {
    /// The environment whose kernel counted; `null`: the machine's.
    #[serde(rename = "in")]
    pub environment: Option<String>,
    /// Where it went.
    #[serde(flatten)]
    pub breakdown: Breakdown,
}

impl RowResult {
    /// Marks counts of missed periods as unknown if they were never counted: measurements without periods, and those
    /// that measured nothing.
    pub fn forget_uncounted(&mut self) {
        let has_periods = self.measurement.has_periods();
        let Some(own) = self.outcome.latency_mut() else { return };
        let summaries = own.series.iter_mut().map(|series| &mut series.summary).chain(&mut own.all);
        let uncounted = summaries.filter(|all| !has_periods || (all.cycles == 0 && all.missed() == 0));
        uncounted.for_each(|all| all.overruns = None);
    }

    /// A row with nothing but its place: a timer every 200 us at SCHED_FIFO 95, for no time, skipped.
    #[must_use]
    pub fn unmeasured(
        name: impl Into<String>,
        environment: impl Into<String>,
        kind: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            environment: environment.into(),
            kind: kind.into(),
            evidence: None,
            measurement: Measure::Timer(Timer::default()),
            interval_ns: 200_000,
            priority: 95,
            policy: Policy::Fifo,
            load: Vec::new(),
            fault: Vec::new(),
            status: RowEnd::Waiting.status(),
            ended: RowEnd::Waiting,
            reason: None,
            started: None,
            planned_ns: 0,
            measured_ns: 0,
            start_up_ms: None,
            outcome: Outcome::default(),
            threads: None,
            control: Vec::new(),
            clock: None,
            restarts: Vec::new(),
            notes: Vec::new(),
            frames_lost: 0,
            require: None,
            repeat: None,
            slice: None,
            host: None,
            layout: Vec::new(),
            injected: Vec::new(),
            breakdown: Vec::new(),
            exits: None,
            card: None,
            to: None,
            waits: None,
            window_ns: None,
            clock_fit: None,
            damaged: false,
        }
    }

    /// Its environment as the name of a place, with the state of the machine if it has one. Facts are kept under this
    /// name: after a reboot an environment is another place.
    #[must_use]
    pub fn environment_key(&self) -> String {
        environment_key(&self.environment, self.host.as_deref())
    }

    /// Notes how it ended.
    pub fn end(&mut self, Ending { ended, reason }: Ending) {
        (self.status, self.ended, self.reason) = (ended.status(), ended, reason);
    }

    /// Whether there is nothing more to measure.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.ended.is_planned() && !self.outcome.is_empty()
    }

    /// The results of each thread; empty for values.
    #[must_use]
    pub fn series(&self) -> &[SeriesResult] {
        self.outcome.series()
    }

    /// Threads that were to measure and of which there is nothing.
    pub fn missing(&self) -> impl Iterator<Item = Thread> {
        let measured: BTreeSet<Thread> = self.series().iter().map(|series| series.key.of_thread()).collect();
        self.threads.iter().flatten().copied().filter(move |thread| !measured.contains(thread))
    }

    /// All series together; none where nothing was measured, and for values.
    #[must_use]
    pub const fn all(&self) -> Option<&Summary> {
        self.outcome.all()
    }

    /// The values; nothing for latencies.
    #[must_use]
    pub fn values(&self) -> &[ValueResult] {
        self.outcome.values()
    }

    /// Whether one CPU has several series, so that its number does not tell them apart.
    #[must_use]
    pub fn series_share_cpus(&self) -> bool {
        matches!(&self.measurement, Measure::Timer(timer) if timer.threads() > 1)
    }

    /// The key of a series' histograms: its CPU, or its whole key if a CPU has several series.
    #[must_use]
    pub fn tag(&self, key: &SeriesKey) -> String {
        if self.series_share_cpus() { key.to_string() } else { key.cpu.to_string() }
    }
}

/// A row as it is read back.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its figures.
    pub result: RowResult,
    /// The scalars of its ticks.
    pub ticks: Ticks,
    /// Its histograms, over time and by series.
    pub histograms: Histograms,
    /// Histograms of the missed periods, over time and by series as those.
    pub missed: Histograms,
    /// The parts of the cache that groups of CPUs held before, during and after it, if its scenario divides the cache.
    pub held: Vec<CacheHeld>,
    /// Largest latencies of short windows of time, where a separation asks for them.
    pub windows: RowWindows,
    /// The slices that it was put together from, in the order of their time; empty: it was measured at one go.
    pub slices: Vec<Sliced>,
    /// Its directories in the bundle, below `scenarios`: those of its slices, if it has any.
    pub directories: Vec<String>,
}

impl Row {
    /// A row of which there are figures alone.
    #[must_use]
    pub fn of(result: RowResult) -> Self {
        let ticks = Ticks::planned(result.planned_ns);
        let (histograms, missed) = (Histograms::default(), Histograms::default());
        Self {
            result,
            ticks,
            histograms,
            missed,
            held: Vec::new(),
            windows: RowWindows::default(),
            slices: Vec::new(),
            directories: Vec::new(),
        }
    }

    /// Adds all that it measured to what other rows did: whatever is said of several rows together is said of the sum, as
    /// it is of the threads of one. Returns whether its histograms hold all that its figures count: without that, no
    /// quantile of the sum is known.
    pub fn add_to(&self, all: &mut Latency) -> bool {
        let Some(own) = self.result.all() else { return true };
        let (raw, missed) = (all.raw.len(), all.missed.len());
        self.histograms.series.values().for_each(|counts| counts.add_to(&mut all.raw));
        self.missed.series.values().for_each(|counts| counts.add_to(&mut all.missed));
        all.totals.add(&own.totals());
        let (raw, missed) = (all.raw.len() - raw, all.missed.len() - missed);
        raw == own.cycles.saturating_sub(own.lost) && raw.saturating_add(missed) == own.corrected.count
    }

    /// Everything measured, in one histogram.
    #[must_use]
    pub fn histogram(&self) -> Histogram<u64> {
        joined(self.histograms.series.values())
    }

    /// The same with the missed periods: the histogram that is judged.
    #[must_use]
    pub fn corrected(&self) -> Histogram<u64> {
        joined(self.histograms.series.values().chain(self.missed.series.values()))
    }
}

fn joined<'a>(parts: impl Iterator<Item = &'a Packed>) -> Histogram<u64> {
    let mut all = crate::latency::histogram();
    parts.for_each(|counts| counts.add_to(&mut all));
    all
}

/// A bundle as it is read back: the input of a report.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The manifest.
    pub manifest: Manifest,
    /// The resolved plan.
    pub plan: Plan,
    /// Raw readings of every environment.
    pub facts: BTreeMap<String, Facts>,
    /// The audit of every environment.
    pub audits: BTreeMap<String, Audit>,
    /// The rows, in the plan's order.
    pub rows: Vec<Row>,
    /// Remarks about the run as a whole, with the environment they are about.
    pub notes: Vec<(Option<String>, Note)>,
    /// The damage that the reader had to fix or leave out, in sentences; empty for an intact bundle.
    pub damage: Vec<String>,
    /// Whether tables have a line of raw quantiles below those that are corrected for missed periods: how it is looked at.
    pub raw: bool,
    /// Whether this process has made it from nothing, so that this user typed its commands.
    pub own: bool,
}

/// An environment in a state of the machine.
#[must_use]
pub fn environment_key(environment: &str, state: Option<&str>) -> String {
    state.map_or_else(|| environment.to_owned(), |state| format!("{environment}@{state}"))
}

/// Longest name of an environment, and of a state of the machine, as part of a file name, in bytes. Both may be in one
/// name, and a file system accepts up to 255 bytes.
pub const LONGEST_NAME: usize = 100;

/// The name of an environment as a file name; two environments never share one. Characters that are not allowed there,
/// or would hide the file, are encoded as in a URL. An empty name is `%`, which no other name becomes.
#[must_use]
pub fn file_name(environment: &str) -> String {
    if environment.is_empty() {
        return "%".to_owned();
    }
    let mut name = String::new();
    for (at, c) in environment.char_indices() {
        if c == '/' || c == '%' || c.is_control() || (c == '.' && at == 0) {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| name += &format!("%{byte:02X}"));
        } else {
            name.push(c);
        }
    }
    name
}

/// `name` as part of a directory's name: lower-case letters, digits and hyphens.
#[must_use]
pub fn slug(name: &str) -> String {
    let words: Vec<String> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let slug = words.join("-");
    let slug: String = slug.chars().take(60).collect();
    if slug.is_empty() { "row".into() } else { slug.trim_end_matches('-').into() }
}
