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
    /// The point on its curve; `null`: it has no curve.
    pub at: Option<Point>,
    /// Unit of the values.
    pub unit: Unit,
    /// The place to compare with.
    pub base: PlaceEntry,
    /// The place that is compared.
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
    /// The figure of the study's document.
    pub published: Option<f64>,
}

/// How much worse one of two values is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Degradation {
    /// How much worse it is than the base, as a ratio minus one: 0.1 is 10 % worse, and below 0 is better. For repeated
    /// runs it is the geometric mean of their pairs, for one run each the quotient.
    pub value: f64,
    /// Lower end of its interval; `null`: too few runs, or too few repeats within them. For repeated runs it holds
    /// together with all others of the report (95 %). For one run each it is the bound that the intervals of the two
    /// runs allow.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Pairs of runs behind this value. One pair is never called a degradation, because runs of the same thing also
    /// differ.
    pub rounds: u64,
    /// Whether there is a difference: the interval of repeated runs excludes zero.
    pub seen: bool,
}
