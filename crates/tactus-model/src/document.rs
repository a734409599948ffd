//! The document of `tactus show BUNDLE --json`: a stable contract.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bundle::Format;
use crate::event::RunStatus;
use crate::evidence::Evidence;
use crate::finding::{Role, Severity};
use crate::latency::Summary;
use crate::outcome::{Better, RowEnd, RowStatus};
use crate::partition::Phase;
use crate::plan::Trait;
use crate::series::SeriesKey;

/// A run in numbers. All latencies are in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Version of this contract; it follows the bundle's.
    pub format: Format,
    /// Whether the run came to its end.
    pub status: RunStatus,
    /// One entry per measurement; several of one scenario share its name.
    pub scenarios: Vec<Entry>,
    /// What each setting under test is worth; only where the plan tests any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<ProofEntry>,
    /// Maxima by state of the machine and environment; only where the plan asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<MatrixEntry>,
    /// What interrupts and timers of each environment run on; only where the plan asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<SystemEntry>,
    /// Which environments the disturbances reach; only where the plan asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separation: Option<SeparationEntry>,
    /// The technologies in words; only where the plan compares any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub technologies: Vec<TechnologyEntry>,
    /// What groups of CPUs held of the cache; only where a scenario divides it and the processor counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<CacheHeldEntry>,
    /// Latencies by shared cache; only where the plan asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CachesEntry>,
    /// What the audit found in each environment; empty for bundles before format 1.1.
    pub audits: Vec<AuditEntry>,
}

/// Which environments the disturbances reach: a cell for each disturbance, each environment that is
/// disturbed, each one that is measured, and each set of CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeparationEntry {
    /// The environments.
    pub environments: Vec<String>,
    /// Those that this machine does not have, and why.
    pub absent: BTreeMap<String, String>,
    /// The chance that any cell is called a leak where there is none, over all cells together.
    pub error: f64,
    /// The cells.
    pub cells: Vec<LeakEntry>,
}

impl SeparationEntry {
    /// The kinds of disturbances, in their order.
    #[must_use]
    pub fn disturbances(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !kinds.contains(&cell.disturbance.as_str()) {
                kinds.push(&cell.disturbance);
            }
        }
        kinds
    }

    /// The environments that this machine has.
    #[must_use]
    pub fn present(&self) -> Vec<&str> {
        let there = self.environments.iter().filter(|name| !self.absent.contains_key(*name));
        there.map(String::as_str).collect()
    }
}

/// Whether a disturbance in one environment is seen in another (or, on the diagonal, where it was made).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeakEntry {
    /// `block`, `cache`, ...
    pub disturbance: String,
    /// The environment that is disturbed.
    pub disturbed: String,
    /// The CPU of the machine on which it is; `null`: it is on none of this machine's.
    pub disturbed_cpu: Option<u32>,
    /// The same CPU as that environment numbers it.
    pub disturbed_inside: Option<u32>,
    /// The environment that is measured.
    pub measured: String,
    /// Whether it is measured on the CPU of the disturbance, or on others.
    pub same_cpu: bool,
    /// The CPUs of the machine that it is measured on, as a cpulist; empty where they are not known.
    pub cpus: String,
    /// The same CPUs as that environment numbers them.
    pub inside: String,
    /// Name of the scenario with the disturbance.
    pub scenario: String,
    /// What the numbers are worth: the lesser evidence of the two environments.
    pub evidence: Option<Evidence>,
    /// Length of the disturbance, in ns; `null` for a load.
    pub length_ns: Option<u64>,
    /// How often it was injected on the CPU while this was measured.
    pub injected: Option<u64>,
    /// Largest latency at rest, in ns.
    pub rest_max_ns: Option<u64>,
    /// Largest latency with the disturbance, in ns.
    pub with_max_ns: Option<u64>,
    /// Latencies of at least half the length at rest, scaled to the same time.
    pub half_at_rest: Option<f64>,
    /// The same with the disturbance.
    pub half: Option<u64>,
    /// Latencies of at least 90 % of the length with the disturbance.
    pub full: Option<u64>,
    /// Typical maximum of a slot of time with the disturbance over that at rest.
    pub ratio: Option<f64>,
    /// The ratio is at least this.
    pub ratio_low: Option<f64>,
    /// The ratio is at most this; `null`: too few slots to say.
    pub ratio_high: Option<f64>,
    /// Slots of time at rest and with the disturbance.
    pub slots: [usize; 2],
    /// Whether it is seen.
    pub leak: Leak,
    /// What it is for that it is not known; `null`: it is known.
    #[serde(default)]
    pub doubt: Option<Doubt>,
    /// Why, in one sentence.
    pub reason: String,
}

