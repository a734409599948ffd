//! The results of a row, and its end.
//!
//! A result has one of two kinds: latencies of measuring threads, or named values. Code that shows, judges or keeps
//! results checks the kind, never the name of the measurement.

pub mod breakdown;
pub mod buckets;
mod card;
pub mod clock;
pub mod control;
mod end;
pub mod evidence;
pub mod exits;
pub mod histograms;
pub mod latency;
mod median;
mod point;
mod possible;
pub mod restart;
pub mod series;
pub mod ticks;
pub mod trace;
mod unit;
mod value;
pub mod windows;
pub mod zigzag;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use card::CardCounts;
pub use end::{Ending, RowEnd, RowStatus, RunStatus};
pub use median::{Median, median};
pub use point::Point;
pub use possible::impossible;
pub use restart::Restart;
pub use unit::{Better, Quantity, QuantityError, Unit};
pub use value::{Repeats, ValueResult, in_order, value_of, wholes};

use crate::latency::Summary;
use crate::series::{Outlier, SeriesKey, ThreadCounters};

/// Which kind of result a measurement yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// Latencies, by threads on lanes.
    Latency,
    /// Named values, by a worker process.
    Values,
}

/// The results of a row.
///
/// In `result.json` latencies are `series` and `all`; a row of values has `values` beside them, and they are empty.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of it for each row, and nearly all measure latencies"
)]
pub enum Outcome {
    /// Latencies.
    Latency(LatencyOutcome),
    /// Values, in the order of the measurement's items.
    Values(Vec<ValueResult>),
}

/// The latencies of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyOutcome {
    /// The results of each thread.
    pub series: Vec<SeriesResult>,
    /// All series together; `None`: nothing was measured.
    pub all: Option<Summary>,
}

/// One series of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesResult {
    /// The key.
    #[serde(flatten)]
    pub key: SeriesKey,
    /// Its figures.
    pub summary: Summary,
    /// The counters of its thread.
    pub counters: ThreadCounters,
    /// Its largest values, largest first.
    pub outliers: Vec<Outlier>,
    /// Whether its last counts arrived: only then are its figures complete.
    #[serde(default)]
    pub whole: bool,
}

impl Default for Outcome {
    fn default() -> Self {
        Self::Latency(LatencyOutcome::default())
    }
}

impl Outcome {
    /// Nothing yet, of this kind.
    #[must_use]
    pub fn empty(yields: Yields) -> Self {
        match yields {
            Yields::Latency => Self::default(),
            Yields::Values => Self::Values(Vec::new()),
        }
    }

    /// Its kind.
    #[must_use]
    pub const fn yields(&self) -> Yields {
        match self {
            Self::Latency(_) => Yields::Latency,
            Self::Values(_) => Yields::Values,
        }
    }

    /// Whether nothing was measured.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        match self {
            Self::Latency(latency) => latency.all.is_none(),
            Self::Values(values) => values.is_empty(),
        }
    }

    /// The results of each thread; empty for values.
    #[must_use]
    pub fn series(&self) -> &[SeriesResult] {
        match self {
            Self::Latency(latency) => &latency.series,
            Self::Values(_) => &[],
        }
    }

    /// All series together; none where nothing was measured, and for values.
    #[must_use]
    pub const fn all(&self) -> Option<&Summary> {
        match self {
            Self::Latency(latency) => latency.all.as_ref(),
            Self::Values(_) => None,
        }
    }

    /// The latencies, to be changed; none for values.
    pub const fn latency_mut(&mut self) -> Option<&mut LatencyOutcome> {
        match self {
            Self::Latency(latency) => Some(latency),
            Self::Values(_) => None,
        }
    }

    /// The values; nothing for latencies.
    #[must_use]
    pub fn values(&self) -> &[ValueResult] {
        match self {
            Self::Latency(_) => &[],
            Self::Values(values) => values,
        }
    }
}

/// Takes in a value that is measured on: the latest word on an item, or on a point of its curve, counts, and they stay in
/// their order.
pub fn take_value(values: &mut Vec<ValueResult>, value: ValueResult) {
    match values.iter_mut().find(|known| known.is_of(&value)) {
        Some(known) => *known = value,
        None => values.push(value),
    }
}

#[derive(Serialize)]
struct Written<'a> {
    series: &'a [SeriesResult],
    all: Option<&'a Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<&'a [ValueResult]>,
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    series: Vec<SeriesResult>,
    #[serde(default)]
    all: Option<Summary>,
    #[serde(default)]
    values: Option<Vec<ValueResult>>,
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = matches!(self, Self::Values(_)).then(|| self.values());
        Written { series: self.series(), all: self.all(), values }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Read { series, all, values } = Read::deserialize(deserializer)?;
        Ok(values.map_or(Self::Latency(LatencyOutcome { series, all }), Self::Values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(item: &str, samples: u64) -> ValueResult {
        let mut repeats =
            Repeats { kept: vec![1.0; usize::try_from(samples).unwrap()], dropped: 2, batch: 10 };
        let (unit, better) = (Unit::Us, Better::Lower);
        let known = ValueResult::of(&crate::catalogue::measure::os::SYSTEM_CALL, &mut repeats).unwrap();
        ValueResult { item: item.into(), unit, better, ..known }
    }

    #[test]
    fn latencies_are_written_as_before_and_values_beside_empty_ones() {
        let empty = serde_json::to_string(&Outcome::default()).unwrap();
        assert_eq!(empty, r#"{"series":[],"all":null}"#);
        let values = Outcome::Values(vec![value("a", 7)]);
        let text = serde_json::to_string(&values).unwrap();
        assert!(text.starts_with(r#"{"series":[],"all":null,"values":[{"item":"a","unit":"us","#), "{text}");
        for outcome in [Outcome::default(), values, Outcome::empty(Yields::Values)] {
            let text = serde_json::to_string(&outcome).unwrap();
            assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome);
        }
    }

    #[test]
    fn the_latest_word_on_an_item_counts_and_the_order_stays() {
        let mut values = Vec::new();
        for one in [value("a", 7), value("b", 7), value("a", 9)] {
            take_value(&mut values, one);
        }
        let said: Vec<_> = values.iter().map(|value| (value.item.as_str(), value.samples)).collect();
        assert_eq!(said, [("a", 9), ("b", 7)]);
    }

    #[test]
    fn the_points_of_a_curve_are_kept_apart_and_what_has_none_is_written_as_before() {
        let at = |bytes, samples| ValueResult { at: Some(Point::Bytes(bytes)), ..value("a", samples) };
        let mut values = Vec::new();
        for one in [at(1024, 7), at(2048, 7), value("a", 7), at(1024, 9)] {
            take_value(&mut values, one);
        }
        let said: Vec<_> = values.iter().map(|value| (value.name(), value.samples)).collect();
        assert_eq!(said, [("a, 1KiB".into(), 9), ("a, 2KiB".into(), 7), ("a".into(), 7)]);
        let texts: Vec<String> = values.iter().map(|value| serde_json::to_string(value).unwrap()).collect();
        assert!(texts[0].starts_with(r#"{"item":"a","at":{"bytes":1024},"unit":"us","#), "{}", texts[0]);
        assert!(!texts[2].contains("\"at\""), "{}", texts[2]);
        for (text, value) in texts.iter().zip(&values) {
            assert_eq!(serde_json::from_str::<ValueResult>(text).unwrap(), *value);
        }
    }
}
