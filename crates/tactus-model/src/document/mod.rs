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
    /// Version of this contract: that of the bundles which this tactus writes, whatever the one that is shown is of.
    pub format: Format,
    /// Whether the run came to its end.
    pub status: RunStatus,
    /// What was run where, by what and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunEntry>,
    /// What a person reads first; absent in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerEntry>,
    /// One entry per measurement; several of one scenario share its name.
    pub scenarios: Vec<Entry>,
    /// What the runs of each repeated measurement say together; only where the plan repeats any.
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
    /// What each environment costs against the first; only where values were measured in several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degradations: Vec<DegradationEntry>,
    /// What streams over network paths cost; only where they were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<NetworkEntry>,
    /// Which classes of control applications each environment is fit for; only where latencies were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fitness: Vec<FitnessEntry>,
    /// How the interrupts of each environment with a kernel of its own arrive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptsEntry>,
    /// What the audit found in each environment.
    pub audits: Vec<AuditEntry>,
}
