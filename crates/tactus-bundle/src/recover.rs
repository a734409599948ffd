//! What can be said of a row whose run died before it could write its figures.

use std::collections::BTreeMap;

use tactus_model::bundle::{Interval, Row};
use tactus_model::latency::{Latency, Totals};
use tactus_model::message::{ThreadCounters, Tick};
use tactus_model::number::{float, whole};
use tactus_model::outcome::{LatencyOutcome, Outcome, SeriesResult};
use tactus_model::series::SeriesKey;

/// Adds the ticks that had not become an interval of the log yet.
pub fn pending(bytes: &[u8], row: &mut Row) {
    for line in bytes.split(|b| *b == b'\n') {
        let Ok(tick) = serde_json::from_slice::<Tick>(line) else { continue };
        if tick.counts.buckets().is_err() || tick.missed.buckets().is_err() {
            continue;
        }
        let (full, cpu) = (tick.series.to_string(), tick.series.cpu.to_string());
        let own = |interval: &&Interval| interval.tag == full || interval.tag == cpu;
        let end = row.intervals.iter().filter(own).map(|i| i.start_ns + i.length_ns).max().unwrap_or(0);
        // A crash between the log and the clearing of the pending ticks leaves both. The log has whole
        // milliseconds only.
        if tick.at_ns / 1_000_000 <= end / 1_000_000 {
            continue;
        }
        let tag = if row.result.series_share_cpus() { full.clone() } else { cpu.clone() };
        let mut interval = Interval { tag, start_ns: end, length_ns: tick.at_ns - end, counts: tick.counts };
        row.intervals.push(interval.clone());
        if !tick.missed.is_empty() {
            interval.counts = tick.missed;
            row.missed.push(interval);
        }
    }
}

/// Puts the figures together from the ticks and the histograms that are there.
pub fn result(row: &mut Row) {
    let mut series: BTreeMap<SeriesKey, Latency> = BTreeMap::new();
    for tick in &row.ticks {
        let latency = series.entry(tick.series.clone()).or_default();
        let (Some(min_ns), Some(max_ns), Some(mean)) = (tick.min_ns, tick.max_ns, tick.mean_ns) else {
            continue;
        };
        let sum_ns = whole(mean * float(tick.cycles));
        latency.totals.add(&Totals { cycles: tick.cycles, overruns: tick.overruns, min_ns, max_ns, sum_ns });
        row.result.measured_ns = row.result.measured_ns.max(tick.at_ns);
    }
    for (key, latency) in &mut series {
        let (full, cpu) = (key.to_string(), key.cpu.to_string());
        let own = |interval: &&Interval| interval.tag == full || interval.tag == cpu;
        for interval in row.intervals.iter().filter(own) {
            let _ = interval.counts.add_to(&mut latency.raw);
        }
        for interval in row.missed.iter().filter(own) {
            let _ = interval.counts.add_to(&mut latency.missed);
        }
    }
    let mut all = Latency::new();
    for latency in series.values() {
        all.merge(latency);
    }
    let series = series
        .into_iter()
        .map(|(key, latency)| SeriesResult {
            key,
            summary: latency.summary(),
            counters: ThreadCounters::default(),
            outliers: Vec::new(),
        })
        .collect();
    let all = (all.totals.cycles > 0).then(|| all.summary());
    row.result.outcome = Outcome::Latency(LatencyOutcome { series, all });
}
