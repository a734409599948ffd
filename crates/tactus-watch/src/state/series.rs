//! The results of one measuring thread so far.

use tactus_model::buckets::{Counts, Packed};
use tactus_model::event::Ticked;
use tactus_model::latency::{Summary, Totals};

use super::Maxima;

/// The results of one measuring thread so far.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Exact counts and extremes since it began.
    pub totals: Totals,
    /// The totals of its earlier slices.
    before: Totals,
    /// The largest latency of the last tick, in ns; `None` if nothing was measured in it.
    pub now_ns: Option<u64>,
    /// Largest latencies over the whole time.
    pub maxima: Maxima,
    counts: Counts,
    /// Counts from a bundle, kept packed: one count in the last bucket would take 267 KB.
    kept: Packed,
    quantile_ns: Option<u64>,
}

impl Series {
    /// One that a bundle has figures of.
    #[must_use]
    pub fn of_summary(summary: &Summary) -> Self {
        let totals = Totals { sum_ns: 0, ..summary.totals() };
        Self { totals, quantile_ns: summary.p99_ns, ..Self::default() }
    }

    pub(super) fn tick(&mut self, ticked: &Ticked) {
        self.now_ns = ticked.max_ns;
        self.maxima.push(ticked.max_ns);
        match &ticked.whole {
            Some(whole) => {
                self.totals = self.with_before(&whole.total);
                self.counts.add_packed(&std::mem::take(&mut self.kept));
                // Invalid counts were refused where they arrived; here they would change nothing.
                let _ = self.counts.add_sparse(&whole.counts);
            }
            // Read back from a bundle: scalars alone.
            None => self.totals.add(&Totals {
                cycles: ticked.cycles,
                overruns: ticked.overruns,
                min_ns: ticked.min_ns.unwrap_or(u64::MAX),
                max_ns: ticked.max_ns.unwrap_or(0),
                sum_ns: 0,
            }),
        }
        self.quantile_ns = None;
        self.quantile_ns = self.quantile(99, 100);
    }

    pub(super) fn count(&mut self, total: &Totals) {
        let total = self.with_before(total);
        // One that comes late says less than the tick before it.
        if total.cycles >= self.totals.cycles {
            self.totals = total;
        }
    }

    /// The totals of a slice, with those of the slices before it.
    fn with_before(&self, slice: &Totals) -> Totals {
        let mut all = self.before;
        all.add(slice);
        all
    }

    /// Another slice begins.
    pub(super) const fn begin_slice(&mut self) {
        self.before = self.totals;
    }

    /// Keeps the counts that a bundle has of it, as they are.
    pub(crate) fn keep(&mut self, packed: &Packed) {
        self.kept = packed.clone();
        self.quantile_ns = self.quantile(99, 100);
    }

    /// The 99th percentile of the values in the histogram, in ns, within 0.1 %.
    #[must_use]
    pub const fn p99_ns(&self) -> Option<u64> {
        self.quantile_ns
    }

    /// The largest latency, in ns.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (self.totals.cycles > 0).then_some(self.totals.max_ns)
    }

    /// Its counts.
    #[must_use]
    pub fn packed(&self) -> Packed {
        if self.counts.is_empty() { self.kept.clone() } else { self.counts.pack() }
    }

    /// Memory that its counts take, in bytes.
    #[cfg(test)]
    pub(crate) fn counts_bytes(&self) -> usize {
        self.counts.len() * size_of::<u64>() + self.kept.bytes()
    }

    fn quantile(&self, of: u64, hundred: u64) -> Option<u64> {
        let packed = self.packed();
        let wanted = (u128::from(packed.total()) * u128::from(of)).div_ceil(u128::from(hundred));
        let mut seen = 0_u128;
        let mut buckets = packed.buckets();
        let value = buckets.find(|(_, count)| {
            seen += u128::from(*count);
            seen >= wanted
        })?;
        // A bucket's upper edge is never above the exact maximum.
        Some(self.max_ns().map_or(value.0, |max| value.0.min(max)))
    }
}
