//! The histograms of a row over time, folded as they are read: one for each series, and one for each interval of all
//! series together.

use std::collections::BTreeMap;

use crate::buckets::{BUCKETS, Counts, Packed, bucket_of};
use crate::latency::{Sparse, SparseError};

/// Most series of a row. A log with more is damaged.
pub const MOST_SERIES: usize = 4096;

/// The values of a row, over time and by series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histograms {
    /// Typical length of an interval, in ns; 0 without intervals.
    pub length_ns: u64,
    /// The latest end of an interval, in ns since the row began to measure.
    pub end_ns: u64,
    /// All series together, for each interval in which something was measured: by its number, which is that of the
    /// `length_ns` in which its middle lies.
    pub intervals: BTreeMap<u64, Packed>,
    /// All of the time, for each series: by its tag in the log, which is its CPU, or the whole of its
    /// [`SeriesKey`](crate::series::SeriesKey) where a CPU has several series.
    pub series: BTreeMap<String, Packed>,
    /// How bunched in time those are, by the same tags. The counts of the buckets above a value add up to the sum, over the
    /// intervals, of the square of how many values in the interval were above it.
    pub squares: BTreeMap<String, Packed>,
}

impl Histograms {
    /// Drops times and series: one series without a name remains, with all counts.
    pub fn join(&mut self) {
        let mut all = Counts::default();
        self.series.values().for_each(|counts| all.add_packed(counts));
        self.intervals.clear();
        self.series.clear();
        self.squares.clear();
        if !all.is_empty() {
            self.series.insert(String::new(), all.pack());
        }
    }
}

/// Puts the histograms of the slices of a row together.
#[derive(Debug, Default)]
pub struct Joining {
    joined: Histograms,
    series: BTreeMap<String, Own>,
}

/// The sums of one series.
#[derive(Debug, Default)]
struct Own {
    counts: Counts,
    squares: Counts,
}

impl Own {
    /// Adds one interval, its buckets in rising order.
    fn add(&mut self, counts: &[(usize, u64)]) {
        let (mut above, mut squared) = (0_u64, 0_u64);
        for (bucket, count) in counts.iter().rev() {
            self.counts.add(*bucket, *count);
            above = above.saturating_add(*count);
            let square = above.saturating_mul(above);
            self.squares.add(*bucket, square - squared);
            squared = square;
        }
    }
}

/// Counts of each series, and their squares.
fn packed(all: BTreeMap<String, Own>) -> (BTreeMap<String, Packed>, BTreeMap<String, Packed>) {
    let each = |(tag, own): (String, Own)| ((tag.clone(), own.counts.pack()), (tag, own.squares.pack()));
    all.into_iter().map(each).unzip()
}

impl Joining {
    /// Nothing yet; `length_ns` is how long an interval is.
    #[must_use]
    pub fn new(length_ns: u64) -> Self {
        Self { joined: Histograms { length_ns, ..Histograms::default() }, series: BTreeMap::new() }
    }

    /// Takes in a slice whose first interval has the number `first` of all, and that began at `at_ns`.
    pub fn add(&mut self, slice: Histograms, first: u64, at_ns: u64) {
        for (number, counts) in slice.intervals {
            let into = self.joined.intervals.entry(number.saturating_add(first)).or_default();
            if into.is_empty() {
                *into = counts;
            } else {
                let mut both = Counts::default();
                both.add_packed(into);
                both.add_packed(&counts);
                *into = both.pack();
            }
        }
        for (tag, counts) in slice.series {
            if self.series.contains_key(&tag) || self.series.len() < MOST_SERIES {
                let squares = slice.squares.get(&tag);
                let own = self.series.entry(tag).or_default();
                own.counts.add_packed(&counts);
                squares.into_iter().for_each(|squares| own.squares.add_packed(squares));
            }
        }
        if slice.end_ns > 0 {
            self.joined.end_ns = self.joined.end_ns.max(slice.end_ns.saturating_add(at_ns));
        }
    }

    /// The result.
    #[must_use]
    pub fn finish(mut self) -> Histograms {
        (self.joined.series, self.joined.squares) = packed(self.series);
        self.joined
    }
}

/// The position of an interval of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Start, in ns since the row began to measure.
    pub start_ns: u64,
    /// Length, in ns.
    pub length_ns: u64,
}

impl Place {
    /// Its end.
    #[must_use]
    pub fn end_ns(self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }
}

