//! By how much one environment, or one network path, is worse than another.

use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;
use crate::outcome::{Point, Unit};

/// An item of a measurement in two places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DegradationEntry {
    /// Kind of the measurement.
    pub measurement: String,
    /// The item.
    pub item: String,
    /// Where on its curve; `null`: it has none.
    pub at: Option<Point>,
    /// Unit of the values.
    pub unit: Unit,
    /// What it is held against.
    pub base: PlaceEntry,
    /// What is held against it.
    pub with: PlaceEntry,
    /// The difference.
    pub degradation: Degradation,
}

/// A value in one of the two places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlaceEntry {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the environment.
    pub environment: String,
    /// The kind of evidence.
    pub evidence: Option<Evidence>,
    /// The value; of several runs the median.
    pub value: f64,
    /// What the study's document has in its place.
    pub published: Option<f64>,
}

/// How much worse one of two values is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Degradation {
    /// What is worse over what is better, less one: 0.1 is 10 % worse, and below 0 is better. Of repeated runs the
    /// geometric mean of their pairs, of one run each the quotient.
    pub value: f64,
    /// Lower end of its interval; `null`: too few runs, or too few repeats within them. Of repeated runs it holds together
    /// with all others of the report (95 %), of one run each it is what these two runs' intervals allow.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Pairs of runs that it is judged from. Of one pair it is never called a degradation: runs of the same thing differ, too.
    pub rounds: u64,
    /// Whether there is a difference: the interval of repeated runs excludes zero.
    pub seen: bool,
}
