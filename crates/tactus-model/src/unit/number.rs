//! The few lossy conversions of the program, named and in one place.

/// A count or a time as a float, for means, ratios and plots (exact below 2^53).
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "statistics and plots; counts stay far below 2^53")]
pub fn float(value: u64) -> f64 {
    value as f64
}

/// The nearest whole number that is not negative; not-a-number gives 0.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, which is what is meant"
)]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// `part / whole`, or 0 when there is nothing to divide by.
#[must_use]
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}
