//! Counts of latencies in the layout of all histograms of tactus (`tactus-model`, `outcome/buckets.rs`): three
//! significant digits, up to an hour. No division, no memory to ask for: it is filled by a handler of an interrupt.

use alloc::vec::Vec;

const FINE: u64 = 2048;
const HALF_BITS: u32 = 10;
/// The longest latency that is told apart, in ns.
const HIGHEST_NS: u64 = 3_600_000_000_000;
const BUCKETS: usize = 33_421;

/// What was counted, with its totals.
pub struct Histogram {
    counts: [u32; BUCKETS],
    /// How many.
    pub cycles: u64,
    /// The smallest, in ns; 0 while there is none.
    pub min_ns: u64,
    /// The largest, in ns.
    pub max_ns: u64,
    /// All of them, in ns.
    pub sum_ns: u64,
}

impl Histogram {
    /// Nothing yet. All zero, so that it takes no room in the image.
    pub const NEW: Self = Self { counts: [0; BUCKETS], cycles: 0, min_ns: 0, max_ns: 0, sum_ns: 0 };

    /// Counts a latency in ns.
    pub fn record(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.min_ns = if self.cycles == 0 { ns } else { self.min_ns.min(ns) };
        self.cycles += 1;
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.cycles, self.min_ns, self.max_ns, self.sum_ns) = (0, 0, 0, 0);
    }

    /// The counts as they travel: for each bucket that has any, how far its largest value is from the one before, and
    /// its count.
    pub fn sparse(&self) -> Vec<u64> {
        let (mut words, mut last) = (Vec::new(), 0);
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let value = value(bucket);
            words.extend([value - last, u64::from(*count)]);
            last = value;
        }
        words
    }
}

fn bucket(ns: u64) -> usize {
    let ns = ns.min(HIGHEST_NS);
    let octave = (u64::BITS - ns.leading_zeros()).saturating_sub(HALF_BITS + 1);
    (((u64::from(octave)) << HALF_BITS) + (ns >> octave)) as usize
}

fn value(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < FINE {
        return bucket;
    }
    let octave = (bucket >> HALF_BITS) - 1;
    ((bucket - (octave << HALF_BITS)) << octave) + (1 << octave) - 1
}
