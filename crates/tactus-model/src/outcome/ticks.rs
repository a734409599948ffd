//! The ticks of a row, folded as they are read: a day takes no more memory than two hours. Counts, sums and extremes
//! stay exact. Only their position among the joined ticks is lost.

use std::collections::BTreeMap;

use crate::histograms::MOST_SERIES;
use crate::latency::Totals;
use crate::series::SeriesKey;

/// Most stretches of time that are kept of one series: ticks of a second for two hours and a quarter.
pub const MOST_STRETCHES: usize = 8192;

/// Most that are kept of all series together; where there are more, they become longer.
pub const MOST_IN_ALL: usize = 1 << 21;

/// Most histogram intervals that a log of one row should have: a minute each over 24 hours.
const INTERVALS: u64 = 1440;

/// The latest end of a tick that is taken: 100 years in ns. Sums of such times cannot overflow.
const LATEST_NS: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// How many ticks make an interval of the histogram log.
#[must_use]
pub fn ticks_per_interval(planned_ns: u64, tick_ns: u64) -> u64 {
    planned_ns.div_ceil(tick_ns.max(1)).div_ceil(INTERVALS).max(1)
}

/// The scalars of one tick of one series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickScalars {
    /// Number of the tick, from 0.
    pub n: u64,
    /// End of the tick, in ns since the measurement started.
    pub at_ns: u64,
    /// Wake-ups.
    pub cycles: u64,
    /// Periods missed.
    pub overruns: u64,
    /// Smallest latency, in ns; an instrument that tells totals alone has none.
    pub min_ns: Option<u64>,
    /// Sum of the latencies, in ns; likewise.
    pub sum_ns: Option<u64>,
    /// 99th percentile, in ns.
    pub p99_ns: Option<u64>,
    /// Largest latency, in ns.
    pub max_ns: Option<u64>,
}

/// One or more ticks of a series that follow each other. (Their 99th percentiles do not add up: that of a stretch
/// comes from its histograms.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Number of its first tick.
    pub first: u64,
    /// Number of its last tick.
    pub last: u64,
    /// End of its last tick, in ns since the measurement started.
    pub at_ns: u64,
    /// Wake-ups.
    pub cycles: u64,
    /// Periods missed.
    pub overruns: u64,
    /// Smallest latency, in ns, exact.
    pub min_ns: Option<u64>,
    /// Largest latency, in ns, exact.
    pub max_ns: Option<u64>,
    /// Sum of the latencies of `summed` wake-ups, in ns, exact.
    pub sum_ns: u64,
    /// Wake-ups in ticks whose sum is known.
    pub summed: u64,
}

impl Stretch {
    /// How many ticks it spans, those that did not arrive among them.
    #[must_use]
    pub fn span(&self) -> u64 {
        self.last.saturating_sub(self.first) + 1
    }

    fn of(tick: &TickScalars) -> Self {
        Self {
            first: tick.n,
            last: tick.n,
            at_ns: tick.at_ns,
            cycles: tick.cycles,
            overruns: tick.overruns,
            min_ns: tick.min_ns,
            max_ns: tick.max_ns,
            sum_ns: tick.sum_ns.unwrap_or(0),
            summed: tick.sum_ns.map_or(0, |_| tick.cycles),
        }
    }

    fn join(&mut self, later: &Self) {
        self.last = later.last;
        self.at_ns = self.at_ns.max(later.at_ns);
        self.cycles = self.cycles.saturating_add(later.cycles);
        self.overruns = self.overruns.saturating_add(later.overruns);
        self.min_ns = [self.min_ns, later.min_ns].into_iter().flatten().min();
        self.max_ns = self.max_ns.max(later.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(later.sum_ns);
        self.summed = self.summed.saturating_add(later.summed);
    }
}

/// The ticks of one series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesTicks {
    /// Its stretches in order.
    pub stretches: Vec<Stretch>,
    /// All ticks together whose extremes and sum are known.
    pub totals: Totals,
    /// End of the last of those, in ns since the measurement started.
    pub end_ns: u64,
}

