//! Judges the requirements on latencies.

use tactus_model::Nanos;
use tactus_model::bundle::Row;
use tactus_model::document::{LimitEntry, Side, Verdict};
use tactus_model::latency::Summary;
use tactus_model::number::float;
use tactus_model::plan::Require;

use super::complete::{CYCLES_FOR_A_VERDICT, bound, lacking, time_words, too_short};
use super::grounds::{Doubt, Found, asked, together};
use super::quantile::QuantileLimit;
use super::standing::{ground, too_few};
use super::tail::{is_broken_early, tail_limit};
use crate::units::{beside, count, exactly};

/// The verdict, or why there is no ground for one.
pub fn judge(row: &Row, require: &Require) -> Result<Verdict, Doubt> {
    let least = require.cycles.unwrap_or(CYCLES_FOR_A_VERDICT);
    let summary = ground(&row.result, require, least, |summary| already_broken(row, summary, require))?;
    let few = too_few(&row.result, least);
    if !require.bounds_latency() && !require.warn.as_ref().is_some_and(|warn| warn.bounds_latency()) {
        return Err("the requirement contains no limit".into());
    }
    let counts_overruns = |of: &Require| of.overruns.is_some();
    let counted = counts_overruns(require) || require.warn.as_deref().is_some_and(counts_overruns);
    if counted && !row.result.measurement.has_periods() {
        return Err("the measurement has no periods that could be missed: no overruns were counted".into());
    }
    Ok(judged(row, require, summary, few.as_deref()))
}

/// One large value needs no second one, and missed periods do not become fewer: they are broken however little was measured.
fn already_broken(row: &Row, summary: &Summary, require: &Require) -> bool {
    let max = summary.max_ns.zip(require.max).is_some_and(|(max, Nanos(limit))| max > limit);
    let jitter = jitter_of(summary).zip(require.jitter).is_some_and(|(jitter, Nanos(limit))| jitter > limit);
    let tail = require.tail.is_some_and(|limit| is_broken_early(&row.result, limit));
    max || jitter || tail || require.overruns.is_some_and(|limit| summary.missed() > limit)
}

/// The largest latency less the smallest, over all threads, in ns.
fn jitter_of(summary: &Summary) -> Option<u64> {
    Some(summary.max_ns?.saturating_sub(summary.min_ns?))
}

/// `few`: why nothing but what is broken for good may be said.
fn judged(row: &Row, require: &Require, summary: &Summary, few: Option<&str>) -> Verdict {
    let lacking = lacking(&row.result);
    let judge = Limits { row, summary, lacking: lacking.as_deref() };
    let soft = require.warn.iter().flat_map(|warn| judge.of(warn, true));
    let mut found: Vec<Found> = judge.of(require, false).into_iter().chain(soft).collect();
    if let Some(few) = few {
        found.iter_mut().filter(|one| !one.for_good).for_each(|one| {
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

/// The limits of a requirement, compared with a row.
struct Limits<'a> {
    row: &'a Row,
    summary: &'a Summary,
    /// Why data is missing.
    lacking: Option<&'a str>,
}

impl Limits<'_> {
    fn of(&self, require: &Require, warns: bool) -> Vec<Found> {
        let mut found = Vec::new();
        if let Some(Nanos(limit)) = require.max {
            found.push(Self::time("max", "maximum", limit, self.summary.max_ns, warns));
        }
        if let Some(Nanos(limit)) = require.jitter {
            found.push(Self::time("jitter", "jitter", limit, jitter_of(self.summary), warns));
        }
        for (name, part, limit) in require.quantiles() {
            found.push(QuantileLimit { name, part, limit, warns }.of(self.row, self.lacking));
        }
        if let Some(limit) = require.tail {
            found.push(tail_limit(self.row, limit, warns));
        }
        if let Some(limit) = require.overruns {
            found.push(self.overruns(limit, warns));
        }
        found
    }

    /// A limit on the maximum: missing data cannot lower it.
    fn time(quantity: &str, word: &str, limit: u64, own: Option<u64>, warns: bool) -> Found {
        let own = own.unwrap_or(u64::MAX);
        let (side, relation) =
            if own <= limit { (Side::Kept, "is within") } else { (Side::Broken, "exceeds") };
        let (limit, own) = (float(limit), float(own));
        let said =
            format!("{word} {} {relation} the {} {}", beside(own, limit), asked(warns), exactly(limit));
        let (quantity, unit) = (quantity.to_owned(), "ns".to_owned());
        Found::settled(
            LimitEntry { quantity, limit, low: own, high: own, unit, warns, side, reason: String::new() },
            said,
        )
    }

    /// Missing data cannot lower the number of missed periods.
    fn overruns(&self, limit: u64, warns: bool) -> Found {
        let own = self.summary.missed();
        let (side, relation) = match own > limit {
            true => (Side::Broken, "are more than"),
            false => (Side::Kept, "are within"),
        };
        let said = format!("{} overruns {relation} the {} {}", count(own), asked(warns), count(limit));
        let (limit, own) = (float(limit), float(own));
        let quantity = "overruns".to_owned();
        let entry = LimitEntry {
            quantity,
            limit,
            low: own,
            high: own,
            unit: String::new(),
            warns,
            side,
            reason: String::new(),
        };
        Found::settled(entry, said)
    }
}
