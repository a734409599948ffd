//! Figures as they stand on the screen.

use std::time::Duration;

use tactus_model::number::float;

/// A latency in us, with digits that distinguish small ones; a dash for `None`, never 0.
#[must_use]
pub fn micro(ns: Option<u64>) -> String {
    match ns {
        None => "-".into(),
        Some(ns @ ..10_000) => format!("{:.1}", float(ns) / 1e3),
        Some(ns) => format!("{:.0}", float(ns) / 1e3),
    }
}

/// A length of time as people say it.
#[must_use]
pub fn human(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A number with four significant digits, or with all digits before the point. A huge one has an exponent,
/// not a page of digits.
#[must_use]
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        1e15.. => return format!("{value:.3e}"),
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}