/// The ticks of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Of each series.
    pub series: BTreeMap<SeriesKey, SeriesTicks>,
    /// Ticks that are joined to one stretch.
    pub joined: u64,
    planned_ns: u64,
    /// Stretches of all series.
    kept: usize,
}

impl Default for Ticks {
    fn default() -> Self {
        Self::planned(0)
    }
}

impl Ticks {
    /// No ticks yet, of a row with this planned duration, in ns.
    #[must_use]
    pub fn planned(planned_ns: u64) -> Self {
        Self { series: BTreeMap::new(), joined: 1, planned_ns, kept: 0 }
    }

    /// Adds the next tick of a series and returns whether it was accepted. A tick is left out if it does not follow the
    /// one before, ends after the latest possible time, or belongs to one series too many.
    pub fn add(&mut self, key: &SeriesKey, tick: &TickScalars) -> bool {
        if tick.at_ns > LATEST_NS || tick.n > LATEST_NS {
            return false;
        }
        if self.series.is_empty() {
            self.joined = joined(self.planned_ns, tick.at_ns / (tick.n + 1));
        }
        let joined = self.joined;
        if !self.series.contains_key(key) {
            if self.series.len() >= MOST_SERIES {
                return false;
            }
            self.series.insert(key.clone(), SeriesTicks::default());
        }
        let Some(series) = self.series.get_mut(key) else { return false };
        if series.stretches.last().is_some_and(|last| tick.n <= last.last) {
            return false;
        }
        if let (Some(min_ns), Some(max_ns), Some(sum_ns)) = (tick.min_ns, tick.max_ns, tick.sum_ns) {
            let TickScalars { cycles, overruns, .. } = *tick;
            series.totals.add(&Totals { cycles, overruns, min_ns, max_ns, sum_ns });
            series.end_ns = series.end_ns.max(tick.at_ns);
        }
        let before = series.stretches.len();
        append(&mut series.stretches, &Stretch::of(tick), joined);
        self.kept += series.stretches.len() - before;
        if series.stretches.len() > MOST_STRETCHES || self.kept > MOST_IN_ALL {
            self.join_pairs();
        }
        true
    }

    /// Adds the ticks of a slice: their numbers continue from `first`, their times from `at_ns`. Ticks that do not
    /// follow all present ones are left out.
    pub fn add_slice(&mut self, slice: &Self, first: u64, at_ns: u64) {
        for (key, own) in &slice.series {
            if self.series.is_empty()
                && let Some(stretch) = own.stretches.first()
            {
                self.joined = joined(self.planned_ns, stretch.at_ns / (stretch.last + 1));
            }
            if !self.series.contains_key(key) {
                if self.series.len() >= MOST_SERIES {
                    continue;
                }
                self.series.insert(key.clone(), SeriesTicks::default());
            }
            let Some(series) = self.series.get_mut(key) else { continue };
            let before = series.stretches.len();
            for stretch in &own.stretches {
                let moved = Stretch {
                    first: stretch.first.saturating_add(first),
                    last: stretch.last.saturating_add(first),
                    at_ns: stretch.at_ns.saturating_add(at_ns),
                    ..*stretch
                };
                let follows = series.stretches.last().is_none_or(|last| moved.first > last.last);
                if follows && moved.at_ns <= LATEST_NS && moved.last <= LATEST_NS {
                    append(&mut series.stretches, &moved, self.joined);
                }
            }
            series.totals.add(&own.totals);
            series.end_ns = series.end_ns.max(own.end_ns.saturating_add(at_ns));
            self.kept += series.stretches.len() - before;
            let many = series.stretches.len() > MOST_STRETCHES;
            if many || self.kept > MOST_IN_ALL {
                self.join_pairs();
            }
        }
    }

