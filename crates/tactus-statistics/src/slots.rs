//! A run cut into equal slots of time, as it is judged: what was measured and the missed periods together.

use std::collections::BTreeMap;
use std::rc::Rc;

use tactus_model::buckets::{Counts, Packed};
use tactus_model::number::float;
use tactus_model::outcome::histograms::Histograms;

use super::autocorrelation::{effective_size, size};
use super::quantile::Quantile;
use super::trend::trend_p;
use super::unknown::{ENOUGH, Unknown};

/// Intervals of two logs are of one length, or one is a multiple of the other, within this part: a tick ends a
/// little late.
const TOLERANCE: f64 = 0.05;

/// A last slot with less than this part of the periods of the others was cut off by the end.
const WHOLE: f64 = 0.9;

/// A trend of the level that chance makes more rarely than this is a drift.
const DRIFT: f64 = 0.01;

/// The quantiles that show how much slots depend on each other.
const PARTS: [f64; 2] = [0.5, 0.999];

/// Value in ns and how many have it, rising.
type Slot = Vec<(u64, u64)>;

/// A run in slots of time, all series together.
#[derive(Clone, Debug)]
pub struct Slots {
    slots: Vec<Slot>,
    /// For each value in ns how many are not above it.
    up_to: Rc<[(u64, u64)]>,
    /// How many independent slots they are worth.
    effective: f64,
}

/// The histograms of a run over time.
#[derive(Clone, Copy, Debug)]
pub struct OverTime<'a> {
    /// Of the periods that were measured.
    pub measured: &'a Histograms,
    /// Of the periods that were missed.
    pub missed: &'a Histograms,
}

/// Two runs cannot be cut into slots of one length: the intervals of neither are a multiple of the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalsDiffer {
    /// Length of an interval without, in ns.
    pub base_ns: u64,
    /// Length of an interval with, in ns.
    pub with_ns: u64,
}

/// Two runs in slots of one length: the longer of their intervals. Maxima over one second and over two are
/// different quantities. Time at the end that does not fill a slot is left out.
///
/// # Errors
/// When one interval is not a multiple of the other.
pub fn slots_alike(base: OverTime<'_>, with: OverTime<'_>) -> Result<[Slots; 2], IntervalsDiffer> {
    let lengths = [base, with].map(|run| run.measured.length_ns);
    let (short, long) = (lengths[0].min(lengths[1]).max(1), lengths[0].max(lengths[1]));
    let times = (float(long) / float(short)).round().max(1.0);
    if (float(long) / float(short) / times - 1.0).abs() > TOLERANCE {
        return Err(IntervalsDiffer { base_ns: lengths[0], with_ns: lengths[1] });
    }
    let times = tactus_model::number::whole(times);
    Ok([base, with].map(|run| Slots::of(run, if run.measured.length_ns == short { times } else { 1 })))
}

impl Slots {
    /// The intervals of a run's log, `joined` of them in each slot.
    fn of(run: OverTime<'_>, joined: u64) -> Self {
        let joined = joined.max(1);
        let mut counted: BTreeMap<u64, Counts> = BTreeMap::new();
        let intervals = || run.measured.intervals.iter().chain(&run.missed.intervals);
        for (number, counts) in intervals() {
            counted.entry(number / joined).or_default().add_packed(counts);
        }
        let last = intervals().map(|(number, _)| *number).max().unwrap_or(0);
        counted.retain(|slot, _| (slot + 1) * joined <= last + 1);
        let mut slots: Vec<Slot> = counted.values().map(|counts| buckets(&counts.pack())).collect();
        let mut periods: Vec<u64> = slots.iter().map(|slot| total(slot)).collect();
        let end = periods.last().copied().unwrap_or(0);
        periods.sort_unstable();
        if periods.get(periods.len() / 2).is_some_and(|typical| float(end) < WHOLE * float(*typical)) {
            slots.pop();
        }
        Self::build(slots).correlated()
    }

