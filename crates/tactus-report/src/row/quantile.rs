//! Judges a limit on a quantile of a row: each of its series by itself, and the worst one decides.
//!
//! The limit is judged on the periods to be expected next, not on the quantile of the measured ones: see
//! [`Late`].

use std::cmp::Ordering;
use std::collections::BTreeMap;

use tactus_model::Nanos;
use tactus_model::buckets::Packed;
use tactus_model::bundle::{Row, RowResult};
use tactus_model::document::{LimitEntry, Side};
use tactus_model::number::{float, whole};
use tactus_model::outcome::SeriesResult;
use tactus_statistics::Late;

use super::grounds::{Found, asked};
use crate::units::{beside, count, duration, exactly, latency_up, number};

/// An unseen stall is taken to be as long as that, in ns: a time slice of a scheduler, or a tick of a slow kernel.
const UNSEEN_NS: u64 = 10_000_000;
/// Stalls that may still be expected, with 95 %, if none came: 0.95 = 1 - exp(-3).
const NONE_CAME: f64 = 3.0;
/// Largest factor between the run that is asked for and the run that was made.
const LONGEST: f64 = 1_000.0;

/// How long a limit on the quantile `part` must be kept at least, in ns, to be shown.
pub fn least_ns(part: f64, interval_ns: u64) -> u64 {
    whole((NONE_CAME * float(UNSEEN_NS.max(interval_ns)) / (1.0 - part)).round())
}

/// A limit on a quantile.
#[derive(Clone, Copy)]
pub struct QuantileLimit {
    /// `p99.9`.
    pub name: &'static str,
    /// The part of all periods that must not be above the limit.
    pub part: f64,
    /// The limit.
    pub limit: Nanos,
    /// Whether it only warns.
    pub warns: bool,
}

impl QuantileLimit {
    /// The finding for a row; `lacking` says which data is missing.
    pub fn of(self, row: &Row, lacking: Option<&str>) -> Found {
        let all = row.result.series();
        let judged: Vec<Judged<'_>> =
            all.iter().map(|series| Judged::new(self, row, series, lacking.is_some())).collect();
        match judged.iter().max_by(|one, other| one.badness(other)) {
            Some(worst) => worst.found(self, &row.result, lacking),
            None => {
                let entry = self.entry(0.0, f64::MAX, Side::Open);
                Found::new(entry, format!("the {} of every thread is unknown", self.name))
            }
        }
    }

    fn entry(self, low: f64, high: f64, side: Side) -> LimitEntry {
        LimitEntry {
            quantity: self.name.to_owned(),
            limit: float(self.limit.0),
            low,
            high,
            unit: "ns".to_owned(),
            warns: self.warns,
            side,
            reason: String::new(),
        }
    }
}

/// A step in the distribution of a series: one value, and the periods above it.
#[derive(Clone, Copy)]
struct Step {
    /// The largest value of the bucket, in ns.
    value: u64,
    /// How many values there are up to this one.
    up_to: u64,
    /// Those above it.
    late: Late,
}

/// The values of a series with those of its missed periods, rising, and how many of `total` are missing. The
/// missing ones count as one stall above all others.
fn steps(row: &Row, series: &SeriesResult, total: u64) -> (Vec<Step>, u64) {
    let tag = row.result.tag(&series.key);
    let max = series.summary.max_ns.unwrap_or(u64::MAX);
    let parts = [
        (0, &row.histograms.series),
        (0, &row.missed.series),
        (1, &row.histograms.squares),
        (2, &row.missed.squares),
    ];
    let mut buckets: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    for (which, all) in parts {
        for (value, counted) in all.get(&tag).into_iter().flat_map(Packed::buckets) {
            let own = &mut buckets.entry(value.min(max)).or_default()[which];
            *own = own.saturating_add(counted);
        }
    }
    let counted = buckets.values().fold(0_u64, |sum, [own, ..]| sum.saturating_add(*own));
    let lost = total.saturating_sub(counted);
    let (mut above, mut squares) = (0_u64, [0.0, 0.0]);
    let mut steps: Vec<Step> = Vec::with_capacity(buckets.len());
    for (value, [own, measured, missed]) in buckets.into_iter().rev() {
        let periods = float(above) + float(lost);
        // Measured and missed periods have separate squares. Those of the sum are at most these (Minkowski),
        // and equal if both occur together. If they are unknown, all of it is one stall.
        let together = (squares.map(f64::sqrt).iter().sum::<f64>() + float(lost)).powi(2);
        let late = Late { periods, squares: if together < periods { periods * periods } else { together } };
        steps.push(Step { value, up_to: counted.saturating_sub(above), late });
        above = above.saturating_add(own);
        squares = [squares[0] + float(measured), squares[1] + float(missed)];
    }
    steps.reverse();
    // The maximum is exact: nothing is above it, whatever was lost.
    if let Some(value) = series.summary.max_ns {
        steps.retain(|step| step.value < value);
        steps.push(Step { value, up_to: counted, late: Late::default() });
    }
    (steps, lost)
}