    /// Whether no tick was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// How long a stretch is, in ns, where ticks had to be joined.
    #[must_use]
    pub fn joined_ns(&self) -> Option<u64> {
        let last = self.series.values().filter_map(|series| series.stretches.last());
        let tick = last.map(|stretch| stretch.at_ns / (stretch.last + 1)).max()?;
        (self.joined > 1).then(|| tick.saturating_mul(self.joined))
    }

    /// Memory that it takes, in bytes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.kept * size_of::<Stretch>() + self.series.len() * size_of::<(SeriesKey, SeriesTicks)>()
    }

    /// Every stretch of every series.
    pub fn iter(&self) -> impl Iterator<Item = (&SeriesKey, &Stretch)> {
        self.series.iter().flat_map(|(key, own)| own.stretches.iter().map(move |stretch| (key, stretch)))
    }

    /// A run longer than planned: each stretch doubles its length.
    fn join_pairs(&mut self) {
        self.joined = self.joined.saturating_mul(2);
        for series in self.series.values_mut() {
            let mut joined = Vec::new();
            for stretch in &series.stretches {
                append(&mut joined, stretch, self.joined);
            }
            series.stretches = joined;
        }
        self.kept = self.series.values().map(|series| series.stretches.len()).sum();
    }
}

/// How many ticks to join, so that a row of this length fits: so many that intervals of the histogram log hold whole
/// stretches.
fn joined(planned_ns: u64, tick_ns: u64) -> u64 {
    let ticks = planned_ns / tick_ns.max(1);
    let most = u64::try_from(MOST_STRETCHES).unwrap_or(u64::MAX);
    let interval = ticks_per_interval(planned_ns, tick_ns);
    let least = ticks / (most + 1) + 1;
    // The search goes from the other end. An interval has a handful of stretches, but a stretch may have endless ticks:
    // for example in a row that claims a century in ticks of a nanosecond.
    let parts = (1..=interval / least).rev().find(|parts| interval.is_multiple_of(*parts));
    parts.map_or(interval, |parts| interval / parts)
}