    fn build(slots: Vec<Slot>) -> Self {
        let mut all: BTreeMap<u64, u64> = BTreeMap::new();
        for (value, count) in slots.iter().flatten() {
            *all.entry(*value).or_default() += count;
        }
        let running = all.into_iter().scan(0, |sum, (value, count)| {
            *sum += count;
            Some((value, *sum))
        });
        Self { up_to: running.collect(), effective: size(slots.len()), slots }
    }

    /// How many slots there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The largest value of each slot, as slots of one value each.
    #[must_use]
    pub fn maxima(&self) -> Self {
        let largest = |slot: &Slot| slot.last().map(|(value, _)| vec![(*value, 1)]);
        let maxima = Self::build(self.slots.iter().filter_map(largest).collect());
        Self { effective: self.effective.min(maxima.effective), ..maxima }
    }

    /// Whether the level rises or falls over time: by a test of the medians of slots, at 1 %.
    #[must_use]
    pub fn drifts(&self) -> bool {
        let median = |slot: &Slot| {
            let mut left = total(slot).div_ceil(2);
            let reached = slot.iter().find(|(_, count)| {
                left = left.saturating_sub(*count);
                left == 0
            });
            reached.map(|(value, _)| float(*value))
        };
        trend_p(&self.slots.iter().filter_map(median).collect::<Vec<_>>()) < DRIFT
    }

    /// How many independent slots they are worth: those of whatever of the median, the tail and the maxima is the
    /// most correlated. What makes slots alike makes them so in all; where it is rare it only shows less.
    fn correlated(self) -> Self {
        let own = PARTS.map(|part| effective_size(&self.residuals(part).1));
        let of_maxima = effective_size(&self.maxima().residuals(0.5).1);
        Self { effective: own.into_iter().fold(of_maxima, f64::min), ..self }
    }

    /// The share of all periods above a quantile, and how much more each slot has than that. Periods at the
    /// quantile count half.
    fn residuals(&self, part: f64) -> (f64, Vec<f64>) {
        let value = Quantile::value_at(&self.up_to, part);
        let above = |slot: &Slot| -> f64 {
            let weight = |at: u64| if at > value { 1.0 } else { 0.5 };
            slot.iter().rev().take_while(|(at, _)| *at >= value).map(|(at, n)| weight(*at) * float(*n)).sum()
        };
        let above: Vec<f64> = self.slots.iter().map(above).collect();
        let periods: Vec<f64> = self.slots.iter().map(|slot| float(total(slot))).collect();
        let typical = periods.iter().sum::<f64>() / size(periods.len());
        let share = above.iter().sum::<f64>() / periods.iter().sum::<f64>();
        let residuals = above.iter().zip(&periods).map(|(above, n)| (above - share * n) / typical);
        (share, residuals.collect())
    }

    /// A quantile and how well the run knows it.
    ///
    /// # Errors
    /// When the run is too short, or its slots depend on each other too much.
    pub fn quantile(&self, part: f64) -> Result<Quantile, Unknown> {
        let (slots, effective) = (self.len(), self.effective);
        if slots < ENOUGH {
            return Err(Unknown::TooShort { slots });
        }
        if effective < size(ENOUGH) {
            return Err(Unknown::TooCorrelated { slots, effective });
        }
        let (share, residuals) = self.residuals(part);
        let variance = residuals.iter().map(|r| r * r).sum::<f64>() / (size(slots) - 1.0);
        // The standard error of a share, as one of its log odds.
        let error = (variance / effective).sqrt() / (share * (1.0 - share)).max(f64::MIN_POSITIVE);
        let value = Quantile::value_at(&self.up_to, part);
        Ok(Quantile { up_to: Rc::clone(&self.up_to), part, value, error, effective })
    }
}

fn buckets(counts: &Packed) -> Slot {
    counts.buckets().collect()
}

fn total(slot: &[(u64, u64)]) -> u64 {
    slot.iter().map(|(_, count)| count).sum()
}