/// Folds the intervals of a row, in any order; best in that of time.
#[derive(Debug, Default)]
pub struct Folding {
    folded: Histograms,
    series: BTreeMap<String, Own>,
    /// The interval that was added to last, whose series follow each other in a log.
    number: u64,
    open: Counts,
    /// Bytes that it may still grow by.
    room: usize,
    counted: u64,
}

/// Most values that a row counts: those of a loop of 10 ns in a month. Sums over the rows of a bundle cannot overflow.
pub const MOST_COUNTED: u64 = 1 << 48;

/// Approximate memory of an entry of a map beside its contents, in bytes.
const ENTRY: usize = 64;

impl Histograms {
    /// Memory that it takes, in bytes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let own = |packed: &Packed| packed.bytes() + ENTRY;
        self.intervals.values().chain(self.series.values()).chain(self.squares.values()).map(own).sum()
    }
}

impl Folding {
    /// Begins. `lengths` are those of the intervals that will be added, in ns. `room` is the approximate memory that it
    /// may take, in bytes: counts that do not fit are refused.
    #[must_use]
    pub fn new(mut lengths: Vec<u64>, room: usize) -> Self {
        lengths.sort_unstable();
        let length_ns = lengths.get(lengths.len() / 2).map_or(0, |length| (*length).max(1));
        Self { folded: Histograms { length_ns, ..Histograms::default() }, room, ..Self::default() }
    }

    /// Adds what a series measured in an interval, by bucket. Returns whether it could be taken.
    pub fn add(&mut self, tag: &str, place: Place, counts: &[(usize, u64)]) -> bool {
        self.folded.end_ns = self.folded.end_ns.max(place.end_ns());
        let Some(highest) = counts.iter().map(|(bucket, _)| *bucket).max() else { return true };
        let counted = counts.iter().fold(self.counted, |sum, (_, count)| sum.saturating_add(*count));
        if counted > MOST_COUNTED {
            return false;
        }
        // A series has a count and a square for each bucket up to its highest one.
        let buckets = highest.min(BUCKETS - 1) + 1;
        let grows = match self.series.get(tag) {
            Some(own) => buckets.saturating_sub(own.counts.len()) * 2 * size_of::<u64>(),
            None if self.series.len() >= MOST_SERIES => return false,
            None => buckets * 2 * size_of::<u64>() + 2 * (tag.len() + ENTRY),
        };
        if grows >= self.room {
            return false;
        }
        self.room -= grows;
        self.counted = counted;
        if !self.series.contains_key(tag) {
            self.series.insert(tag.to_owned(), Own::default());
        }
        // Series report at slightly different moments; the middle of an interval says which one it is.
        let number = place.start_ns.saturating_add(place.length_ns / 2) / self.folded.length_ns.max(1);
        if number != self.number {
            self.close();
            self.number = number;
        }
        let Some(series) = self.series.get_mut(tag) else { return false };
        series.add(counts);
        counts.iter().for_each(|(bucket, count)| self.open.add(*bucket, *count));
        true
    }

    /// The same, for counts in the form of a message.
    ///
    /// # Errors
    /// When they are malformed; nothing is added then.
    pub fn add_sparse(&mut self, tag: &str, place: Place, counts: &Sparse) -> Result<bool, SparseError> {
        let buckets: Vec<_> =
            counts.buckets()?.into_iter().map(|(value, count)| (bucket_of(value), count)).collect();
        Ok(self.add(tag, place, &buckets))
    }

    fn close(&mut self) {
        if let Some(before) = self.folded.intervals.get(&self.number) {
            self.open.add_packed(before);
            self.room = self.room.saturating_add(before.bytes() + ENTRY);
        }
        let packed = self.open.pack();
        if !packed.is_empty() {
            self.room = self.room.saturating_sub(packed.bytes() + ENTRY);
            self.folded.intervals.insert(self.number, packed);
        }
        self.open.clear();
    }