/// The judgement of one series by a limit on a quantile.
struct Judged<'a> {
    series: &'a SeriesResult,
    /// The bounds of the measured quantile: it lies between them.
    low: u64,
    high: u64,
    /// The least value of which it is shown that no more periods than allowed are above it.
    bound: Option<u64>,
    /// The periods above the limit.
    late: Late,
    /// How many periods there were, and how many of them may be above the limit.
    total: u64,
    allowed: f64,
    /// How many periods an unseen stall is taken to have.
    unseen: f64,
    side: Side,
    /// How many periods did not arrive.
    lost: u64,
}

impl<'a> Judged<'a> {
    fn new(limit: QuantileLimit, row: &Row, series: &'a SeriesResult, lacks: bool) -> Self {
        let QuantileLimit { part, limit: Nanos(most), .. } = limit;
        let of = &series.summary;
        let total = of.cycles.saturating_add(of.missed());
        let (steps, lost) = steps(row, series, total);
        let allowed = float(total) * (1.0 - part);
        let unseen = unseen(&row.result);
        let (low, high) =
            measured(&steps, total, lost, part, of.min_ns.unwrap_or(0), of.max_ns.unwrap_or(u64::MAX));
        let shown = steps.partition_point(|step| step.late.upper(unseen) > allowed);
        let bound = steps.get(shown).map(|step| step.value);
        // Those below the limit are not late. If all values are above it, all are late.
        let kept = steps.partition_point(|step| step.value <= most);
        let all = Late { periods: float(total), squares: float(total) * float(total) };
        let late = kept.checked_sub(1).and_then(|last| steps.get(last)).map_or(all, |step| step.late);
        let side = if bound.is_some_and(|bound| bound <= most) {
            Side::Kept
        } else if low > most && !lacks {
            Side::Broken
        } else {
            Side::Open
        };
        Self { series, low, high, bound, late, total, allowed, unseen, side, lost }
    }

    /// Whether it is worse than another. A broken limit is worse than an open one, and an open one worse than
    /// a kept one. More periods above the limit come next, and then the larger bound.
    fn badness(&self, other: &Self) -> Ordering {
        let side = |one: &Self| match one.side {
            Side::Kept => 0,
            Side::Open => 1,
            Side::Broken => 2,
        };
        let late = |one: &Self| one.late.upper(one.unseen) / one.allowed.max(f64::MIN_POSITIVE);
        let bound = |one: &Self| one.bound.unwrap_or(u64::MAX);
        side(self)
            .cmp(&side(other))
            .then_with(|| late(self).total_cmp(&late(other)))
            .then_with(|| bound(self).cmp(&bound(other)))
    }

