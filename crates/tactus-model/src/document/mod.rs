//! The document of `tactus report BUNDLE --json`: a stable contract.

mod answer;
mod blame;
mod caches;
mod compare;
mod comparisons;
mod degradation;
mod environment;
mod fitness;
mod interrupts;
mod network;
mod repeated;
mod run;
mod scenario;
mod separation;
mod tail;

use serde::{Deserialize, Serialize};

use crate::bundle::Format;
use crate::event::RunStatus;

pub use answer::{AnswerEntry, AnswerTone, NextEntry};
pub use blame::{BlameEntry, BlamedLatency, BlamedPart, HostSide, Owner, Span};
pub use caches::{CacheCpuEntry, CacheHeldEntry, CachesEntry};
pub use compare::{
    BaselineEntry, COMPARE_FORMAT, ChangeEntry, CompareDocument, ComparedBundle, ComparedEntry,
    ConditionEntry, ExploredEntry, Judgement, QuantityEntry, RefusalEntry, ResolutionEntry, UnmatchedEntry,
};
pub use comparisons::{CellEntry, ClaimEntry, EffectEntry, MatrixEntry, ProofEntry};
pub use degradation::{Degradation, DegradationEntry, PlaceEntry};
pub use environment::{AuditEntry, SystemEntry, ThreadEntry};
pub use fitness::{ClassEntry, Fit, FitnessEntry};
pub use interrupts::{InterruptEntry, InterruptsEntry, PostedEntry};
pub use network::NetworkEntry;
pub use repeated::RepeatedEntry;
pub use run::{RunEntry, RunNote};
pub use scenario::{
    AttributionEntry, Entry, LimitEntry, Outcome, Published, SelfTestEntry, SeriesEntry, Side, ValueEntry,
    Verdict,
};
pub use separation::{Doubt, Leak, LeakEntry, SeparationEntry, TechnologyEntry, WordEntry};
pub use tail::{TailEntry, TailLevel, TailProvisional, TailRefused, TailTest};

/// A run in numbers. All latencies are in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Version of this contract. It is that of the bundles which this tactus writes, even if the bundle has another
    /// version.
    pub format: Format,
    /// Whether the run came to its end.
    pub status: RunStatus,
    /// The run: its plan, machine, tools and times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunEntry>,
    /// The summary that a person reads first; absent in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerEntry>,
    /// One entry per measurement; several of one scenario share its name.
    pub scenarios: Vec<Entry>,
    /// The joint result of the runs of each repeated measurement; only if the plan repeats any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<RepeatedEntry>,
    /// The faults of a bundle that was read although it is damaged, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
    /// One scenario against another; only where the plan compares any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimEntry>,
    /// The effect of each setting under test; only where the plan tests any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<ProofEntry>,
    /// Maxima by state of the machine and environment; only where the plan asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<MatrixEntry>,
    /// The interrupts and timers of each environment; only if the plan asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<SystemEntry>,
    /// Which environments the disturbances reach; only where the plan asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separation: Option<SeparationEntry>,
    /// The technologies in words; only where the plan compares any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub technologies: Vec<TechnologyEntry>,
    /// The cache that groups of CPUs held; only if a scenario divides the cache and the processor counts its use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<CacheHeldEntry>,
    /// Latencies by shared cache; only where the plan asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CachesEntry>,
    /// The cost of each environment compared with the first; only if values were measured in several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degradations: Vec<DegradationEntry>,
    /// The cost of streams over network paths; only if they were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<NetworkEntry>,
    /// Which classes of control applications each environment is fit for; only where latencies were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fitness: Vec<FitnessEntry>,
    /// How the interrupts of each environment arrive. Only environments with a separate kernel have an entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptsEntry>,
    /// The findings of the audit in each environment.
    pub audits: Vec<AuditEntry>,
}
