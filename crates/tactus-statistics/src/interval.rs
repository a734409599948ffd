//! A range in which a difference lies.

/// A range, in ns. An end may be infinite: nothing is known there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
}

impl Interval {
    /// Whether it excludes that there is no difference.
    #[must_use]
    pub fn excludes_zero(self) -> bool {
        self.low_ns > 0.0 || self.high_ns < 0.0
    }

    /// The largest difference that it allows, without its sign.
    #[must_use]
    pub fn largest(self) -> f64 {
        self.low_ns.abs().max(self.high_ns.abs())
    }

    /// Whether it is a single value.
    #[must_use]
    pub fn is_point(self) -> bool {
        self.high_ns <= self.low_ns
    }
}
