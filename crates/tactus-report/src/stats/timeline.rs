//! Latency over the time of a row, in few enough bins to draw. No maximum and no minimum is lost.

use std::collections::BTreeMap;

use tactus_model::bundle::Row;
use tactus_model::number::float;

/// A stretch of time, all series together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// Number of the stretch; a missing number is a gap.
    pub n: u64,
    /// Smallest latency, in ns, exact.
    pub min_ns: Option<u64>,
    /// Mean latency, in ns.
    pub mean_ns: Option<f64>,
    /// 99th percentile of the stretch, in ns.
    pub p99_ns: Option<u64>,
    /// Largest latency, in ns, exact.
    pub max_ns: Option<u64>,
}

/// A row over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Length of a bin, in ns.
    pub width_ns: u64,
    /// The bins in which something was measured, in order.
    pub bins: Vec<Bin>,
}

/// A row over time in at most about `most` bins. Exact values come from the ticks; the percentile
/// comes from the histograms of the stretch together.
#[must_use]
pub fn timeline(row: &Row, most: u64) -> Timeline {
    let tick = median(tick_lengths(row));
    let interval = median(row.intervals.iter().map(|interval| interval.length_ns).collect());
    let ends = row.ticks.iter().map(|tick| tick.at_ns);
    let total =
        ends.chain(row.intervals.iter().map(|i| i.start_ns.saturating_add(i.length_ns))).max().unwrap_or(0);
    // A bin holds whole intervals, so that its percentile covers the stretch of its maximum.
    let grain = interval.max(tick).max(1);
    let width = grain * total.div_ceil(grain).div_ceil(most.max(1)).max(1);
    let mut bins: BTreeMap<u64, (Bin, f64, u64)> = BTreeMap::new();
    // The middle of a tick says where it belongs: its end may come a little late.
    for ticked in row.ticks.iter().filter(|ticked| ticked.cycles > 0) {
        let at = ticked.at_ns.saturating_sub(tick / 2) / width;
        let (bin, sum, cycles) = bins.entry(at).or_default();
        least(&mut bin.min_ns, ticked.min_ns);
        bin.max_ns = bin.max_ns.max(ticked.max_ns);
        if let Some(mean) = ticked.mean_ns {
            *sum += mean * float(ticked.cycles);
            *cycles += ticked.cycles;
        }
    }
    let mut merged = BTreeMap::new();
    for interval in row.intervals.iter().filter(|interval| !interval.counts.is_empty()) {
        let at = (interval.start_ns + interval.length_ns / 2) / width;
        let all = merged.entry(at).or_insert_with(tactus_model::latency::histogram);
        let _ = interval.counts.add_to(all);
    }
    for (at, histogram) in merged {
        let (bin, _, cycles) = bins.entry(at).or_default();
        if *cycles == 0 {
            // The ticks are gone: the histogram knows all of it within 0.1 %.
            bin.min_ns = Some(histogram.min());
            bin.max_ns = Some(histogram.max());
            bin.mean_ns = Some(histogram.mean());
        }
        let p99 = histogram.value_at_quantile(0.99);
        bin.p99_ns = Some(bin.max_ns.map_or(p99, |max| p99.min(max)));
    }
    let bins = bins.into_iter().map(|(n, (bin, sum, cycles))| Bin {
        n,
        mean_ns: if cycles > 0 { Some(sum / float(cycles)) } else { bin.mean_ns },
        ..bin
    });
    Timeline { width_ns: width, bins: bins.collect() }
}

fn least(so_far: &mut Option<u64>, value: Option<u64>) {
    *so_far = match (*so_far, value) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
}

/// Times between ticks of the same series that follow each other.
fn tick_lengths(row: &Row) -> Vec<u64> {
    let mut last = BTreeMap::new();
    row.ticks
        .iter()
        .filter_map(|tick| {
            let (n, at) = last.insert(&tick.series, (tick.n, tick.at_ns)).unwrap_or((0, 0));
            let steps = tick.n.checked_sub(n).filter(|steps| *steps > 0)?;
            Some(tick.at_ns.saturating_sub(at) / steps)
        })
        .chain(row.ticks.first().map(|tick| tick.at_ns / (tick.n + 1)))
        .collect()
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