fn append(stretches: &mut Vec<Stretch>, stretch: &Stretch, joined: u64) {
    match stretches.last_mut() {
        Some(last) if last.first / joined == stretch.first / joined => last.join(stretch),
        _ => stretches.push(*stretch),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(cpu: u32) -> SeriesKey {
        SeriesKey { cpu, thread: cpu, priority: 95, kind: "thread".into() }
    }

    fn tick(n: u64, value: u64) -> TickScalars {
        let (min_ns, max_ns, sum_ns) = (Some(value), Some(2 * value + 1), Some(5 * value));
        TickScalars {
            n,
            at_ns: (n + 1) * 1_000_000_000,
            cycles: 3,
            overruns: value % 3,
            min_ns,
            sum_ns,
            p99_ns: None,
            max_ns,
        }
    }

    #[test]
    fn a_day_takes_no_more_than_two_hours_and_intervals_hold_whole_stretches() {
        for (hours, joined) in [(1, 1), (2, 1), (4, 2), (24, 12), (96, 48)] {
            let ticks = hours * 3600;
            let mut all = Ticks::planned(ticks * 1_000_000_000);
            for n in 0..ticks {
                assert!(all.add(&key(1), &tick(n, n % 977)));
            }
            assert_eq!(all.joined, joined, "{hours} h");
            let interval = ticks_per_interval(ticks * 1_000_000_000, 1_000_000_000);
            assert!(interval.is_multiple_of(joined));
            let stretches = &all.series[&key(1)].stretches;
            assert!(stretches.len() <= MOST_STRETCHES, "{}", stretches.len());
            assert!(stretches.iter().all(|one| one.first / interval == one.last / interval));
        }
    }

    proptest! {
        /// For any planned duration and any lost ticks, the stretches add up to the ticks.
        #[test]
        fn stretches_add_up_to_the_ticks(
            values in proptest::collection::vec((1..4_u64, 0..1_000_000_u64), 1..400), planned_s in 0..400_000_u64, factor in 1..200_u64,
        ) {
            let mut all = Ticks::planned(planned_s * 1_000_000_000);
            let mut wanted = Totals::default();
            let mut n = 0;
            for (step, value) in values {
                n += step * factor;
                let tick = tick(n, value);
                prop_assert!(all.add(&key(1), &tick));
                prop_assert!(!all.add(&key(1), &tick), "a tick counts once");
                let (min_ns, max_ns) = (value, 2 * value + 1);
                wanted.add(&Totals { cycles: 3, overruns: value % 3, min_ns, max_ns, sum_ns: 5 * value });
            }
            let series = &all.series[&key(1)];
            let mut found = Totals::default();
            for one in &series.stretches {
                prop_assert!(one.first <= one.last && one.summed == one.cycles);
                let (min_ns, max_ns) = (one.min_ns.unwrap(), one.max_ns.unwrap());
                found.add(&Totals { cycles: one.cycles, overruns: one.overruns, min_ns, max_ns, sum_ns: one.sum_ns });
            }
            prop_assert!(series.stretches.windows(2).all(|pair| pair[0].last < pair[1].first));
            prop_assert_eq!(&found, &wanted);
            prop_assert_eq!(&series.totals, &wanted);
            prop_assert_eq!(series.end_ns, (n + 1) * 1_000_000_000);
        }
    }

    /// Tried one by one, these would not come to an end.
    #[test]
    fn a_row_that_claims_a_century_of_nanoseconds_causes_no_delay() {
        let mut all = Ticks::planned(LATEST_NS);
        assert!(all.add(&key(1), &TickScalars { at_ns: 1, ..tick(0, 7) }));
        assert!(all.joined > LATEST_NS / 10_000, "{}", all.joined);
    }

    #[test]
    fn as_few_ticks_are_joined_as_fit_and_fill_an_interval() {
        for ticks in (0..40_000).chain([86_400, 604_800, 5_000_003]) {
            let interval = ticks_per_interval(ticks, 1);
            let fits = |joined: &u64| interval.is_multiple_of(*joined) && ticks / joined <= 8192;
            assert_eq!(Some(joined(ticks, 1)), (1..=interval).find(fits), "{ticks} ticks");
        }
    }

    #[test]
    fn a_run_longer_than_planned_takes_no_more_memory() {
        let mut all = Ticks::planned(0);
        let ticks = 3 * u64::try_from(MOST_STRETCHES).unwrap() + 5;
        for n in 0..ticks {
            assert!(all.add(&key(1), &tick(n, 7)) && all.add(&key(2), &tick(n, 9)));
        }
        for cpu in [1, 2] {
            let series = &all.series[&key(cpu)];
            assert!(series.stretches.len() <= MOST_STRETCHES);
            assert_eq!(series.stretches.iter().map(|one| one.cycles).sum::<u64>(), 3 * ticks);
        }
    }

    #[test]
    fn series_and_stretches_without_end_take_no_more() {
        let mut all = Ticks::planned(0);
        let series = u32::try_from(MOST_SERIES).unwrap();
        assert_eq!((0..series + 9).filter(|cpu| all.add(&key(*cpu), &tick(0, 7))).count(), MOST_SERIES);
        // Far apart, so that no two become one until all must.
        for n in 1..=u64::try_from(MOST_IN_ALL / MOST_SERIES).unwrap() {
            (0..series).for_each(|cpu| assert!(all.add(&key(cpu), &tick(n, 7))));
        }
        assert!(all.iter().count() <= MOST_IN_ALL && all.joined == 2);
        assert!(!all.add(&key(1), &TickScalars { n: u64::MAX, ..tick(1, 7) }), "not counted by anybody");
    }
}
