//! Counts of latencies in the layout of all histograms of tactus (`tactus-model`, `outcome/buckets.rs`): three
//! significant digits, up to an hour. No division, no memory to ask for: it is filled by a handler of an interrupt.

use alloc::string::String;
use alloc::vec::Vec;

use crate::json::Object;

const FINE: u64 = 2048;
const HALF_BITS: u32 = 10;
/// The longest latency that the histogram distinguishes, in ns.
const HIGHEST_NS: u64 = 3_600_000_000_000;
const BUCKETS: usize = 33_421;

/// The counts, with their totals.
pub struct Histogram {
    counts: [u32; BUCKETS],
    /// How many.
    pub cycles: u64,
    /// The smallest value, in ns; 0 without values.
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

/// The totals, without the histogram.
#[derive(Clone, Copy)]
pub struct Totals {
    cycles: u64,
    overruns: u64,
    min_ns: u64,
    /// The largest, in ns.
    pub max_ns: u64,
    sum_ns: u64,
}

impl Totals {
    /// Of nothing.
    pub const NONE: Self = Self { cycles: 0, overruns: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 };

    /// Of what a histogram counted, and the interrupts that never came.
    pub fn of(histogram: &Histogram, overruns: u64) -> Self {
        let Histogram { cycles, min_ns, max_ns, sum_ns, .. } = *histogram;
        Self { cycles, overruns, min_ns: if cycles == 0 { u64::MAX } else { min_ns }, max_ns, sum_ns }
    }

    /// Adds what was counted later.
    pub fn add(&mut self, other: &Self) {
        self.cycles += other.cycles;
        self.overruns += other.overruns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }

    /// As the wire has them.
    pub fn json(&self) -> String {
        let counted = Object::new().json("cycles", self.cycles).json("overruns", self.overruns);
        counted.json("min_ns", self.min_ns).json("max_ns", self.max_ns).json("sum_ns", self.sum_ns).end()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_in_the_bucket_whose_largest_value_is_the_first_that_is_not_below_it() {
        for ns in (0..5000).chain((0..42).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let own = bucket(ns);
            let ns = ns.min(HIGHEST_NS);
            assert!(own < BUCKETS && value(own) >= ns && (own == 0 || value(own - 1) < ns), "{ns}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn counts_travel_as_steps_from_value_to_value() {
        let mut histogram = Box::new(Histogram::NEW);
        for ns in [7, 7, 9, 4_000_000] {
            histogram.record(ns);
        }
        let last = value(bucket(4_000_000));
        assert_eq!(histogram.sparse(), [7, 2, 2, 1, last - 9, 1]);
        let mut total = Totals::NONE;
        total.add(&Totals::of(&histogram, 2));
        assert_eq!(total.json(), r#"{"cycles":4,"overruns":2,"min_ns":7,"max_ns":4000000,"sum_ns":4000023}"#);
        histogram.clear();
        assert_eq!(Totals::of(&histogram, 0).json(), Totals::NONE.json());
    }
}
