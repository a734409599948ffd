//! Share of periods at least this late: distributions as a deadline sees them, several rows on one axis.

use tactus_model::latency::HIGHEST_NS;
use tactus_model::number::{float, whole};

use super::recorded::Recorded;

/// How many places a picture has.
const PLACES: u32 = 220;

/// The exceedances of several rows at common latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exceedance {
    /// The latencies in ns, rising: equally far apart on a logarithmic axis, and the largest of each row.
    pub at_ns: Vec<u64>,
    /// The share of its periods that took at least this time, for each row; `None` beyond its largest.
    pub parts: Vec<Vec<Option<f64>>>,
    /// The smallest share that a row could see: one of its periods.
    pub least: f64,
}

/// The exceedances of `rows`. The rows must be corrected for missed periods, because a deadline sees every
/// period in a stall.
#[must_use]
pub fn exceedance(rows: &[Recorded]) -> Exceedance {
    let largest = |row: &Recorded| {
        let all = &row.histogram;
        (!all.is_empty()).then(|| row.max_ns.unwrap_or_else(|| all.max()).min(HIGHEST_NS))
    };
    let largest: Vec<Option<u64>> = rows.iter().map(largest).collect();
    // The correction also adds periods that are shorter than any measured one.
    let low = rows.iter().filter_map(|row| row.min_ns).min();
    let (Some(low), Some(high)) =
        (low.map(|ns| ns.clamp(1, HIGHEST_NS)), largest.iter().flatten().copied().max())
    else {
        return Exceedance { parts: vec![Vec::new(); rows.len()], least: 1.0, ..Exceedance::default() };
    };
    let (low, high) = (float(low), float(high).max(float(low)));
    let place = |n: u32| whole(low * (high / low).powf(f64::from(n) / f64::from(PLACES)));
    let mut at_ns: Vec<u64> = (0..=PLACES).map(place).chain(largest.iter().flatten().copied()).collect();
    at_ns.sort_unstable();
    at_ns.dedup();
    let mut least = 1.0_f64;
    let mut parts = Vec::with_capacity(rows.len());
    for (all, largest) in rows.iter().map(|row| &row.histogram).zip(largest) {
        let total = float(all.len());
        if total > 0.0 {
            least = least.min(1.0 / total);
        }
        // From the largest down, so that every bucket is looked at once.
        let buckets: Vec<(u64, u64)> =
            all.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect();
        let (mut above, mut next) = (0_u64, buckets.len());
        let mut own = vec![None; at_ns.len()];
        for (n, ns) in at_ns.iter().enumerate().rev() {
            while next > 0 && buckets[next - 1].0 >= *ns {
                above = above.saturating_add(buckets[next - 1].1);
                next -= 1;
            }
            if largest.is_some_and(|largest| *ns <= largest) && total > 0.0 {
                // A bucket may be coarser than the exact maximum.
                own[n] = Some(float(above.max(1)) / total);
            }
        }
        parts.push(own);
    }
    Exceedance { at_ns, parts, least }
}
