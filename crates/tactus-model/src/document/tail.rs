//! The tail bound of a measurement.

use serde::{Deserialize, Serialize};

/// The latency that is exceeded less than once in a time, if load, machine and configuration stay as measured. It is
/// not a worst case. If it is refused, `level_ns` and the fields that belong to it are `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TailEntry {
    /// Latency that is exceeded less than once in `horizon_s`, at 95 % (the upper end of a two-sided interval), in ns.
    pub level_ns: Option<f64>,
    /// The estimate of the latency that is exceeded once in that time, in ns.
    pub estimate_ns: Option<f64>,
    /// The lower end of the interval, in ns.
    pub low_ns: Option<f64>,
    /// The time that it is for, in seconds.
    pub horizon_s: Option<f64>,
    /// The series that decides: the worst one.
    pub series: Option<String>,
    /// The largest latency of that series, in ns.
    pub observed_ns: Option<f64>,
    /// Exceedances that were fitted.
    pub k: Option<usize>,
    /// The threshold that they are above, in ns.
    pub threshold_ns: Option<f64>,
    /// Shape of the generalised Pareto distribution.
    pub xi: Option<f64>,
    /// Lower end of its interval at 95 %.
    pub xi_low: Option<f64>,
    /// Upper end of it.
    pub xi_high: Option<f64>,
    /// Length of the blocks whose maxima were taken, in ns.
    pub block_ns: Option<u64>,
    /// How many blocks there are.
    #[serde(default)]
    pub blocks: Option<u64>,
    /// Why the bound is provisional. A provisional bound never passes. `null`: the bound is final, or missing.
    #[serde(default)]
    pub provisional: Option<TailProvisional>,
    /// Latencies that are exceeded once in a given time, up to `horizon_s`: the return-level plot and its band. Empty
    /// without a bound.
    #[serde(default)]
    pub levels: Vec<TailLevel>,
    /// Extremal index of the exceedances; 1: they come one by one.
    pub extremal_index: Option<f64>,
    /// Standard deviation over mean of the exceedances; 1 for an exponential tail. It is a diagnostic, not a bound.
    pub variation: Option<f64>,
    /// Whether the blocks are independent and stationary.
    pub tests: Vec<TailTest>,
    /// Why there is no bound; `null`: there is one.
    pub refused: Option<TailRefused>,
}

/// A latency that is exceeded once in a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TailLevel {
    /// The time, in seconds.
    pub time_s: f64,
    /// The estimate, in ns.
    pub estimate_ns: f64,
    /// The lower end of its interval at 95 %, in ns.
    pub low_ns: f64,
    /// The upper end of it, in ns.
    pub high_ns: f64,
}

/// A test of the blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TailTest {
    /// Its name.
    pub name: String,
    /// Its statistic.
    pub statistic: f64,
    /// Probability of a result at least this extreme if there is nothing to find.
    pub p: f64,
}

/// Why a bound is not final yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TailProvisional {
    /// In a sentence.
    pub reason: String,
    /// How much longer the same measurement must run to make it final, in ns.
    pub longer_ns: u64,
}

/// Why there is no bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TailRefused {
    /// In a word: `too-short`, `emulated`, `not-stationary-or-not-independent`, ...
    pub why: String,
    /// In a sentence.
    pub reason: String,
    /// How much longer the same measurement must run for a bound, in ns; absent if time alone would not give one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longer_ns: Option<u64>,
}
