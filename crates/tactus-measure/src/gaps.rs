//! Counts of polled gaps: a histogram that its one writer fills with plain stores while another
//! thread reads it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ring::CachePadded;

/// Each value below this has its own bucket; above, each doubling has half of that. A bucket is then at most 1/1024
/// wide, below the 0.1 % of the histograms that are sent.
const LINEAR: u64 = 2048;
const HALF: u64 = LINEAR / 2;
const LINEAR_BITS: u32 = LINEAR.trailing_zeros();
/// Values of more bits count in the last bucket.
const MOST_BITS: u32 = 44;
#[expect(clippy::cast_possible_truncation, reason = "some 36 thousand")]
const BUCKETS: usize = (LINEAR + (MOST_BITS - LINEAR_BITS) as u64 * HALF) as usize;

/// The counts, in ticks of the polled clock.
pub struct GapHistogram {
    counts: Box<[AtomicU64]>,
    /// Written with every gap. It has a separate cache line, so that readers of the other fields and this writer do not
    /// delay each other.
    running: CachePadded<Running>,
    floor: CachePadded<AtomicU64>,
}

struct Running {
    min: AtomicU64,
    max: AtomicU64,
    sum: AtomicU64,
}

/// The counts since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Middle of the bucket in ticks, and how many.
    pub buckets: Vec<(u64, u64)>,
    /// How many in all.
    pub cycles: u64,
    /// The smallest, exact, in ticks; `u64::MAX` when there was none.
    pub min: u64,
    /// The largest, exact, in ticks.
    pub max: u64,
    /// Sum of all since the beginning, exact, in ticks.
    pub sum: u64,
}

impl GapHistogram {
    /// No counts; the memory is already touched. `floor`: see [`GapHistogram::floor`].
    pub fn new(floor: u64) -> Self {
        let gaps = Self {
            counts: (0..BUCKETS).map(|_| AtomicU64::new(1)).collect(),
            running: CachePadded(Running {
                min: AtomicU64::new(u64::MAX),
                max: AtomicU64::new(0),
                sum: AtomicU64::new(0),
            }),
            floor: CachePadded(AtomicU64::new(floor)),
        };
        gaps.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        gaps
    }

    /// Gaps from this size on are also written to the ring with their time, in ticks.
    #[inline]
    pub fn floor(&self) -> u64 {
        self.floor.0.load(Ordering::Relaxed)
    }

    /// Sets it. Only the session calls it.
    pub fn set_floor(&self, ticks: u64) {
        if self.floor() != ticks {
            self.floor.0.store(ticks, Ordering::Relaxed);
        }
    }

    /// Counts a gap. Only the measuring thread calls it: a plain load and store each.
    #[inline]
    pub fn count(&self, ticks: u64) {
        let count = &self.counts[bucket(ticks)];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let running = &self.running.0;
        running.sum.store(running.sum.load(Ordering::Relaxed) + ticks, Ordering::Relaxed);
        // A new extreme is rare; only then is the dearer operation needed, against the reader that
        // takes the extremes of its tick.
        if ticks > running.max.load(Ordering::Relaxed) {
            running.max.fetch_max(ticks, Ordering::Relaxed);
        }
        if ticks < running.min.load(Ordering::Relaxed) {
            running.min.fetch_min(ticks, Ordering::Relaxed);
        }
    }

    /// The counts since `before`, which becomes the new state. Only the session calls it.
    pub fn since(&self, before: &mut Vec<u64>) -> Counted {
        before.resize(self.counts.len(), 0);
        let mut counted = Counted::default();
        for (index, (now, before)) in self.counts.iter().zip(before.iter_mut()).enumerate() {
            let now = now.load(Ordering::Relaxed);
            if now != *before {
                counted.cycles += now - *before;
                counted.buckets.push((middle(index), now - *before));
                *before = now;
            }
        }
        let running = &self.running.0;
        counted.min = running.min.swap(u64::MAX, Ordering::Relaxed);
        counted.max = running.max.swap(0, Ordering::Relaxed);
        counted.sum = running.sum.load(Ordering::Relaxed);
        counted
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a bucket number is below BUCKETS")]
const fn bucket(ticks: u64) -> usize {
    if ticks < LINEAR {
        return ticks as usize;
    }
    let bits = u64::BITS - ticks.leading_zeros();
    if bits > MOST_BITS {
        return BUCKETS - 1;
    }
    let shift = bits - LINEAR_BITS;
    (LINEAR + (shift as u64 - 1) * HALF + (ticks >> shift) - HALF) as usize
}

const fn middle(index: usize) -> u64 {
    let index = index as u64;
    if index < LINEAR {
        return index;
    }
    let shift = (index - LINEAR) / HALF + 1;
    let low = ((index - LINEAR) % HALF + HALF) << shift;
    low + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_a_thousandth_wide_and_buckets_follow_each_other() {
        let mut last = 0;
        let mut value = 1u64;
        while value < 1 << 43 {
            let at = bucket(value);
            assert!(at >= last && at < BUCKETS, "{value}");
            last = at;
            let off = middle(at).abs_diff(value);
            assert!(off * 1_000 <= value, "{value} counts as {}", middle(at));
            value += 1 + value / 777;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn differences_are_what_was_counted_between_two_looks() {
        let gaps = GapHistogram::new(0);
        let mut state = Vec::new();
        [5, 5, 9].into_iter().for_each(|ticks| gaps.count(ticks));
        let first = gaps.since(&mut state);
        assert_eq!(first, Counted { buckets: vec![(5, 2), (9, 1)], cycles: 3, min: 5, max: 9, sum: 19 });
        gaps.count(7);
        let second = gaps.since(&mut state);
        assert_eq!(second, Counted { buckets: vec![(7, 1)], cycles: 1, min: 7, max: 7, sum: 26 });
        assert_eq!(gaps.since(&mut state).cycles, 0);
    }
}
