//! Recovers a row whose run died before it could write its figures.

use std::collections::BTreeMap;

use tactus_model::bundle::Row;
use tactus_model::histograms::{Folding, Place};
use tactus_model::latency::Latency;
use tactus_model::message::{ThreadCounters, Tick};
use tactus_model::outcome::{LatencyOutcome, Outcome, SeriesResult};
use tactus_system::Directory;

use super::limits;
use super::lines::{Line, Lines};

/// The file with the ticks since the last interval; only while a row runs.
pub const PENDING: &str = "pending.jsonl";

/// The ticks that had not become an interval of the log yet.
#[derive(Default)]
pub struct Pending {
    ticks: Vec<(String, Place, Tick)>,
}

impl Pending {
    /// The ticks of the row in `dir`; `ends` are the ends of the series in the log, by tag.
    pub fn read(dir: &Directory, shares_cpus: bool, ends: impl FnOnce() -> BTreeMap<String, u64>) -> Self {
        let mut found = Self::default();
        let Ok(mut lines) = Lines::open(dir, PENDING) else { return found };
        let (mut ends, mut left) = (ends(), limits::PENDING);
        while let Ok(Some(line)) = lines.next() {
            let Line::Whole(line) = line else { continue };
            left = left.saturating_sub(u64::try_from(line.len()).unwrap_or(u64::MAX));
            if left == 0 {
                break;
            }
            let Ok(tick) = serde_json::from_slice::<Tick>(line) else { continue };
            if tick.counts.buckets().is_err() || tick.missed.buckets().is_err() {
                continue;
            }
            let tag = if shares_cpus { tick.series.to_string() } else { tick.series.cpu.to_string() };
            let end = ends.entry(tag.clone()).or_default();
            // A crash between the log and the clearing of the pending ticks leaves both. The log has whole
            // milliseconds only.
            if tick.at_ns / 1_000_000 <= *end / 1_000_000 {
                continue;
            }
            let place = Place { start_ns: *end, length_ns: tick.at_ns - *end };
            *end = tick.at_ns;
            found.ticks.push((tag, place, tick));
        }
        found
    }

    /// The length of each, in ns.
    pub fn lengths(&self) -> impl Iterator<Item = u64> {
        self.ticks.iter().map(|(_, place, _)| place.length_ns)
    }

    /// Adds them to the data of the logs.
    pub fn add_to(&self, latency: &mut Folding, missed: &mut Folding) {
        for (tag, place, tick) in &self.ticks {
            // Their counts were looked at.
            let _ = latency.add_sparse(tag, *place, &tick.counts);
            let _ = missed.add_sparse(tag, *place, &tick.missed);
        }
    }
}

/// Puts the figures together from the ticks and the histograms that are there.
pub fn result(row: &mut Row) {
    let mut series = Vec::new();
    let mut all = Latency::new();
    for (key, ticks) in &row.ticks.series {
        let mut latency = Latency { totals: ticks.totals, ..Latency::new() };
        for tag in [key.to_string(), key.cpu.to_string()] {
            if let Some(counts) = row.histograms.series.get(&tag) {
                counts.add_to(&mut latency.raw);
            }
            if let Some(counts) = row.missed.series.get(&tag) {
                counts.add_to(&mut latency.missed);
            }
        }
        all.merge(&latency);
        row.result.measured_ns = row.result.measured_ns.max(ticks.end_ns);
        series.push(SeriesResult {
            key: key.clone(),
            summary: latency.summary(),
            counters: ThreadCounters::default(),
            outliers: Vec::new(),
            whole: false,
        });
    }
    let all = (all.totals.cycles > 0).then(|| all.summary());
    row.result.outcome = Outcome::Latency(LatencyOutcome { series, all });
}
