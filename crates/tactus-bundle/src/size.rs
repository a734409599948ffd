//! The size that a bundle will take on disk, and a run in memory, before it has begun.
//!
//! A model of measured sizes ([bundle.md](../../../docs/design/bundle.md), "what all of it takes"): the line
//! of a tick, compressed, and the histogram of an interval. A histogram has more buckets the more is counted
//! in it. Each increase of the count by a factor of e adds the same number of bytes.

use tactus_model::bundle::RowResult;
use tactus_model::number::{float, whole};
use tactus_model::ticks::ticks_per_interval;

/// Bytes of a tick of a series, as a line and as a part of a compressed table.
const TICK: u64 = 100;
const PACKED_TICK: u64 = 19;
/// Bytes of lines from which on they are compressed.
const SEGMENT: u64 = 256 * 1024;
/// Bytes that each factor of e in the count adds to an interval, and the logarithm of the count where that
/// begins.
const BUCKETS: f64 = 645.0;
const FROM: f64 = 7.41;
/// The least that an interval takes.
const INTERVAL: f64 = 250.0;
/// Figures of a row, of each of its series, and its events.
const ROW: u64 = 6_000;
const SERIES: u64 = 2_500;

/// Facts and audit of an environment, in bytes, about.
pub const PLACE_BYTES: u64 = 400_000;

/// Memory of a run that records nothing, and what each series takes while it is measured: four histograms of 270 KB.
const IDLE: u64 = 14_000_000;
const RECORDED: u64 = 1_150_000;

/// The needs of a run, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its bundle, about.
    pub disk: u64,
    /// The memory of the recorder, about.
    pub memory: u64,
}

impl Size {
    /// The most that its bundle takes: histograms of latencies that are spread over many octaves are twice as large.
    #[must_use]
    pub const fn most(&self) -> u64 {
        self.disk.saturating_mul(2)
    }
}

/// The approximate size on disk of a row that reports once per `tick_ns`, in bytes.
#[must_use]
pub fn row_bytes(row: &RowResult, tick_ns: u64) -> u64 {
    let series = row.threads.as_ref().map_or(0, |threads| u64::try_from(threads.len()).unwrap_or(u64::MAX));
    let ticks = row.planned_ns.div_ceil(tick_ns.max(1));
    let joined = row
        .slice
        .map_or_else(|| ticks_per_interval(row.planned_ns, tick_ns), |slice| slice.ticks_per_interval());
    let lines = ticks.saturating_mul(series);
    let plain = lines.saturating_mul(TICK);
    let table = if plain > SEGMENT { lines.saturating_mul(PACKED_TICK).max(SEGMENT / 5) } else { plain };
    let counted = float(joined.saturating_mul(tick_ns)) / float(row.interval_ns.max(1));
    let interval = whole((BUCKETS * (counted.max(1.0).ln() - FROM)).max(INTERVAL));
    let histograms = ticks.div_ceil(joined.max(1)).saturating_mul(series).saturating_mul(interval);
    [table, histograms, ROW, series.saturating_mul(SERIES)].into_iter().fold(0, u64::saturating_add)
}

/// The approximate memory to record this many series at a time, in bytes.
#[must_use]
pub fn recording_bytes(series: usize) -> u64 {
    u64::try_from(series).unwrap_or(u64::MAX).saturating_mul(RECORDED).saturating_add(IDLE)
}
