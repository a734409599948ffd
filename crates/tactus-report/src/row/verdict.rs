//! The verdict on a row.

use tactus_model::bundle::{Row, RowResult};
use tactus_model::document::{Outcome, Verdict};
use tactus_model::number::float;
use tactus_model::outcome::Yields;
use tactus_model::plan::Require;

use super::summary::figures;
use super::{latency_verdict, value_verdict};
use crate::units::{count, duration, latency};

/// The verdict on a row by the plan's requirement; `None` if the plan requires nothing.
///
/// Emulated and imported evidence is inconclusive, and so is a row that ended early without breaking a limit.
/// Latencies need a proven instrument and enough cycles. A quantile is open if lost samples could move it
/// across its limit, and a value if its interval includes the bound.
#[must_use]
pub fn verdict(row: &Row) -> Option<Verdict> {
    let require = row.result.require.as_ref()?;
    let judged = match row.result.outcome.yields() {
        Yields::Latency => latency_verdict::judge(row, require),
        Yields::Values => value_verdict::judge(&row.result, require),
    };
    let mut verdict = judged.unwrap_or_else(|doubt| Verdict {
        outcome: Outcome::Inconclusive,
        reason: doubt.said,
        longer_ns: doubt.longer_ns,
        limits: Vec::new(),
    });
    if matches!(verdict.outcome, Outcome::Pass | Outcome::Warn)
        && let Some(missed) = missed(&row.result)
    {
        verdict.reason += &format!("; {missed}");
    }
    if let Some(longer_ns) = verdict.longer_ns {
        verdict.reason += &enough(longer_ns);
    }
    Some(verdict)
}

/// How the reason of a verdict ends that time would decide.
#[must_use]
pub fn enough(longer_ns: u64) -> String {
    format!("; {} more of the same would be enough", duration(longer_ns))
}

/// The periods that a row missed although no limit is set on their number, in words; `None` without any.
#[must_use]
pub fn missed(result: &RowResult) -> Option<String> {
    let overruns = figures(result)?.missed();
    let counts = |require: &Require| require.overruns.is_some();
    let judged =
        result.require.as_ref().is_some_and(|own| counts(own) || own.warn.as_deref().is_some_and(counts));
    (overruns > 0 && !judged).then(|| missed_words(overruns, result.interval_ns))
}

/// How many periods were missed, in words; `interval_ns` is 0 if it is unknown or not the same for all.
#[must_use]
pub fn missed_words(overruns: u64, interval_ns: u64) -> String {
    let of = if interval_ns > 0 { format!(" of {}", latency(float(interval_ns))) } else { String::new() };
    let (periods, were) = if overruns == 1 { ("period", "was") } else { ("periods", "were") };
    format!("{} {periods}{of} {were} missed, which no limit forbids (`--overruns 0` does)", count(overruns))
}