/// Why it is not known whether a disturbance reaches an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// It was not measured: refused, skipped, failed or not asked for.
    NotMeasured,
    /// It is not measured on such a CPU.
    NoSuchCpu,
    /// The measurement was too short for the test.
    TooShort,
    /// The noise of the place could hide it.
    Noise,
    /// It was seen, too rarely to tell it from noise.
    TooFew,
    /// It was not seen, but nor (as far as is known) was it where it was made.
    Source,
    /// It was not seen, but nor was the control: the instrument is not proven there.
    Control,
}

impl Doubt {
    /// In a word or two.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotMeasured => "not measured",
            Self::NoSuchCpu => "no such CPU",
            Self::TooShort => "too short",
            Self::Noise => "noise",
            Self::TooFew => "too few",
            Self::Source => "source",
            Self::Control => "control",
        }
    }

    /// In a sentence.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::NotMeasured => "refused, skipped or failed; the reason stands below",
            Self::NoSuchCpu => "the two have no such CPU in common",
            Self::TooShort => "measured too briefly for the test: measure longer",
            Self::Noise => "the place's own noise at rest could hide it",
            Self::TooFew => "it may have been seen, too rarely to tell it from noise",
            Self::Source => {
                "not seen, but it is not certain that it was there: it was not surely seen where it was made"
            }
            Self::Control => {
                "not seen, but the control was not seen at its size either: the instrument is not proven there"
            }
        }
    }
}

/// Whether a disturbance reaches an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Leak {
    /// At its size, as often as it was made.
    #[serde(rename = "yes")]
    Yes,
    /// Smaller or less often.
    #[serde(rename = "partly")]
    Partly,
    /// Not seen, and it would have been.
    #[serde(rename = "no")]
    No,
    /// Not measured, or too little to say.
    #[serde(rename = "not known")]
    NotKnown,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Yes => "yes",
            Self::Partly => "partly",
            Self::No => "no",
            Self::NotKnown => "not known",
        })
    }
}

/// Latencies of the CPUs of one environment, with a load on some of them and without, by the caches that they share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CachesEntry {
    /// The environment.
    pub environment: String,
    /// Name of the scenario without the load.
    pub rest: String,
    /// Name of the scenario with it.
    pub with: String,
    /// CPUs that carry the load, as a cpulist.
    pub loaded: String,
    /// What the numbers are worth.
    pub evidence: Option<Evidence>,
    /// Why CPUs that share a cache cannot be held against CPUs that do not; `null`: they can.
    pub obstacle: Option<String>,
    /// Why there are no numbers, in sentences.
    pub reasons: Vec<String>,
    /// The CPUs.
    pub cpus: Vec<CacheCpuEntry>,
}

/// What a group of CPUs held of the cache before, with or after a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheHeldEntry {
    /// Name of the scenario.
    pub scenario: String,
    /// When.
    pub phase: Phase,
    /// Whose: `all`, `measured`, `others`.
    pub group: String,
    /// The CPUs, as a cpulist.
    pub cpus: String,
    /// How often it was looked at.
    pub looks: usize,
    /// The least that it held, in bytes; `null`: not counted here.
    pub least_bytes: Option<u64>,
    /// The most.
    pub most_bytes: Option<u64>,
    /// Bytes moved to and from memory meanwhile; `null`: not counted here, or looked at once.
    pub memory_bytes: Option<u64>,
}

/// One CPU of a study of shared caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheCpuEntry {
    /// Its number.
    pub cpu: u32,
    /// What it shares with the load, in words; `null`: not known.
    pub shares: Option<String>,
    /// Largest latency without the load, in ns.
    pub rest_max_ns: Option<u64>,
    /// Largest latency with it, in ns.
    pub with_max_ns: Option<u64>,
    /// Misses of the last-level cache on this CPU without the load, per second; `null`: not counted here.
    pub rest_misses_per_s: Option<u64>,
    /// The same with it.
    pub with_misses_per_s: Option<u64>,
    /// The document's largest latency with the load, in ns.
    pub published_max_ns: Option<u64>,
}

