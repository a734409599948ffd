//! The identity of what one measuring thread yields.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The key of a series within one measurement: its thread, and where and how that thread runs.
/// Twelve threads on one core, or timerlat's interrupt and thread latency, are separate series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesKey {
    /// CPU of the environment on which the thread is pinned.
    pub cpu: u32,
    /// Number of the measuring thread, from 0.
    pub thread: u32,
    /// Real-time priority (0 for SCHED_DEADLINE and SCHED_OTHER).
    pub priority: u32,
    /// What the values are: `thread` (wake-up of the thread), `gap` (polled), later `irq`.
    pub kind: String,
}

impl SeriesKey {
    /// The id of the series: environment, CPU, thread and kind, as in `guest/cpu1/t0/thread`.
    #[must_use]
    pub fn id(&self, environment: &str) -> String {
        format!("{environment}/{self}")
    }
}

impl fmt::Display for SeriesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu{}/t{}/{}", self.cpu, self.thread, self.kind)
    }
}
