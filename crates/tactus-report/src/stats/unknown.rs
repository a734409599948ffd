//! Reasons for an unknown difference, in words.

use tactus_statistics::{ENOUGH, Unknown};

/// With fewer slots than this the correlation that is seen may be chance. Independent noise counts as fewer
/// than eight slots in 89 of 100 runs of ten slots, in 24 of 100 of twenty, and in none of sixty.
const SEEN: usize = 60;
/// The advice that tells more in the same time, however the noise is correlated.
const SLICES: &str = "use slices (`--interleave 1s`), or measure longer";

/// In two or three words.
#[must_use]
pub const fn word(why: Unknown) -> &'static str {
    match why {
        Unknown::TooShort { .. } => "not enough data",
        Unknown::TooCorrelated { slots, .. } if slots < SEEN => "not enough data",
        Unknown::TooCorrelated { .. } => "not enough independent data",
        Unknown::Drift => "the level drifts",
        Unknown::TooDiscrete => "too few distinct values",
        Unknown::TooFewRuns { .. } => "too few runs",
    }
}

/// The same, with the remedy.
#[must_use]
pub fn sentence(why: Unknown) -> String {
    let more = match why {
        Unknown::TooShort { slots } => format!("{slots} report intervals; {ENOUGH} are needed"),
        Unknown::TooCorrelated { slots, effective } => format!(
            "successive report intervals are alike: {slots} count as {effective:.1} independent ones; \
             {ENOUGH} are needed; {SLICES}"
        ),
        Unknown::Drift => format!("latencies of one run rise or fall over time; {SLICES}"),
        Unknown::TooDiscrete => "nothing varied".to_owned(),
        Unknown::TooFewRuns { runs, least } => format!("{runs} pairs of complete runs; {least} are needed"),
    };
    format!("{} ({more})", word(why))
}