    fn found(&self, limit: QuantileLimit, result: &RowResult, lacking: Option<&str>) -> Found {
        let QuantileLimit { name, part, limit: Nanos(most), warns } = limit;
        let corrected = if self.series.summary.missed() > 0 { "corrected " } else { "" };
        let whose = match result.series() {
            [_] => String::new(),
            _ => format!(" of {}", self.series.key),
        };
        let own = format!("{corrected}{name}{whose}");
        let asked = format!("the {} {}", asked(warns), exactly(float(most)));
        let low = beside(float(self.low), float(most));
        let mut longer_ns = None;
        let said = match (self.side, self.bound, lacking) {
            (Side::Kept, Some(bound), _) => {
                format!(
                    "{own} {low}, at most {} (95 %{}), is within {asked}",
                    latency_up(bound),
                    self.supposed(result)
                )
            }
            (Side::Broken, ..) => format!("{own} {low} exceeds {asked}"),
            // The missing data may have been better.
            (_, _, Some(lacking)) if self.low > most => {
                format!("{own} {low} exceeds {asked} in what arrived, but {lacking}")
            }
            _ if self.lost > 0 && self.high > most => {
                format!("samples were lost, and {own} may be above or below {asked}")
            }
            _ => {
                let times = self.late.times_needed(self.unseen, self.allowed, LONGEST);
                longer_ns = times.map(|times| whole((float(result.measured_ns) * (times - 1.0)).ceil()));
                let (most, allowed) = (self.late.upper(self.unseen) / float(self.total.max(1)), 1.0 - part);
                format!(
                    "{own} {low} as measured is within {asked}, but up to {} % of its periods may be later \
                     (95 %, from {} late ones, which come in stalls). The limit allows {} %",
                    number(100.0 * most.min(1.0)),
                    count(whole(self.late.periods)),
                    number(100.0 * allowed),
                )
            }
        };
        let high = if self.side == Side::Broken { Some(self.high) } else { self.bound };
        let high = high.map_or(f64::MAX, |high| float(high.max(self.low)));
        Found { longer_ns, ..Found::new(limit.entry(float(self.low), high, self.side), said) }
    }

    /// The supposition about stalls: none that is unseen is longer than this.
    fn supposed(&self, result: &RowResult) -> String {
        let longest = self.late.longest_unseen(self.unseen, self.allowed);
        let longest = longest.filter(|_| result.measurement.has_periods() && result.interval_ns > 0);
        longest.map_or_else(String::new, |periods| {
            let ns = periods * float(result.interval_ns);
            // Of a stall as long as a part of the run it would be no news that there was none.
            let ns = whole(ns.min(float(result.measured_ns)));
            format!(", if no unseen stall is longer than {}", duration(ns))
        })
    }
}

/// How many periods an unseen stall is taken to have.
fn unseen(result: &RowResult) -> f64 {
    let periodic = result.measurement.has_periods() && result.interval_ns > 0;
    if periodic { (float(UNSEEN_NS) / float(result.interval_ns)).max(1.0) } else { 1.0 }
}

/// Where a quantile of `total` periods lies of which `lost` are not known: they may all have been the smallest, or all the
/// largest.
fn measured(steps: &[Step], total: u64, lost: u64, part: f64, min: u64, max: u64) -> (u64, u64) {
    let rank = whole((float(total) * part).ceil()).max(1);
    let at = |rank: u64| steps.get(steps.partition_point(|step| step.up_to < rank)).map(|step| step.value);
    let low = if rank > lost { at(rank - lost).unwrap_or(max) } else { min };
    (low, at(rank).unwrap_or(max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_samples_widen_a_quantile_and_nothing_else_does() {
        let steps: Vec<Step> =
            (1..=1_000).map(|value| Step { value, up_to: value, late: Late::default() }).collect();
        assert_eq!(measured(&steps, 1_000, 0, 0.99, 1, 1_000), (990, 990));
        // Five lost: they may have been the smallest (then 990 is the 985th that is left) or the largest.
        assert_eq!(measured(&steps, 1_005, 5, 0.99, 1, 1_000), (990, 995));
        // More lost than the quantile leaves room for: only the exact maximum bounds it.
        assert_eq!(measured(&steps, 1_100, 100, 0.99, 1, 5_000).1, 5_000);
        assert_eq!(measured(&[], 10, 10, 0.5, 3, 7), (3, 7));
    }

    #[test]
    fn the_least_time_for_a_quantile_goes_with_what_is_above_it() {
        let seconds = |part, interval_ns| least_ns(part, interval_ns) / 1_000_000_000;
        let usual = [0.99, 0.999, 0.9999, 0.99999].map(|part| seconds(part, 200_000));
        assert_eq!(usual, [3, 30, 300, 3_000]);
        assert_eq!(seconds(0.999, 50_000_000), 150, "a period is longer than a stall");
    }
}