    /// The result.
    #[must_use]
    pub fn finish(mut self) -> Histograms {
        self.close();
        (self.folded.series, self.folded.squares) = packed(self.series);
        self.folded
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// In whatever order intervals come: each series and all of the time add up to the same.
        #[test]
        fn intervals_add_up_to_the_series(
            found in proptest::collection::vec((0..3_u32, 0..50_u64, proptest::collection::vec((0..5_000_usize, 1..9_u64), 0..6)), 0..60),
        ) {
            let mut folding = Folding::new(vec![1_000; found.len()], usize::MAX);
            let mut wanted = Counts::default();
            for (series, at, counts) in &found {
                let place = Place { start_ns: at * 1_000 + u64::from(*series), length_ns: 1_000 };
                prop_assert!(folding.add(&series.to_string(), place, counts));
                counts.iter().for_each(|(bucket, count)| wanted.add(*bucket, *count));
            }
            let folded = folding.finish();
            let joined = |parts: Vec<&Packed>| {
                let mut all = Counts::default();
                parts.into_iter().for_each(|part| all.add_packed(part));
                all.pack()
            };
            prop_assert_eq!(joined(folded.series.values().collect()), wanted.pack());
            prop_assert_eq!(joined(folded.intervals.values().collect()), wanted.pack());
            prop_assert!(folded.intervals.keys().all(|n| found.iter().any(|(_, at, counts)| at == n && !counts.is_empty())));
        }
    }

    #[test]
    fn squares_tell_values_that_come_together_from_those_that_come_one_by_one() {
        let squared = |intervals: &[&[(usize, u64)]], above: u64| {
            let mut folding = Folding::new(vec![1_000], usize::MAX);
            for (at, counts) in (0..).zip(intervals) {
                assert!(folding.add("1", Place { start_ns: at * 1_000, length_ns: 1_000 }, counts));
            }
            let folded = folding.finish();
            let twice = |folded: &Histograms| {
                let mut joining = Joining::new(1_000);
                [0, 9].into_iter().for_each(|first| joining.add(folded.clone(), first, first * 1_000));
                joining.finish()
            };
            let sum = |of: &Histograms| {
                of.squares["1"]
                    .buckets()
                    .filter(|(value, _)| *value > above)
                    .map(|(_, square)| square)
                    .sum::<u64>()
            };
            assert_eq!(sum(&twice(&folded)), 2 * sum(&folded), "slices are added up");
            sum(&folded)
        };
        assert_eq!(squared(&[&[(5, 1)], &[(5, 1)]], 4), 2);
        assert_eq!(squared(&[&[(5, 2)], &[]], 4), 4);
        assert_eq!(squared(&[&[(5, 1), (7, 2)], &[(3, 9), (7, 1)]], 4), 10);
        assert_eq!(squared(&[&[(5, 1), (7, 2)], &[(3, 9), (7, 1)]], 6), 5);
        assert_eq!(squared(&[&[(5, 1), (7, 2)], &[(3, 9), (7, 1)]], 2), 109);
    }

    #[test]
    fn a_log_of_more_series_than_a_machine_has_is_refused() {
        let mut folding = Folding::new(vec![1], usize::MAX);
        let place = Place { start_ns: 0, length_ns: 1 };
        let taken = (0..=MOST_SERIES).filter(|n| folding.add(&n.to_string(), place, &[(5, 1)])).count();
        assert_eq!(taken, MOST_SERIES);
    }

    #[test]
    fn no_more_is_counted_than_anybody_counts() {
        let mut folding = Folding::new(vec![1], usize::MAX);
        let place = Place { start_ns: 0, length_ns: 1 };
        for (counts, taken) in [
            (&[(5, u64::MAX)][..], false),
            (&[(5, MOST_COUNTED / 2), (6, MOST_COUNTED / 2)], true),
            (&[(7, 1)], false),
            (&[(7, u64::MAX), (8, u64::MAX)], false),
        ] {
            assert_eq!(folding.add("1", place, counts), taken);
        }
        assert_eq!(folding.finish().series["1"].total(), MOST_COUNTED);
    }

    #[test]
    fn what_does_not_fit_is_not_taken() {
        const ROOM: usize = 4 << 20;
        let all: Vec<(usize, u64)> = (0..BUCKETS).map(|bucket| (bucket, 300_000)).collect();
        // Intervals without end of one series, and series without end of one interval.
        for tag in [|_: u64| "1".to_owned(), |n: u64| n.to_string()] {
            let mut folding = Folding::new(vec![1], ROOM);
            let taken = (0..500).filter(|n| {
                let place = Place { start_ns: *n, length_ns: 1 };
                folding.add(&tag(*n), place, &all)
            });
            assert!((2..100).contains(&taken.count()));
            let folded = folding.finish();
            assert!(folded.bytes() < 2 * ROOM, "{}", folded.bytes());
        }
    }
}
