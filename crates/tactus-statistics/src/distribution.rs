//! Latency distributions in few enough bins to draw, several rows on one axis.

use hdrhistogram::Histogram;
use tactus_model::latency::HIGHEST_NS;
use tactus_model::number::{float, whole};

use super::recorded::Recorded;

/// How many bins a picture has at most.
const BINS: u64 = 180;

/// Above this ratio of largest to smallest value the axis is logarithmic.
const WIDE: f64 = 25.0;

/// The bins of several rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bins {
    /// Whether the bins are equally wide on a logarithmic axis.
    pub logarithmic: bool,
    /// Their edges in ns, one more than there are bins; empty when nothing was measured. The last
    /// one is above the largest value.
    pub edges: Vec<u64>,
    /// Counts per bin, one list per row.
    pub counts: Vec<Vec<u64>>,
}

/// The distributions of `rows` in common bins, from the smallest to the largest value of any.
#[must_use]
pub fn distribution(rows: &[Recorded]) -> Bins {
    let filled = || rows.iter().map(|row| &row.histogram).filter(|histogram| !histogram.is_empty());
    let (Some(low), Some(high)) = (
        filled().map(Histogram::min).chain(rows.iter().filter_map(|row| row.min_ns)).min(),
        filled().map(Histogram::max).chain(rows.iter().filter_map(|row| row.max_ns)).max(),
    ) else {
        return Bins { counts: vec![Vec::new(); rows.len()], ..Bins::default() };
    };
    if filled().next().is_none() {
        return Bins { counts: vec![Vec::new(); rows.len()], ..Bins::default() };
    }
    // Whatever a bundle says is its largest value: no histogram has longer ones.
    let low = low.clamp(1, HIGHEST_NS);
    let high = high.clamp(low, HIGHEST_NS);
    let logarithmic = float(high) / float(low) > WIDE;
    let edges = edges(low, high, logarithmic);
    let mut counts = vec![vec![0; edges.len() - 1]; rows.len()];
    for (row, counts) in rows.iter().zip(&mut counts) {
        for bucket in row.histogram.iter_recorded() {
            let at = edges.partition_point(|edge| *edge <= bucket.value_iterated_to());
            let at = at.saturating_sub(1).min(counts.len() - 1);
            counts[at] = u64::saturating_add(counts[at], bucket.count_at_value());
        }
    }
    Bins { logarithmic, edges, counts }
}

/// Edges from `low` to above `high`. A bin is never narrower than two buckets of the histogram, whose
/// edges would otherwise show as a comb.
fn edges(low: u64, high: u64, logarithmic: bool) -> Vec<u64> {
    let mut edges = vec![low];
    let narrow = |at: u64| (at / 500).max(2);
    let ratio = (float(high) / float(low)).powf(1.0 / float(BINS));
    let step = (high - low).div_ceil(BINS).max(narrow(high));
    let mut at = low;
    while at <= high {
        let next =
            if logarithmic { whole((float(at) * ratio).ceil()).max(at + narrow(at)) } else { at + step };
        edges.push(next);
        at = next;
    }
    edges
}
