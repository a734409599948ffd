//! The data of a figure that answers to pointer and keys: columns, and how their numbers are written.

use serde::Serialize;

/// Digits of a value: more than a screen shows only cost room.
const DIGITS: i32 = 5;

/// The data that a script draws over the still figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// The axis across.
    pub x: PlotAxis,
    /// The upright axis.
    pub y: PlotAxis,
    /// Places on the axis across, rising.
    pub at: Vec<f64>,
    /// The lines.
    pub series: Vec<PlotSeries>,
    /// Lines for required or published values.
    pub marks: Vec<PlotMark>,
    /// Two lines, by their number, with the area between them filled: the upper one first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub band: Option<[usize; 2]>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotAxis {
    /// Its name.
    pub label: String,
    /// How its numbers are written.
    pub kind: PlotKind,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// How numbers of an axis are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlotKind {
    /// Microseconds.
    Latency,
    /// A share of all: one in N.
    Part,
    /// A whole number.
    Count,
    /// Bytes.
    Bytes,
    /// A percentile, given as N: one in N is above it.
    Percentile,
    /// Seconds.
    Time,
    /// As it is.
    Plain,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlotSeries {
    /// Its name.
    pub name: String,
    /// Number of its colour.
    pub colour: usize,
    /// Whether it is dashed.
    pub dash: bool,
    /// Whether it holds from one place to the next, and is filled: a histogram.
    pub steps: bool,
    /// Whether its points are shown, and joined over places where it has none.
    pub points: bool,
    /// Whether its points stand alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dots: bool,
    /// Its values; `None` for a gap.
    pub values: Vec<Option<f64>>,
}

/// A line across the figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotMark {
    /// Whether it stands upright, at a place on the axis across.
    pub upright: bool,
    /// Where.
    pub at: f64,
    /// Its text.
    pub text: String,
}

/// Rounds to the digits that a screen shows.
#[must_use]
pub fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let places = DIGITS - 1 - float_floor(value.abs().log10());
    let scale = 10_f64.powi(places.clamp(-300, 300));
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}

fn float_floor(value: f64) -> i32 {
    let size = i32::try_from(tactus_model::number::whole(value.floor().abs())).unwrap_or(0);
    if value < 0.0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "rounded alike")]
    fn values_keep_five_digits() {
        let shorter = [0.0, 123_456.7, 0.001_234_567, 9.999_999, 1e-9, -2.5].map(short);
        assert_eq!(shorter, [0.0, 123_460.0, 0.001_234_6, 10.0, 1e-9, -2.5]);
    }
}
