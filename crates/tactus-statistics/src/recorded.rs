//! Latencies as a picture needs them.

use hdrhistogram::Histogram;

/// The latencies of a row. The buckets of a histogram know its extremes to three digits; these are exact.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// All of them.
    pub histogram: Histogram<u64>,
    /// The smallest, in ns.
    pub min_ns: Option<u64>,
    /// The largest, in ns.
    pub max_ns: Option<u64>,
}
