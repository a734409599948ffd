//! The contents of a document, and its statements on technologies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The kind of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Minimum, mean and maximum per interval over the whole time, one band per scenario.
    LatencyOverTime,
    /// Histograms of several scenarios on one axis.
    Histogram,
    /// Histograms of the CPUs of one scenario on one axis, a figure per scenario.
    PerCore,
    /// A table of maxima: states of the machine by environments.
    Matrix,
    /// A table of every environment's interrupt threads and timers.
    Threads,
}

/// A figure of a document, drawn from the measured values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its kind.
    pub kind: FigureKind,
    /// Its heading, as in the document.
    pub title: String,
    /// Names of the scenarios in it.
    pub scenarios: Vec<String>,
}

/// A technology, and a document's words about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Technology {
    /// Its name: the head of its column.
    pub name: String,
    /// The environment that stands for it.
    pub environment: String,
    /// The environment that it lies on: the host, the root cell.
    pub host: String,
    /// Pairs of scenarios measured alike: on the host, and in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<[String; 2]>,
    /// The document's word for each row.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub published: BTreeMap<Trait, String>,
}

/// A row of the comparison of technologies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Trait {
    /// Real-time inside.
    RealTime,
    /// Latencies as on the host.
    AsOnHost,
    /// Whether disturbances stay where they are.
    Separation,
    /// Independence from the host.
    Independence,
}

/// A page of a document: its words, and the measured values beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Its heading, as in the document.
    pub title: String,
    /// The document's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The parts that are shown, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<Shown>,
    /// Names of the scenarios that are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<String>,
    /// The environment whose disturbance is shown.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
}

/// A part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// A table of all threads of the scenarios, as cyclictest prints them, with the published values.
    Threads,
    /// Histograms of the scenarios on one axis.
    Histogram,
    /// Histograms of the CPUs of each scenario.
    PerCore,
    /// The effect of a disturbance in one environment on all of them.
    Disturbance,
    /// The environments that disturbances reach.
    Separation,
    /// Latencies by the caches that a CPU shares with the load.
    Caches,
    /// The comparison of technologies.
    Technologies,
}
