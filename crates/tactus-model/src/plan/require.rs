//! The requirements of a scenario on its results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::duration::Nanos;
use crate::outcome::{Quantity, Yields};

/// A latency that must be exceeded less than once within a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TailLimit {
    /// The latency.
    pub max: Nanos,
    /// Less than once within this time, at 95 %.
    pub horizon: Nanos,
}

/// Limits for a result. For latencies each limit is the largest value that passes. For values it is the worst value of
/// each named item that passes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Require {
    /// Limit on the maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Nanos>,
    /// Limit on the jitter: the largest latency minus the smallest, over all threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Nanos>,
    /// Limit on the 99.999th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99999: Option<Nanos>,
    /// Limit on the 99.99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p9999: Option<Nanos>,
    /// Limit on the 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<Nanos>,
    /// Limit on the 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<Nanos>,
    /// Limit on the latency that is exceeded less than once in a longer time than was measured: `tail = { max =
    /// "200us", horizon = "24h" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailLimit>,
    /// Maximum number of missed periods, of all threads together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overruns: Option<u64>,
    /// Minimum number of cycles of each thread to pass; default 100000. With fewer, a broken limit on the maximum or on
    /// overruns still fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
    /// Limits for values, by item: `values = { "signal handler" = "4us" }`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Quantity>,
    /// Limits of the same kinds that only warn. A result that exceeds them passes with a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn: Option<Box<Self>>,
}

impl Require {
    /// These limits, completed by those of another requirement.
    #[must_use]
    pub fn before(&self, other: &Self) -> Self {
        let both = self
            .values
            .iter()
            .chain(other.values.iter().filter(|(item, _)| !self.values.contains_key(*item)));
        Self {
            max: self.max.or(other.max),
            jitter: self.jitter.or(other.jitter),
            p99999: self.p99999.or(other.p99999),
            p9999: self.p9999.or(other.p9999),
            p999: self.p999.or(other.p999),
            p99: self.p99.or(other.p99),
            tail: self.tail.or(other.tail),
            overruns: self.overruns.or(other.overruns),
            cycles: self.cycles.or(other.cycles),
            values: both.map(|(item, bound)| (item.clone(), *bound)).collect(),
            warn: self.warn.clone().or_else(|| other.warn.clone()),
        }
    }

    /// The bounds on one kind of result; `None` if it has no bounds.
    #[must_use]
    pub fn on(&self, yields: Yields) -> Option<Self> {
        let warn = self.warn.as_ref().and_then(|warn| warn.on(yields)).map(Box::new);
        let own = match yields {
            Yields::Latency => Self { values: BTreeMap::new(), warn, ..self.clone() },
            Yields::Values => Self { values: self.values.clone(), warn, ..Self::default() },
        };
        (own != Self::default()).then_some(own)
    }

    /// Its limits on quantiles: the name of each, and the part of all periods that are not above it.
    #[must_use]
    pub fn quantiles(&self) -> Vec<(&'static str, f64, Nanos)> {
        let all = [
            ("p99.999", 0.999_99, self.p99999),
            ("p99.99", 0.9999, self.p9999),
            ("p99.9", 0.999, self.p999),
            ("p99", 0.99, self.p99),
        ];
        all.into_iter().filter_map(|(name, part, limit)| Some((name, part, limit?))).collect()
    }

    /// Whether it bounds latencies.
    #[must_use]
    pub fn bounds_latency(&self) -> bool {
        let counted = self.tail.is_some() || self.overruns.is_some() || !self.quantiles().is_empty();
        self.max.is_some() || self.jitter.is_some() || counted
    }
}
