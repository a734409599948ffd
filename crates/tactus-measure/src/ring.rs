//! How samples leave a measuring thread: a ring with one writer and one reader, and exact totals of
//! what found it full.

use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::latency::{Totals, swallowed};

/// The most samples a ring holds: 4 MB of memory.
const MOST: u64 = 1 << 18;
/// The fewest.
const FEWEST: u64 = 1 << 10;
/// How long the reader may be away before samples are lost, in ns.
const HOLDS_NS: u64 = 4_000_000_000;

/// A measured value and when it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// CLOCK_MONOTONIC at the end of the measured time, in ns.
    pub at: u64,
    /// The value, in ns.
    pub value: u64,
}

impl Sample {
    /// The number of due times between a wake-up's own and `end`, if it is due every `interval_ns`.
    pub const fn left(self, interval_ns: u64, end: u64) -> u64 {
        let due = self.at.saturating_sub(self.value);
        match end.saturating_sub(due).saturating_sub(1).checked_div(interval_ns) {
            Some(left) => left,
            None => 0,
        }
    }

    /// How many of them passed unanswered.
    #[inline]
    pub fn overruns(self, interval_ns: u64, end: u64) -> u64 {
        swallowed(self.value, interval_ns).min(self.left(interval_ns, end))
    }
}

/// Keeps what one side writes away from the cache line of the other (128 bytes: processors fetch lines in pairs).
#[derive(Default)]
#[repr(align(128))]
pub struct CachePadded<T>(pub T);

/// The ring. A full one never blocks the writer: the sample is then counted in the totals alone.
pub struct Ring {
    head: CachePadded<AtomicU64>,
    tail: CachePadded<AtomicU64>,
    full: CachePadded<Full>,
    slots: Box<[[AtomicU64; 2]]>,
    mask: usize,
}

struct Full {
    cycles: AtomicU64,
    overruns: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    sum: AtomicU64,
}

impl Ring {
    /// A ring for a sample every `interval_ns`, its memory already touched.
    pub fn new(interval_ns: u64) -> Self {
        let wanted = (HOLDS_NS / interval_ns.max(1)).clamp(FEWEST, MOST).next_power_of_two();
        let size = usize::try_from(wanted).unwrap_or(1 << 10);
        // Writing every slot makes its page real now: the allocator's zero pages are not.
        let slots: Box<[_]> = (0..size).map(|_| [AtomicU64::new(1), AtomicU64::new(1)]).collect();
        Self {
            head: CachePadded(AtomicU64::new(0)),
            tail: CachePadded(AtomicU64::new(0)),
            full: CachePadded(Full {
                cycles: AtomicU64::new(0),
                overruns: AtomicU64::new(0),
                min: AtomicU64::new(u64::MAX),
                max: AtomicU64::new(0),
                sum: AtomicU64::new(0),
            }),
            slots,
            mask: size - 1,
        }
    }

    /// The writer's end, for a thread that wakes every `interval_ns` (0: it does not) until `end`, CLOCK_MONOTONIC in
    /// ns. Only the measuring thread may hold one.
    pub fn writer(&self, interval_ns: u64, end: u64) -> Writer<'_> {
        Writer {
            ring: self,
            head: self.head.0.load(Ordering::Relaxed),
            tail: self.tail.0.load(Ordering::Acquire),
            interval_ns,
            end,
        }
    }

    /// Hands over everything that was written. Only the session thread may call it.
    pub fn drain(&self, mut each: impl FnMut(Sample)) {
        let head = self.head.0.load(Ordering::Acquire);
        let mut tail = self.tail.0.load(Ordering::Relaxed);
        while tail != head {
            let slot = &self.slots[self.place(tail)];
            each(Sample { at: slot[0].load(Ordering::Relaxed), value: slot[1].load(Ordering::Relaxed) });
            tail += 1;
        }
        self.tail.0.store(tail, Ordering::Release);
    }

    /// Takes the totals of the samples that found the ring full since the last call. Each count is
    /// taken once; a sample that arrives in between may have its parts in two calls.
    pub fn take_lost(&self) -> Totals {
        let full = &self.full.0;
        Totals {
            cycles: full.cycles.swap(0, Ordering::Relaxed),
            overruns: full.overruns.swap(0, Ordering::Relaxed),
            min_ns: full.min.swap(u64::MAX, Ordering::Relaxed),
            max_ns: full.max.swap(0, Ordering::Relaxed),
            sum_ns: full.sum.swap(0, Ordering::Relaxed),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the mask keeps fewer bits than any usize has")]
    const fn place(&self, index: u64) -> usize {
        index as usize & self.mask
    }
}

/// The writer's end: no system call, no lock, no wait.
pub struct Writer<'a> {
    ring: &'a Ring,
    head: u64,
    tail: u64,
    interval_ns: u64,
    end: u64,
}