/// A technology in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TechnologyEntry {
    /// What it is called.
    pub name: String,
    /// The environment that stands for it.
    pub environment: String,
    /// What it is here: `docker`, `qemu`, ...
    pub kind: String,
    /// What its numbers are worth.
    pub evidence: Option<Evidence>,
    /// Its words.
    pub words: Vec<WordEntry>,
}

/// A word about a technology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WordEntry {
    /// What it is about.
    pub row: Trait,
    /// The word that the measurements give.
    pub word: String,
    /// The document's word.
    pub published: Option<String>,
    /// Whether the two differ; `null` where either is missing or not known.
    pub differs: Option<bool>,
    /// The numbers behind it, in sentences.
    pub reasons: Vec<String>,
    /// Scenarios that it rests on.
    pub scenarios: Vec<String>,
}

/// A setting under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProofEntry {
    /// Id of its check.
    pub setting: String,
    /// Name of the environment.
    pub environment: String,
    /// What differed.
    pub what: String,
    /// What the numbers are worth; `null` when nothing was measured.
    pub evidence: Option<Evidence>,
    /// Pairs that were measured.
    pub pairs: usize,
    /// Why there is no answer.
    pub reason: Option<String>,
    /// Effects on `p99`, `p99.9` and `maximum`; the intervals hold together at 95 %.
    pub effects: Vec<EffectEntry>,
}

/// The effect of a setting on one quantity: with it minus without it, in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectEntry {
    /// `p99`, `p99.9`, `maximum`.
    pub quantity: String,
    /// Median of the pairs without it.
    pub without_ns: f64,
    /// Median of the pairs with it.
    pub with_ns: f64,
    /// Hodges-Lehmann estimate of the difference.
    pub effect_ns: f64,
    /// Lower end of its interval.
    pub low_ns: f64,
    /// Upper end of its interval.
    pub high_ns: f64,
    /// Whether the interval leaves out zero.
    pub shown: bool,
}

/// A table of maxima.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatrixEntry {
    /// Its heading.
    pub title: String,
    /// Its cells.
    pub cells: Vec<CellEntry>,
}

/// A cell of a table of maxima. It has no verdict: `evidence` says what the number is worth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellEntry {
    /// The state of the machine; `other`: in none of the plan's; `null`: the plan declares none.
    pub host: Option<String>,
    /// The environment.
    pub environment: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Whether it was measured.
    pub status: RowStatus,
    /// What the number is worth.
    pub evidence: Option<Evidence>,
    /// Largest latency here, in ns.
    pub max_ns: Option<u64>,
    /// Largest latency in the document, in ns.
    pub published_max_ns: Option<u64>,
    /// Why it has no number, or one of less than planned.
    pub reason: Option<String>,
    /// CPUs of the environment that were not measured, as a cpulist; empty where it is not known.
    pub left_out: String,
}

/// What interrupts and timers of one environment run on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SystemEntry {
    /// The environment, with the state of the machine: `host@cpu-partitioning`.
    pub place: String,
    /// Release of its kernel.
    pub kernel: Option<String>,
    /// Whether that is fully preemptible.
    pub preempt_rt: Option<bool>,
    /// Revision of the processor's microcode.
    pub microcode: Option<String>,
    /// The devices whose interrupts wake its CPUs; `lapic-deadline` is the TSC-deadline timer.
    pub clockevent: Option<String>,
    /// What the kernel's messages say of TSC-deadline.
    pub tsc_deadline: Option<String>,
    /// Microseconds of a second that real-time threads may run; `-1`: all.
    pub sched_rt_runtime_us: Option<String>,
    /// Whether its threads could be listed.
    pub threads_known: bool,
    /// Threads that handle interrupts.
    pub irq_threads: Vec<ThreadEntry>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadEntry {
    /// Its id.
    pub tid: u32,
    /// `FIFO`, `RR`, `OTHER`, ...
    pub policy: String,
    /// Real-time priority.
    pub priority: u32,
    /// CPUs that it may run on, as a cpulist.
    pub cpus: String,
    /// Its name.
    pub name: String,
}

/// What the audit found in one environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditEntry {
    /// Name of the environment.
    pub environment: String,
    /// The part that it plays.
    pub role: Role,
    /// CPUs for real-time work, as a cpulist.
    pub isolated: String,
    /// Checks that could not be known from there or not be read.
    pub unknown: usize,
    /// The findings, worst first.
    pub found: Vec<FoundEntry>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundEntry {
    /// Id of the check; `tactus explain` prints it in full.
    pub id: String,
    /// How bad it is.
    pub severity: Severity,
    /// What was found, in one sentence.
    pub said: String,
}

