//! What a requirement says about latencies.

use hdrhistogram::Histogram;
use tactus_model::Nanos;
use tactus_model::bundle::Row;
use tactus_model::document::{LimitEntry, Side, Verdict};
use tactus_model::latency::Summary;
use tactus_model::number::{float, whole};
use tactus_model::plan::Require;

use super::complete::{bound, lacking, time_words, too_short};
use super::grounds::{Doubt, Found, asked, together};
use super::standing::{CYCLES_FOR_A_VERDICT, ground, too_few};
use super::tail::tail_limit;
use crate::units::{count, latency};

/// The verdict, or why there is no ground for one.
pub fn judge(row: &Row, require: &Require) -> Result<Verdict, Doubt> {
    let least = require.cycles.unwrap_or(CYCLES_FOR_A_VERDICT);
    let summary = ground(&row.result, require, least, |summary| already_broken(summary, require))?;
    let few = too_few(&row.result, least);
    if !require.bounds_latency() && !require.warn.as_ref().is_some_and(|warn| warn.bounds_latency()) {
        return Err("the requirement names no limit".into());
    }
    let counts_overruns = |of: &Require| of.overruns.is_some();
    let counted = counts_overruns(require) || require.warn.as_deref().is_some_and(counts_overruns);
    if counted && !row.result.measurement.has_periods() {
        return Err(
            "what is measured has no periods, and none can be missed: no overruns were counted".into()
        );
    }
    Ok(judged(row, require, summary, few.as_deref()))
}

/// One large value needs no second one, and missed periods do not become fewer: they are broken however little was measured.
fn already_broken(summary: &Summary, require: &Require) -> bool {
    let max = summary.max_ns.zip(require.max).is_some_and(|(max, Nanos(limit))| max > limit);
    max || require.overruns.is_some_and(|limit| summary.missed() > limit)
}

/// The range in which a figure certainly lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    low: u64,
    high: u64,
}

/// `few`: why nothing but what is broken for good may be said.
fn judged(row: &Row, require: &Require, summary: &Summary, few: Option<&str>) -> Verdict {
    let lacking = lacking(&row.result);
    let judge = Limits { row, summary, lacking: lacking.as_deref() };
    let soft = require.warn.iter().flat_map(|warn| judge.of(warn, true));
    let mut found: Vec<Found> = judge.of(require, false).into_iter().chain(soft).collect();
    if let Some(few) = few {
        found.iter_mut().filter(|one| !for_good(&one.entry)).for_each(|one| {
            one.entry.side = Side::Open;
            one.said = format!("{}, but {few}", one.said);
        });
    }
    let measured = time_words(&row.result);
    let base = format!(", over {} cycles in {measured}", count(summary.cycles));
    let doubt = lacking.map(Doubt::from).or_else(|| too_short(&row.result, require));
    let bound = if require.max.is_some() { bound(&row.result) } else { String::new() };
    together(&row.result, found, &base, doubt, &bound)
}

/// Whether a limit is broken, and would be however long it were measured.
fn for_good(entry: &LimitEntry) -> bool {
    entry.side == Side::Broken && matches!(entry.quantity.as_str(), "max" | "overruns")
}

/// The limits of a requirement, held against a row.
struct Limits<'a> {
    row: &'a Row,
    summary: &'a Summary,
    /// What did not arrive.
    lacking: Option<&'a str>,
}

impl Limits<'_> {
    fn of(&self, require: &Require, warns: bool) -> Vec<Found> {
        let Summary { min_ns, max_ns, cycles, .. } = self.summary;
        let overruns = self.summary.missed();
        let (min, max) = (min_ns.unwrap_or(0), max_ns.unwrap_or(u64::MAX));
        let mut found = Vec::new();
        if let Some(Nanos(limit)) = require.max {
            let exact = Bounds { low: max, high: max };
            found.push(self.found("max", "maximum", limit, exact, warns, true));
        }
        let quantiles = require.quantiles();
        if !quantiles.is_empty() {
            let histogram = self.row.corrected();
            for (name, part, Nanos(limit)) in quantiles {
                let bounds = quantile_bounds(&histogram, cycles + overruns, part, min, max);
                let said = if overruns > 0 { format!("corrected {name}") } else { name.to_owned() };
                found.push(self.found(name, &said, limit, bounds, warns, false));
            }
        }
        if let Some(limit) = require.tail {
            found.push(tail_limit(self.row, limit, warns));
        }
        if let Some(limit) = require.overruns {
            found.push(self.overruns(limit, warns));
        }
        found
    }

    /// `settled`: what did not arrive cannot make it better.
    fn found(&self, name: &str, said: &str, limit: u64, bounds: Bounds, warns: bool, settled: bool) -> Found {
        let asked = format!("the {} {}", asked(warns), latency(float(limit)));
        let (side, said) = if bounds.high <= limit {
            (Side::Kept, format!("{said} {} is within {asked}", latency(float(bounds.high))))
        } else if let (true, false, Some(lacking)) = (bounds.low > limit, settled, self.lacking) {
            // What did not arrive may have been better; a maximum needs no second value.
            let low = latency(float(bounds.low));
            (Side::Open, format!("{said} {low} exceeds {asked} in what arrived, but {lacking}"))
        } else if bounds.low > limit {
            (Side::Broken, format!("{said} {} exceeds {asked}", latency(float(bounds.low))))
        } else {
            (Side::Open, format!("samples were lost, and {said} may lie on either side of {asked}"))
        };
        let entry = LimitEntry {
            quantity: name.to_owned(),
            limit: float(limit),
            low: float(bounds.low),
            high: float(bounds.high),
            unit: "ns".to_owned(),
            warns,
            side,
        };
        Found::new(entry, said)
    }

    /// More never become fewer by what did not arrive.
    fn overruns(&self, limit: u64, warns: bool) -> Found {
        let own = self.summary.missed();
        let (side, relation) = match own > limit {
            true => (Side::Broken, "are more than"),
            false => (Side::Kept, "are within"),
        };
        let said = format!("{} overruns {relation} the {} {}", count(own), asked(warns), count(limit));
        let (limit, own) = (float(limit), float(own));
        let quantity = "overruns".to_owned();
        let entry = LimitEntry { quantity, limit, low: own, high: own, unit: String::new(), warns, side };
        Found::new(entry, said)
    }
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
