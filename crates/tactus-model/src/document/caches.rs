//! Shared caches, and the use of divided ones.

use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;
use crate::partition::Phase;

/// Latencies of the CPUs of one environment with and without a load on some of them, by the caches that they share.
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
    /// The kind of evidence.
    pub evidence: Option<Evidence>,
    /// Why CPUs that share a cache cannot be compared with CPUs that do not; `null`: they can.
    #[serde(rename = "limitation")]
    pub obstacle: Option<String>,
    /// Why there are no numbers, in sentences.
    pub reasons: Vec<String>,
    /// The CPUs.
    pub cpus: Vec<CacheCpuEntry>,
}

/// One CPU of a study of shared caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheCpuEntry {
    /// Its number.
    pub cpu: u32,
    /// The cache that it shares with the load, in words; `null`: unknown.
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

/// The part of the cache that a group of CPUs held before, with or after a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheHeldEntry {
    /// Name of the scenario.
    pub scenario: String,
    /// The phase of the partition.
    pub phase: Phase,
    /// The group: `all`, `measured`, `others`.
    pub group: String,
    /// The CPUs, as a cpulist.
    pub cpus: String,
    /// Number of readings.
    pub looks: usize,
    /// The least that it held, in bytes; `null`: not counted here.
    pub least_bytes: Option<u64>,
    /// The most.
    pub most_bytes: Option<u64>,
    /// Bytes moved to and from memory meanwhile; `null`: not counted here, or read only once.
    pub memory_bytes: Option<u64>,
}
