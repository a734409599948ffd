//! A plan: environments and scenarios, as the user writes them in TOML.
//!
//! [`Plan`] is the written form; nothing in it has been checked against a machine. The host side resolves it (CPU sets,
//! kernels, usable words) into the same type with every value filled in. A bundle keeps that as `plan.toml`.

mod fitness;
mod page;
mod path;
mod placed;
mod require;
#[cfg(feature = "schema")]
pub mod schema;
mod separation;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::catalogue::{Fault, Load, Measure, optional_word_or_table};
use crate::control::ControlBy;
use crate::cpus::CpuRequest;
use crate::duration::Nanos;
use crate::outcome::Quantity;
use crate::partition::Partition;
use crate::scheduling::Policy;

pub use fitness::{Class, Fitness, Span};
pub use page::{Figure, FigureKind, Page, Shown, Technology, Trait};
pub use path::{GuestDevice, NetworkPath, PathKind};
pub use placed::Placed;
use placed::one_or_many;
pub use require::{Require, TailLimit};
pub use separation::{Disturbance, Disturbed, Separation};

/// A plan or study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Its name, as `tactus run NAME` takes it for studies.
    pub name: String,
    /// One line for lists and headings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its purpose and its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The random seed for the order in which repeated scenarios are measured. Left out: a new one for each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Values for scenarios that do not set them.
    #[serde(default, skip_serializing_if = "Scenario::says_nothing")]
    pub defaults: Scenario,
    /// Values that `--quick` uses instead.
    #[serde(default, skip_serializing_if = "Scenario::says_nothing")]
    pub quick: Scenario,
    /// The places where code runs, by name.
    #[serde(default)]
    pub environment: BTreeMap<String, Environment>,
    /// The paths between them, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub path: BTreeMap<String, NetworkPath>,
    /// States of the machine that scenarios are for, by name.
    #[serde(default, rename = "host-state", skip_serializing_if = "BTreeMap::is_empty")]
    pub host_state: BTreeMap<String, HostState>,
    /// The scenarios, in this order.
    #[serde(default)]
    pub scenario: Vec<Scenario>,
    /// Published figures, shown beside the measured ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference: Vec<Reference>,
    /// Pairs of scenarios whose difference is a claim under test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compare: Vec<Compare>,
    /// Settings under test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proof: Vec<Proof>,
    /// Which environments a disturbance in one of them reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separation: Option<Separation>,
    /// Figures that the report draws beside its usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figure: Vec<Figure>,
    /// Technologies that are compared in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub technology: Vec<Technology>,
    /// The document page by page: the first part of the report, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub page: Vec<Page>,
    /// Classes of applications that the report judges by, and the document's own statement on fitness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitness: Option<Fitness>,
}

/// An environment as the plan describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// `host`, `podman`, `oci`, `qemu`, ...
    pub kind: String,
    /// Kinds that take its place, in this order, where the one above cannot be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<String>,
    /// CPUs of the machine that it runs on: those to measure on, or those for the vCPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuRequest>,
    /// Name of the environment that it lies in; left out: the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// Name of a running one to attach to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach: Option<String>,
    /// Keys of its kind; the environment's own file reads and checks them.
    #[serde(flatten)]
    pub options: BTreeMap<String, serde_json::Value>,
}

/// The state of a machine that is in no state of the plan.
pub const OTHER_STATE: &str = "other";

/// A state of the machine that needs a reboot. tactus recognizes it by the settings in effect, and does not start it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostState {
    /// The tuning profile whose boot parameters and values hold in it.
    pub profile: String,
    /// The kind of its kernel; left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelKind>,
}

/// A kind of kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KernelKind {
    /// Fully preemptible: PREEMPT_RT.
    Rt,
    /// Any other.
    Standard,
}

