//! The clock of an environment against that of the machine that runs the scenario.

use serde::{Deserialize, Serialize};

use crate::number::float;

/// The clock of an environment against that of the machine that runs the scenario.
///
/// Measured by questions and answers if `error_ns` is set, which is its error. Otherwise fitted to the arrival of
/// ticks, which arrive when they end, or later. Of all lines below all points (end, arrival), it is the closest one.
/// The remaining error is one-sided: true times are up to `late_ns` before the results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockFit {
    /// When the environment began to measure, CLOCK_MONOTONIC of this machine in ns.
    pub began_ns: u64,
    /// How much faster this machine's clock runs than the environment's, in parts per million.
    pub ppm: f64,
    /// How long they were compared, in ns.
    pub span_ns: u64,
    /// How late even the earliest ticks may have arrived, in ns; the same as `error_ns` where there is that.
    pub late_ns: u64,
    /// The error, if it was measured by questions: true times are at most this many ns before or after the results.
    /// Between questions the clocks are assumed to run evenly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_ns: Option<u64>,
}

impl ClockFit {
    /// A larger difference is not a clock error (crystals: 100 ppm): the clock runs unevenly, or is not the expected
    /// one.
    pub const MOST_PPM: f64 = 500.0;

    /// Whether moments can be carried over from one clock to the other. Over a short time a late tick or two look like
    /// a rate.
    #[must_use]
    pub fn is_even(&self) -> bool {
        let known = float(self.late_ns) / float(self.span_ns.max(1)) * 1e6;
        self.span_ns > 0 && self.ppm.abs() <= Self::MOST_PPM + known
    }

    /// When that was on this machine's clock, in ns; `at_ns` since the environment began to measure.
    #[must_use]
    pub fn outside(&self, at_ns: f64) -> f64 {
        float(self.began_ns) + at_ns * (1.0 + self.ppm / 1e6)
    }

    /// Time since the environment began to measure, in ns, at a moment of this machine's clock.
    #[must_use]
    pub fn inside(&self, outside_ns: f64) -> f64 {
        (outside_ns - float(self.began_ns)) / (1.0 + self.ppm / 1e6)
    }
}
