//! The largest latency of every short window of time, and the times of disturbances. Together they show whether a
//! disturbance is seen at the time it is made.

use std::collections::BTreeMap;
use std::num::ParseIntError;

use serde::{Deserialize, Serialize};

use crate::lot::{MOST_MOMENTS, PARTS};
use crate::series::SeriesKey;

/// Most windows that are kept of one series.
pub const MOST_WINDOWS: usize = MOST_MOMENTS * 10;
const _: () = assert!(PARTS == 10, "a window is a part of a period");

/// Moments of one clock. They travel and are kept as a text of numbers: microseconds, the first since the clock began,
/// each other one since the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Moments(pub Vec<u64>);

impl From<Moments> for String {
    fn from(moments: Moments) -> Self {
        moments.0.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
    }
}

impl TryFrom<String> for Moments {
    type Error = ParseIntError;

    fn try_from(text: String) -> Result<Self, ParseIntError> {
        text.split_ascii_whitespace().take(MOST_MOMENTS).map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl Moments {
    /// Of times in ns, in order; those beyond [`MOST_MOMENTS`] are left out.
    #[must_use]
    pub fn of(times_ns: impl Iterator<Item = u64>) -> Self {
        let mut before = 0;
        let step = |ns: u64| {
            let step = (ns / 1_000).saturating_sub(before);
            before = ns / 1_000;
            step
        };
        Self(times_ns.take(MOST_MOMENTS).map(step).collect())
    }

    /// The times, in ns.
    pub fn times_ns(&self) -> impl Iterator<Item = u64> {
        self.0.iter().scan(0_u64, |at, step| {
            *at = at.checked_add(*step)?;
            at.checked_mul(1_000)
        })
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The largest latencies of successive windows of a series, in ns (those above four seconds as four seconds).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maxima {
    /// Windows without a gap: the number of the first one, and all from there on. No two such stretches touch.
    stretches: Vec<(u64, Vec<u32>)>,
    count: usize,
}

impl Maxima {
    /// Takes in a window. One that is not behind all others says nothing new, and is left out.
    fn push(&mut self, window: u64, max: u32) {
        match self.stretches.last_mut() {
            Some((first, all)) => {
                let next = u64::try_from(all.len()).ok().and_then(|length| first.checked_add(length));
                match next {
                    Some(next) if window == next => all.push(max),
                    Some(next) if window > next => self.stretches.push((window, vec![max])),
                    _ => return,
                }
            }
            None => self.stretches.push((window, vec![max])),
        }
        self.count += 1;
    }

    /// How many windows there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// The memory that they take, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of = |all: &Vec<u32>| size_of::<(u64, Vec<u32>)>() + size_of::<u32>() * all.capacity();
        self.stretches.iter().map(|(_, all)| of(all)).sum()
    }

    /// All windows by their number.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.stretches.iter().flat_map(|(first, all)| (*first..).zip(all.iter().copied()))
    }

    /// The largest of all from one window to another; none where one of them is not known.
    #[must_use]
    pub fn largest(&self, first: u64, last: u64) -> Option<u32> {
        let at = self.stretches.partition_point(|(begin, _)| *begin <= first).checked_sub(1)?;
        let (begin, all) = self.stretches.get(at)?;
        let place = |window: u64| usize::try_from(window.checked_sub(*begin)?).ok();
        all.get(place(first)?..=place(last)?)?.iter().copied().max()
    }
}

impl FromIterator<(u64, u32)> for Maxima {
    fn from_iter<I: IntoIterator<Item = (u64, u32)>>(windows: I) -> Self {
        let mut all = Self::default();
        windows.into_iter().for_each(|(window, max)| all.push(window, max));
        all
    }
}

/// The windows of a row. A window's number gives its time: it begins at this many lengths on CLOCK_MONOTONIC of the
/// kernel under which the row was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowWindows {
    /// When the measurement began, on that clock, in ns.
    pub began_ns: u64,
    /// The maxima of each series.
    pub series: BTreeMap<SeriesKey, Maxima>,
}

impl RowWindows {
    /// Adds successive windows of a series; windows beyond two hours are left out.
    pub fn add(&mut self, key: &SeriesKey, began_ns: u64, first: u64, maxima: impl Iterator<Item = u64>) {
        self.began_ns = began_ns;
        if !self.series.contains_key(key) {
            self.series.insert(key.clone(), Maxima::default());
        }
        let Some(own) = self.series.get_mut(key) else { return };
        let room = MOST_WINDOWS.saturating_sub(own.len());
        for (n, max) in (0..).zip(maxima.take(room)) {
            own.push(first.saturating_add(n), u32::try_from(max).unwrap_or(u32::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn moments_come_back_to_the_microsecond(mut times in prop::collection::vec(0..1_000_000_000_000_000_u64, 0..50)) {
            times.sort_unstable();
            let moments = Moments::of(times.iter().copied());
            let back: Vec<u64> = moments.times_ns().collect();
            let text = serde_json::to_string(&moments).unwrap();
            prop_assert_eq!(serde_json::from_str::<Moments>(&text).unwrap(), moments);
            prop_assert_eq!(back, times.iter().map(|ns| ns / 1_000 * 1_000).collect::<Vec<_>>());
        }

        #[test]
        fn no_steps_of_others_overflow(steps in prop::collection::vec(any::<u64>(), 0..20)) {
            prop_assert!(Moments(steps.clone()).times_ns().count() <= steps.len());
        }
    }

    #[test]
    fn a_day_of_injections_is_no_more_than_two_hours_of_them() {
        let day = Moments::of((0..86_400).map(|n| 5_000_000_000_000 + n * 1_000_000_000 + n % 977));
        assert_eq!(day.0.len(), MOST_MOMENTS);
        let text = serde_json::to_string(&day).unwrap();
        assert!(text.len() < 60_000, "{}", text.len());
    }

    #[test]
    fn windows_of_a_day_are_no_more_than_those_of_two_hours() {
        let mut all = RowWindows::default();
        let key = SeriesKey { cpu: 1, thread: 0, priority: 95, kind: "thread".into() };
        for second in 0..86_400_u64 {
            all.add(&key, 5, second * 10, std::iter::repeat_n(7, 10));
        }
        assert_eq!(all.series[&key].len(), MOST_WINDOWS);
    }

    #[test]
    fn windows_are_found_by_their_number_and_what_has_a_gap_is_not_known() {
        let maxima: Maxima = [(5, 1), (6, 9), (7, 2), (7, 100), (3, 100), (20, 4)].into_iter().collect();
        assert_eq!(maxima.iter().collect::<Vec<_>>(), [(5, 1), (6, 9), (7, 2), (20, 4)]);
        assert_eq!((maxima.len(), maxima.is_empty()), (4, false));
        assert_eq!(
            (maxima.largest(5, 7), maxima.largest(7, 7), maxima.largest(20, 20)),
            (Some(9), Some(2), Some(4))
        );
        for (first, last) in [(4, 5), (5, 8), (7, 20), (8, 8), (20, 21), (7, 5), (0, u64::MAX), (u64::MAX, 0)]
        {
            assert_eq!(maxima.largest(first, last), None, "{first} to {last}");
        }
        assert_eq!(Maxima::default().largest(0, 0), None);
        let end: Maxima = [(u64::MAX, 1), (u64::MAX, 2), (0, 3)].into_iter().collect();
        assert_eq!((end.len(), end.largest(u64::MAX, u64::MAX)), (1, Some(1)));
    }

    #[test]
    fn a_window_takes_no_more_memory_than_its_number() {
        let day: Maxima = (0..100_000).map(|window| (window, 7)).collect();
        assert!(day.bytes() < 8 * 100_000 + 100, "{}", day.bytes());
    }
}
