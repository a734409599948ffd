//! What a requirement says about latencies.

use hdrhistogram::Histogram;
use tactus_model::Nanos;
use tactus_model::bundle::{Row, RowResult};
use tactus_model::document::Verdict;
use tactus_model::latency::Summary;
use tactus_model::number::{float, whole};
use tactus_model::plan::Require;

use super::complete::{bound, lacking, too_short};
use super::control::{control, unproven};
use super::grounds::{Found, doubt, evidence, measured, together};
use super::judged::{Quantity, is_corrected};
use crate::units::{count, duration, latency};

/// The least number of cycles of each thread for a verdict when the plan does not say.
pub const CYCLES_FOR_A_VERDICT: u64 = 100_000;

/// The verdict, or why there is no ground for one.
pub fn judge(row: &Row, require: &Require) -> Result<Verdict, String> {
    let least = require.cycles.unwrap_or(CYCLES_FOR_A_VERDICT);
    let summary = ground(&row.result, least, |summary| already_broken(summary, require))?;
    if require.max.is_none() && require.p999.is_none() && require.p99.is_none() {
        return Err("the requirement names no limit".into());
    }
    Ok(judged(row, require, summary))
}

/// What may be said of the largest latency of a row, whatever the limit is: an error where there is no ground for
/// anything, and why a limit that is kept is not shown to be.
///
/// # Errors
/// Why nothing may be said.
pub fn standing(result: &RowResult) -> Result<Option<String>, String> {
    ground(result, CYCLES_FOR_A_VERDICT, |_| String::new())?;
    let arrived = lacking(result).or_else(|| too_short(result, &Require::default()));
    Ok(doubt(result, arrived))
}

/// The figures to judge; `already` is what they say even where they are too few.
fn ground(result: &RowResult, least: u64, already: impl Fn(&Summary) -> String) -> Result<&Summary, String> {
    measured(result)?;
    let summary = result.all().filter(|all| all.cycles > 0).ok_or("nothing was measured")?;
    evidence(result)?;
    if control(result).is_none() {
        return Err("instrument not proven here: no control was injected".into());
    }
    if let Some(why) = unproven(result) {
        return Err(format!("instrument not proven here: {why}"));
    }
    let fewest = result.series().iter().map(|series| series.summary.cycles).min().unwrap_or(0);
    if fewest < least {
        return Err(format!(
            "{} cycles of a thread are too few for a verdict, which needs {}{}",
            count(fewest),
            count(least),
            already(summary),
        ));
    }
    Ok(summary)
}

/// One large value needs no second one: said even where there is no ground for a verdict.
fn already_broken(summary: &Summary, require: &Require) -> String {
    match (summary.max_ns, require.max) {
        (Some(max), Some(Nanos(limit))) if max > limit => {
            format!("; its maximum {} is already above {}", latency(float(max)), latency(float(limit)))
        }
        _ => String::new(),
    }
}

/// The range in which a figure certainly lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    low: u64,
    high: u64,
}

fn judged(row: &Row, require: &Require, summary: &Summary) -> Verdict {
    let (min, max) = (summary.min_ns.unwrap_or(0), summary.max_ns.unwrap_or(u64::MAX));
    let exact = Bounds { low: max, high: max };
    let mut limits = vec![(Quantity::Maximum, require.max, exact)];
    if require.p999.is_some() || require.p99.is_some() {
        let histogram = row.corrected();
        let quantile =
            |part: f64| quantile_bounds(&histogram, summary.cycles + summary.overruns, part, min, max);
        limits.push((Quantity::P999, require.p999, quantile(0.999)));
        limits.push((Quantity::P99, require.p99, quantile(0.99)));
    }
    let lacking = lacking(&row.result);
    let mut found = Found::default();
    for (quantity, limit, bounds) in limits {
        let Some(Nanos(limit)) = limit else { continue };
        let said = latency(float(limit));
        let name = quantity.said(is_corrected(summary));
        if bounds.high <= limit {
            found.kept.push(format!("{name} {} is within the required {said}", latency(float(bounds.high))));
        } else if let (true, Some(lacking)) = (bounds.low > limit && quantity != Quantity::Maximum, &lacking)
        {
            // What did not arrive may have been better; a maximum needs no second value.
            found.open.push(format!(
                "{name} {} exceeds the required {said} in what arrived, but {lacking}",
                latency(float(bounds.low))
            ));
        } else if bounds.low > limit {
            found.broken.push(format!("{name} {} exceeds the required {said}", latency(float(bounds.low))));
        } else {
            found
                .open
                .push(format!("samples were lost, and {name} may lie on either side of the required {said}"));
        }
    }
    let measured = duration(row.result.measured_ns);
    let base = format!(", over {} cycles in {measured}", count(summary.cycles));
    let doubt = lacking.or_else(|| too_short(&row.result, require));
    let bound = if require.max.is_some() { bound(row.result.measured_ns) } else { String::new() };
    together(&row.result, &found, &base, doubt, &bound)
}

/// Where a quantile of `total` periods lies when some of them are missing in `histogram`: they may
/// all have been the smallest, or all the largest.
fn quantile_bounds(histogram: &Histogram<u64>, total: u64, part: f64, min: u64, max: u64) -> Bounds {
    let rank = whole((float(total) * part).ceil()).max(1);
    let lost = total.saturating_sub(histogram.len());
    let at = |rank: u64| {
        let mut seen = 0;
        histogram.iter_recorded().find_map(|bucket| {
            seen += bucket.count_at_value();
            (seen >= rank).then(|| bucket.value_iterated_to().min(max))
        })
    };
    Bounds {
        low: if rank > lost { at(rank - lost).unwrap_or(max) } else { min },
        high: at(rank).unwrap_or(max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_samples_widen_a_quantile_and_nothing_else_does() {
        let mut histogram = tactus_model::latency::histogram();
        for value in 1..=1_000 {
            histogram.saturating_record(value);
        }
        assert_eq!(quantile_bounds(&histogram, 1_000, 0.99, 1, 1_000), Bounds { low: 990, high: 990 });
        // Five lost: they may have been the smallest (then 990 is the 985th that is left) or the largest.
        assert_eq!(quantile_bounds(&histogram, 1_005, 0.99, 1, 1_000), Bounds { low: 990, high: 995 });
        // More lost than the quantile leaves room for: only the exact maximum bounds it.
        assert_eq!(quantile_bounds(&histogram, 1_100, 0.99, 1, 5_000).high, 5_000);
        let empty = tactus_model::latency::histogram();
        assert_eq!(quantile_bounds(&empty, 10, 0.5, 3, 7), Bounds { low: 3, high: 7 });
    }
}
