//! The interval of a quantile, and of the difference between two.
//!
//! A quantile is as uncertain as the share of periods above it. Its interval lies between the quantiles at
//! both ends of that share's interval (R. S. Woodruff, "Confidence intervals for medians and other position
//! measures", JASA 47, 1952). The share's standard error comes from its variation between slots of time, with
//! the effective number of slots. Its interval is a t interval of its log odds, with one degree of freedom
//! less than there are effective slots. A rare share therefore never becomes negative, and is not known
//! better from below.
//!
//! The interval of a difference combines those of both quantiles (MOVER: G. Y. Zou and A. Donner,
//! "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008). It is wider
//! by the width of the histogram's buckets, because values within a bucket cannot be told apart.
//!
//! Nothing is resampled, so no seed is needed.

use std::rc::Rc;

use statrs::distribution::{ContinuousCDF, StudentsT};
use tactus_model::number::{float, whole};

use super::interval::Interval;

/// A quantile of a run, and how well the run knows it.
#[derive(Clone, Debug)]
pub struct Quantile {
    /// For each value in ns how many are not above it.
    pub(super) up_to: Rc<[(u64, u64)]>,
    /// Which quantile, between 0 and 1.
    pub(super) part: f64,
    /// Its value, in ns.
    pub(super) value: u64,
    /// Standard error of the log odds of the share above it.
    pub(super) error: f64,
    /// The effective number of slots of time.
    pub(super) effective: f64,
}

impl Quantile {
    /// The value that `part` of all are not above, in ns.
    pub(super) fn value_at(up_to: &[(u64, u64)], part: f64) -> u64 {
        let total = up_to.last().map_or(0, |(_, count)| *count);
        let rank = whole((float(total) * part).ceil()).clamp(1, total.max(1));
        let at = up_to.partition_point(|(_, count)| *count < rank);
        up_to.get(at).map_or(0, |(value, _)| *value)
    }

    /// Where it lies but for this error, in ns. The upper end is infinite where it is beyond all that was measured.
    fn ends(&self, error: f64) -> (f64, f64) {
        let spread = t(error, self.effective - 1.0) * self.error;
        let odds = (self.part / (1.0 - self.part)).ln();
        let share = |odds: f64| 1.0 / (1.0 + (-odds).exp());
        let total = self.up_to.last().map_or(0, |(_, count)| *count);
        let (low, high) = (share(odds - spread), share(odds + spread));
        let above = float(total) * (1.0 - high);
        let high = if above < 0.5 { f64::INFINITY } else { float(Self::value_at(&self.up_to, high)) };
        (float(Self::value_at(&self.up_to, low)), high)
    }
}

/// The quantile of a t distribution that is exceeded on both sides together with this probability.
fn t(error: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(f64::INFINITY, |t| -t.inverse_cdf(error / 2.0))
}

/// The width of a histogram's bucket that ends with this value, in ns.
fn resolution(value: u64) -> f64 {
    float(1 << (u64::BITS - value.leading_zeros()).saturating_sub(11))
}

/// `with` minus `base`, in ns.
#[must_use]
pub fn difference(base: &Quantile, with: &Quantile) -> f64 {
    float(with.value) - float(base.value)
}

/// Whether neither of the two varies by more than one value of the histogram, but for this error.
#[must_use]
pub fn is_discrete(base: &Quantile, with: &Quantile, error: f64) -> bool {
    [base, with].into_iter().map(|of| of.ends(error)).all(|(low, high)| high <= low)
}

/// Where `with` minus `base` lies but for this error.
#[must_use]
pub fn difference_interval(base: &Quantile, with: &Quantile, error: f64) -> Interval {
    let ((base_low, base_high), (with_low, with_high)) = (base.ends(error), with.ends(error));
    let (without, with_it) = (float(base.value), float(with.value));
    let difference = with_it - without;
    let below = (with_it - with_low).hypot(base_high - without) + resolution(with.value);
    let above = (with_high - with_it).hypot(without - base_low) + resolution(base.value);
    Interval { low_ns: difference - below, high_ns: difference + above }
}

/// The smallest error at which the interval of the difference leaves out zero.
#[must_use]
pub fn difference_p(base: &Quantile, with: &Quantile) -> f64 {
    let leaves_out = |ln: f64| difference_interval(base, with, ln.exp()).excludes_zero();
    let (mut low, mut high) = (LEAST.ln(), 0.0);
    if !leaves_out(high) {
        return 1.0;
    }
    if leaves_out(low) {
        return LEAST;
    }
    // Forty halvings: to eleven digits.
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if leaves_out(middle) { high = middle } else { low = middle }
    }
    high.exp()
}

/// The smallest error that is reported.
const LEAST: f64 = 1e-12;
