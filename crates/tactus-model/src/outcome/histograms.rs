//! The histograms of a row over time, folded as they are read: one for each series, and one for each interval of all
//! series together.

use std::collections::BTreeMap;

use crate::buckets::{Counts, Packed, bucket_of};
use crate::latency::{Sparse, SparseError};

/// Most series that are told apart by their tags. A log that has more is nobody's.
const MOST_SERIES: usize = 4096;

/// What a row measured, over time and by series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histograms {
    /// Typical length of an interval, in ns; 0 where there is none.
    pub length_ns: u64,
    /// The latest end of an interval, in ns since the row began to measure.
    pub end_ns: u64,
    /// All series together, for each interval in which something was measured: by its number, which is that of the
    /// `length_ns` in which its middle lies.
    pub intervals: BTreeMap<u64, Packed>,
    /// All of the time, for each series: by its tag in the log, which is its CPU, or the whole of its
    /// [`SeriesKey`](crate::series::SeriesKey) where a CPU has several series.
    pub series: BTreeMap<String, Packed>,
}

/// Where an interval of a log lies.
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
    series: BTreeMap<String, Counts>,
    /// The interval that was added to last, whose series follow each other in a log.
    number: u64,
    open: Counts,
}

impl Folding {
    /// Begins. `lengths` are those of the intervals that will be added, in ns.
    #[must_use]
    pub fn new(mut lengths: Vec<u64>) -> Self {
        lengths.sort_unstable();
        let length_ns = lengths.get(lengths.len() / 2).map_or(0, |length| (*length).max(1));
        Self { folded: Histograms { length_ns, ..Histograms::default() }, ..Self::default() }
    }

    /// Adds what a series measured in an interval, by bucket. Returns whether it could be taken.
    pub fn add(&mut self, tag: &str, place: Place, counts: &[(usize, u64)]) -> bool {
        self.folded.end_ns = self.folded.end_ns.max(place.end_ns());
        if counts.is_empty() {
            return true;
        }
        if !self.series.contains_key(tag) {
            if self.series.len() >= MOST_SERIES {
                return false;
            }
            self.series.insert(tag.to_owned(), Counts::default());
        }
        // Series report at slightly different moments; the middle of an interval says which one it is.
        let number = place.start_ns.saturating_add(place.length_ns / 2) / self.folded.length_ns.max(1);
        if number != self.number {
            self.close();
            self.number = number;
        }
        let Some(series) = self.series.get_mut(tag) else { return false };
        for (bucket, count) in counts {
            series.add(*bucket, *count);
            self.open.add(*bucket, *count);
        }
        true
    }

    /// The same, of counts as they travel.
    ///
    /// # Errors
    /// When they are none; nothing is added then.
    pub fn add_sparse(&mut self, tag: &str, place: Place, counts: &Sparse) -> Result<bool, SparseError> {
        let buckets: Vec<_> =
            counts.buckets()?.into_iter().map(|(value, count)| (bucket_of(value), count)).collect();
        Ok(self.add(tag, place, &buckets))
    }

    fn close(&mut self) {
        if let Some(before) = self.folded.intervals.get(&self.number) {
            self.open.add_packed(before);
        }
        let packed = self.open.pack();
        if !packed.is_empty() {
            self.folded.intervals.insert(self.number, packed);
        }
        self.open.clear();
    }

    /// What it has come to.
    #[must_use]
    pub fn finish(mut self) -> Histograms {
        self.close();
        self.folded.series = self.series.into_iter().map(|(tag, counts)| (tag, counts.pack())).collect();
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
            let mut folding = Folding::new(vec![1_000; found.len()]);
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
    fn a_log_of_more_series_than_a_machine_has_is_refused() {
        let mut folding = Folding::new(vec![1]);
        let place = Place { start_ns: 0, length_ns: 1 };
        let taken = (0..=MOST_SERIES).filter(|n| folding.add(&n.to_string(), place, &[(5, 1)])).count();
        assert_eq!(taken, MOST_SERIES);
    }
}