/// A scenario, in its full form (`activity`) or in shorthand (`environment`, `measurement`, `load`,
/// `fault`). Also the shape of `[defaults]` and `[quick]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name; several measurements of one scenario share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How long it measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Nanos>,
    /// Number of runs. All repeated scenarios run in rounds, each in randomised order. This separates effects from the
    /// usual differences between runs. Default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// Length of a slice. Scenarios with slices are measured in rounds of slices, each in randomised order. Drift and
    /// temporary disturbances then affect all scenarios alike. The slices of a scenario are one measurement. Left out:
    /// it is measured without interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleave: Option<Nanos>,
    /// Number of times that an environment is started again if it dies while it is measured or makes load. The
    /// measurement continues with the remaining duration, and the time between is a gap. For latencies only. Default 0:
    /// the measurement ends with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<u32>,
    /// Longest time without a message from an environment while it is measured. After it the environment counts as
    /// dead. If the program that runs the environment reports that it is paused, tactus waits for it. Default 30s, and
    /// five ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_after: Option<Nanos>,
    /// Time between two wake-ups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Nanos>,
    /// Real-time priority of the measuring threads, 1 to 99.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// How the measuring threads are scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// How often the probe reports; default 1 s, less in short scenarios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Nanos>,
    /// The self-test before measuring: `true` (a SCHED_FIFO thread that spins for 1 ms on each measuring CPU), `false`,
    /// or the table of a fault. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlBy>,
    /// Leave the system as it is while measuring. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_side_effects: Option<bool>,
    /// Count the misses of the last-level cache on the measured CPUs, with a performance counter of each. Default: only
    /// if a page shows them (`show = ["caches"]`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_misses: Option<bool>,
    /// Count why the virtual CPUs of a guest leave it, and for how long. BPF programs at KVM's tracepoints do it. They
    /// make each exit of every guest on the machine longer. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kvm_exits: Option<bool>,
    /// Record the threads and interrupts that had the CPU during the largest latencies. These are the ten largest of
    /// each thread, and every one above this value among its 32 largest. BPF programs at the kernel's tracepoints of
    /// switches and interrupts record them, else tracefs or the counters of /proc. Default: nothing is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame_above: Option<Nanos>,
    /// The same; in addition a `timer` ends with the first latency above this value (its `break`, unless that has
    /// another value).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_above: Option<Nanos>,
    /// Parts of the machine's cache and memory bandwidth that are reserved for the measured CPUs during the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
    /// The requirements on the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require: Option<Require>,
    /// Settings that are made for this scenario and reverted after it, by the ids of their checks. `thp` is the setting
    /// that the audit recommends, and `!thp` is the kernel's default. For environments that are measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// The state of the machine that it is for: a name of `[host-state]`, or `other` for a machine in no state of the
    /// plan. Left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Environments that are started for it and stay idle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<String>,
    /// Why it is never measured. It is a row of a document that stays empty, with this reason beside the published
    /// figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// Shorthand: the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Shorthand: the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_word_or_table")]
    pub measurement: Option<Measure>,
    /// Shorthand: CPUs of the environment that are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuRequest>,
    /// Shorthand: loads beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::OneOrMany<Load>"))]
    pub load: Vec<Placed<Load>>,
    /// Shorthand: faults injected during it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::OneOrMany<Fault>"))]
    pub fault: Vec<Placed<Fault>>,
    /// The full form: everything that runs together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activity: Vec<Activity>,
}

impl Scenario {
    fn says_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// One measurement, load or fault in one environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Activity {
    /// The measurement.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_word_or_table")]
    pub measure: Option<Measure>,
    /// The load.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_word_or_table")]
    pub load: Option<Load>,
    /// The fault.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_word_or_table")]
    pub fault: Option<Fault>,
    /// The environment.
    #[serde(rename = "in")]
    pub environment: String,
    /// CPUs of that environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuRequest>,
    /// The environment that it sends to, for words that have such a peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The environment that sends what it measures, for words that have such a peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The path to that environment: a name of `[path]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Instead of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Nanos>,
    /// Instead of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Instead of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
}

/// Figures that a document published for a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Name of the scenario.
    pub scenario: String,
    /// Published minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Nanos>,
    /// Published mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Nanos>,
    /// Published maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Nanos>,
    /// Published minimum, mean and maximum of each thread, in the document's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<[Nanos; 3]>,
    /// The item of a measurement that yields values: one reference for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Its published value: `"3.48us"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
    /// The measurement's environment, where a scenario has several; left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The place in the document.
    pub source: String,
}

/// Most measurements of a plan, each run of one by itself: every one is a row of the bundle, and a report looks at all of
/// them for each.
pub const MOST_MEASURED: usize = 16_384;
/// Limit of the claims of a plan. A report states all of them together with 95 %: each further one makes the others
/// harder to prove, and more could not be read.
pub const MOST_COMPARED: usize = 256;
/// Limits of the published figures of a plan, which are a table each, and of the threads of one of them. All are
/// searched for each measurement and each of its values.
pub const MOST_REFERENCES: usize = 1024;
/// See [`MOST_REFERENCES`].
pub const MOST_PUBLISHED_THREADS: usize = 256;
/// Most figures of a plan, most pages, and most technologies. Each may show every row that was measured.
pub const MOST_SHOWN: usize = 64;
/// Most environments of a separation, and most that is made in them in all: each is looked at in each of them.
pub const MOST_SEPARATED: usize = 32;
/// See [`MOST_SEPARATED`].
pub const MOST_DISTURBED: usize = 512;

/// A claim: what changes from one scenario to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The subject of the claim, as a heading.
    pub name: String,
    /// The scenario without.
    pub base: String,
    /// The scenario with.
    pub with: String,
    /// The claim in the document's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
}

/// A setting under test: scenarios with and without it, in pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// Id of its check.
    pub setting: String,
    /// Name of the environment.
    pub environment: String,
    /// The comparison, in words: `/sys/...: compares never (tuned) with madvise (now)`.
    pub what: String,
    /// Names of the scenarios with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Names of those without, each beside its pair.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Why it is not tested here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