impl Writer<'_> {
    /// Writes a sample, or counts it in the totals of what found the ring full.
    #[inline]
    pub fn push(&mut self, sample: Sample) {
        if self.head - self.tail > self.ring.mask as u64 {
            self.tail = self.ring.tail.0.load(Ordering::Acquire);
            if self.head - self.tail > self.ring.mask as u64 {
                self.count_only(sample);
                return;
            }
        }
        let slot = &self.ring.slots[self.ring.place(self.head)];
        slot[0].store(sample.at, Ordering::Relaxed);
        slot[1].store(sample.value, Ordering::Relaxed);
        self.head += 1;
        self.ring.head.0.store(self.head, Ordering::Release);
    }

    #[cold]
    fn count_only(&self, sample: Sample) {
        let full = &self.ring.full.0;
        let value = sample.value;
        let overruns = sample.overruns(self.interval_ns, self.end);
        full.overruns.fetch_add(overruns, Ordering::Relaxed);
        full.min.fetch_min(value, Ordering::Relaxed);
        full.max.fetch_max(value, Ordering::Relaxed);
        full.sum.fetch_add(value, Ordering::Relaxed);
        full.cycles.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(value: u64) -> Sample {
        Sample { at: 1_000 + value, value }
    }

    #[test]
    fn due_times_are_those_before_the_end() {
        // Due at 1000 and every 100: 1100, 1200 and 1300 are left before 1301, and two before 1300.
        let woke = Sample { at: 1_450, value: 450 };
        assert_eq!((woke.left(100, 1_301), woke.left(100, 1_300), woke.left(100, 1_001)), (3, 2, 0));
        assert_eq!((woke.left(0, 9_000), woke.left(100, 900)), (0, 0));
    }

    #[test]
    fn a_ring_holds_four_seconds_and_no_more_than_its_cap() {
        assert_eq!(Ring::new(200_000).mask + 1, 32_768);
        assert_eq!(Ring::new(1_000_000_000).mask + 1, 1_024);
        assert_eq!(Ring::new(1).mask + 1, 1 << 18);
    }

    #[test]
    fn samples_come_out_in_order_and_once() {
        let ring = Ring::new(1_000_000_000);
        let mut writer = ring.writer(1_000, u64::MAX);
        let mut got = Vec::new();
        for round in 0..5 {
            for value in 0..700 {
                writer.push(sample(round * 1_000 + value));
            }
            ring.drain(|s| got.push(s));
        }
        assert_eq!(got.len(), 3_500);
        assert!(got.windows(2).all(|pair| pair[0].value < pair[1].value));
        assert_eq!(ring.take_lost(), Totals::default());
        ring.drain(|_| panic!("it was empty"));
    }

    #[test]
    fn a_full_ring_loses_samples_but_never_their_totals() {
        let ring = Ring::new(1_000_000_000);
        let mut writer = ring.writer(1_000, u64::MAX);
        for value in 1..=1_024 + 3_000 {
            writer.push(sample(value));
        }
        let mut totals = Totals::default();
        ring.drain(|s| {
            totals.add(&Totals {
                cycles: 1,
                overruns: swallowed(s.value, 1_000),
                min_ns: s.value,
                max_ns: s.value,
                sum_ns: s.value,
            });
        });
        assert_eq!(totals.cycles, 1_024);
        let lost = ring.take_lost();
        assert_eq!((lost.cycles, lost.min_ns, lost.max_ns), (3_000, 1_025, 4_024));
        totals.add(&lost);
        assert_eq!(totals.sum_ns, (1..=4_024).sum::<u64>());
        assert_eq!(totals.overruns, (1..=4_024u64).map(|v| v / 1_000).sum::<u64>());
        writer.push(sample(9));
        ring.drain(|s| assert_eq!(s.value, 9));
    }

    #[test]
    fn a_writer_and_a_reader_at_once_lose_nothing_between_them() {
        let ring = Ring::new(1_000_000_000);
        let (mut seen, mut sum) = (0, 0u64);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let mut writer = ring.writer(0, u64::MAX);
                (1..=200_000).for_each(|value| writer.push(sample(value)));
            });
            while !writing.is_finished() {
                ring.drain(|s| {
                    assert_eq!(s.at, 1_000 + s.value);
                    seen += 1;
                    sum += s.value;
                });
            }
            ring.drain(|s| {
                seen += 1;
                sum += s.value;
            });
        });
        let lost = ring.take_lost();
        assert_eq!(seen + lost.cycles, 200_000);
        assert_eq!(sum + lost.sum_ns, (1..=200_000).sum::<u64>());
    }
}