/// One measurement of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Name of the scenario.
    pub name: String,
    /// Name of the measurement's environment.
    pub environment: String,
    /// State of the machine that it is for, where the plan declares states; `other`: none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Kind of that environment.
    pub kind: String,
    /// The environment that it lies inside, where it is not on the machine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// What the numbers are worth; `null` when the environment never came up.
    pub evidence: Option<Evidence>,
    /// `timer`, `spin`, ...
    pub measurement: String,
    /// Loads of the scenario, as the plan's tables with their `in`.
    pub load: Vec<Value>,
    /// Faults of the scenario, as the plan's tables with their `in`.
    pub fault: Vec<Value>,
    /// What is known of it in one word.
    pub status: RowStatus,
    /// How it ended.
    pub ended: RowEnd,
    /// Why it has no numbers, or fewer than planned.
    pub reason: Option<String>,
    /// How long it measured, in seconds.
    pub duration_s: f64,
    /// What each measuring thread saw.
    pub series: Vec<SeriesEntry>,
    /// All series together; `null` when nothing was measured and for measurements that yield values.
    pub all: Option<Summary>,
    /// The items of a measurement that yields values; empty when nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<ValueEntry>>,
    /// The injected fault that proves the instrument; `null` when none was injected.
    pub control: Option<ControlEntry>,
    /// The host's part in a guest's largest latencies; only where the host has a record of its vCPU threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<AttributionEntry>,
    /// The figures that the study's document published for this scenario.
    pub published: Option<Published>,
    /// What the plan's requirement says; `null` when it has none.
    pub verdict: Option<Verdict>,
}

/// One series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesEntry {
    /// Environment, CPU, thread and kind in one word.
    pub id: String,
    /// CPU, thread, priority and kind.
    #[serde(flatten)]
    pub key: SeriesKey,
    /// Its figures.
    #[serde(flatten)]
    pub summary: Summary,
}

/// An item of a measurement that yields values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueEntry {
    /// What was measured.
    pub item: String,
    /// In which unit.
    pub unit: String,
    /// Which of two values is the better one.
    pub better: Better,
    /// The median of the repeats.
    pub value: f64,
    /// Lower end of its 95 % interval; `null`: too few repeats for one.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
    /// The smallest repeat.
    pub min: f64,
    /// The largest repeat.
    pub max: f64,
    /// Median of the repeats' distances from the value.
    pub deviation: f64,
    /// Repeats that count.
    pub samples: u64,
    /// Repeats left out because something else had the CPU meanwhile.
    pub dropped: u64,
    /// The document's figure, in the same unit.
    pub published: Option<f64>,
}

/// The worst of a row's controls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControlEntry {
    /// What was injected: `hog`, `block`.
    #[serde(default)]
    pub by: String,
    /// How long the CPU was really held, in ns.
    pub injected_ns: u64,
    /// The latency that was measured, in ns.
    pub seen_ns: u64,
    /// Whether every measuring thread saw it at its size.
    pub proven: bool,
}

/// Which of the largest latencies are the host's: meanwhile the thread of the virtual CPU was kept from running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttributionEntry {
    /// How many of the largest latencies were looked at.
    pub of: usize,
    /// How many of them are the host's.
    pub host: usize,
    /// The largest of those, in ns.
    pub largest_ns: u64,
    /// How long the thread was kept from running then, in ns.
    pub waited_ns: u64,
}

/// Figures of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Published {
    /// Minimum, in ns.
    pub min_ns: Option<u64>,
    /// Mean, in ns.
    pub mean_ns: Option<u64>,
    /// Maximum, in ns.
    pub max_ns: Option<u64>,
    /// Minimum, mean and maximum of each thread in the document's order, in ns; only where it has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads_ns: Vec<[u64; 3]>,
    /// Where in the document.
    pub source: String,
}

/// What a requirement says about a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Pass, fail or inconclusive.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub reason: String,
}

/// The three things that a verdict can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The requirement is kept.
    Pass,
    /// It is broken.
    Fail,
    /// The evidence does not carry a verdict.
    Inconclusive,
}
