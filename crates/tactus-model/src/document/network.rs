//! The cost of a stream over a network path.

use serde::{Deserialize, Serialize};

use super::Degradation;
use crate::evidence::Evidence;

/// A stream in one direction over one path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkEntry {
    /// Name of the scenario.
    pub scenario: String,
    /// The environment that measured.
    pub environment: String,
    /// The path, by the plan's name for it; `null`: the environment's own loopback.
    pub path: Option<String>,
    /// The kind of path: `veth`, `bridge`, ...
    pub kind: String,
    /// Whether its ends are namespaces of one machine, which stand for two machines.
    pub one_machine: bool,
    /// The kind of evidence.
    pub evidence: Option<Evidence>,
    /// `TX`: to the peer; `RX`: from it.
    pub direction: String,
    /// Payload that was offered, in Mb/s; `null`: as fast as the sender could.
    pub offered_mbps: Option<u32>,
    /// Payload that arrived, in Mb/s.
    pub throughput_mbps: Option<f64>,
    /// Messages that did not arrive, in per cent.
    pub loss_percent: Option<f64>,
    /// Hardware threads of the machine that were busy.
    pub load: Option<f64>,
    /// The same for each Gb/s that arrived.
    pub load_per_gbps: Option<f64>,
    /// Context switches for each message that arrived.
    pub switches_per_message: Option<f64>,
    /// The load for each Gb/s divided by that of the first path in this direction, minus one; `null` for the first.
    pub degradation: Option<Degradation>,
}
