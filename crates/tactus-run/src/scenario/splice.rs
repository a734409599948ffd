//! Joins the reports of a probe to those of the probe that died before it, as one measurement. Ticks continue to
//! count, times are measured time, totals are the sum of both. Pure.

use std::collections::BTreeMap;

use tactus_model::clock::Hole;
use tactus_model::histograms::MOST_COUNTED;
use tactus_model::latency::Totals;
use tactus_model::message::{Outlier, ThreadCounters, Tick, Total};
use tactus_model::outcome::Restart;
use tactus_model::series::SeriesKey;

/// How far a row had come.
#[derive(Clone, Debug, Default)]
struct Reached {
    /// End of its last tick, in ns of measured time.
    at_ns: u64,
    /// Ticks so far.
    ticks: u64,
    series: BTreeMap<SeriesKey, (Totals, ThreadCounters)>,
}

/// A row, and what of it was measured before its environment was last started.
#[derive(Clone, Debug, Default)]
pub(super) struct Splice {
    before: Reached,
    now: Reached,
    /// How often its environment was started again.
    restarts: u32,
}

impl Splice {
    /// A tick of the probe that measures now, as one of the row.
    pub fn tick(&mut self, mut tick: Tick) -> Tick {
        tick.n = tick.n.saturating_add(self.before.ticks);
        tick.at_ns = self.at(tick.at_ns);
        if let Some((total, thread)) = self.before.series.get(&tick.series) {
            add(&mut tick.total, total);
            tick.thread = tick.thread.plus(thread);
        }
        self.now.at_ns = self.now.at_ns.max(tick.at_ns);
        self.now.ticks = self.now.ticks.max(tick.n.saturating_add(1));
        self.now.series.insert(tick.series.clone(), (tick.total, tick.thread));
        tick
    }

    /// The same of totals.
    pub fn total(&mut self, mut total: Total) -> Total {
        total.at_ns = self.at(total.at_ns);
        if let Some((before, _)) = self.before.series.get(&total.series) {
            add(&mut total.total, before);
        }
        total
    }

    /// The same of a large value.
    pub fn outlier(&self, mut outlier: Outlier) -> Outlier {
        outlier.at_ns = self.at(outlier.at_ns);
        outlier
    }

    /// The same of a time at which its clock stood still.
    pub fn hole(&self, hole: Hole) -> Hole {
        Hole { at_ns: self.at(hole.at_ns), ..hole }
    }

    /// A time since the probe began to measure, as one since the row began, in ns of measured time.
    pub fn at(&self, at_ns: u64) -> u64 {
        at_ns.saturating_add(self.before.at_ns)
    }

    /// End of the last tick, in ns of measured time.
    pub fn reached_ns(&self) -> u64 {
        self.now.at_ns
    }

    /// Whether its environment was started again.
    pub fn is_spliced(&self) -> bool {
        self.restarts > 0
    }

    /// Data from here on is another probe's, which measures after a gap of `gap_ns`.
    pub fn begin(&mut self, gap_ns: u64, reason: &str) -> Restart {
        self.before = self.now.clone();
        self.restarts = self.restarts.saturating_add(1);
        let (at_ns, first_tick) = (self.before.at_ns, self.before.ticks);
        Restart { at_ns, first_tick, gap_ns, reason: reason.to_owned() }
    }
}

/// Adds what was counted before; no more than what can be read again.
fn add(totals: &mut Totals, before: &Totals) {
    totals.add(before);
    totals.cycles = totals.cycles.min(MOST_COUNTED);
    totals.overruns = totals.overruns.min(MOST_COUNTED);
}

#[cfg(test)]
mod tests {
    use tactus_model::latency::{Latency, Sparse};

    use super::*;

    const S: u64 = 1_000_000_000;

    fn key(cpu: u32) -> SeriesKey {
        SeriesKey { cpu, thread: 0, priority: 95, kind: "thread".into() }
    }

    /// The `n`-th tick of a probe: one wake-up a tick, `n` us late.
    fn tick(cpu: u32, n: u64, misses: Option<u64>) -> Tick {
        let mut now = Latency::new();
        now.record(1_000 * (n + 1), S);
        let thread =
            ThreadCounters { major_faults: Some(n), llc_misses: misses, ..ThreadCounters::default() };
        let total = Totals {
            cycles: n + 1,
            overruns: 0,
            min_ns: 1_000,
            max_ns: 1_000 * (n + 1),
            sum_ns: (0..=n).map(|n| 1_000 * (n + 1)).sum(),
        };
        let counts = Sparse::of(&now.raw);
        let (series, missed) = (key(cpu), Sparse::default());
        Tick { activity: 0, series, n, at_ns: (n + 1) * S, now: now.totals, total, counts, missed, thread }
    }

    #[test]
    fn without_a_death_nothing_changes() {
        let mut row = Splice::default();
        for n in 0..3 {
            assert_eq!(row.tick(tick(1, n, None)), tick(1, n, None));
        }
        assert_eq!((row.reached_ns(), row.is_spliced()), (3 * S, false));
    }

    #[test]
    fn ticks_go_on_counting_where_the_last_one_that_arrived_ended() {
        let mut row = Splice::default();
        (0..3).for_each(|n| drop(row.tick(tick(1, n, None))));
        // Of the other thread one tick less had arrived.
        (0..2).for_each(|n| drop(row.tick(tick(2, n, None))));
        let restart = row.begin(4 * S, "killed by signal 9");
        assert_eq!((restart.at_ns, restart.first_tick, restart.gap_ns), (3 * S, 3, 4 * S));
        let one = row.tick(tick(1, 0, Some(7)));
        assert_eq!((one.n, one.at_ns), (3, 4 * S));
        assert_eq!((one.total.cycles, one.total.max_ns, one.total.sum_ns), (4, 3_000, 7_000));
        assert_eq!(one.now, tick(1, 0, None).now, "a tick itself is what it was");
        assert_eq!((one.thread.major_faults, one.thread.llc_misses), (Some(2), None), "one is not known");
        let two = row.tick(tick(2, 0, None));
        assert_eq!((two.n, two.total.cycles), (3, 3));
        let last = Total { activity: 0, series: key(1), at_ns: S, total: one.now, last: true };
        assert_eq!(row.total(last).total.cycles, 4);
        let outlier = Outlier { activity: 0, series: key(1), at_ns: S / 2, value_ns: 9, trace: None };
        assert_eq!(row.outlier(outlier).at_ns, 3 * S + S / 2);
        assert_eq!(row.hole(Hole { at_ns: S, length_ns: 5 }), Hole { at_ns: 4 * S, length_ns: 5 });
    }

    #[test]
    fn a_second_restart_continues_the_row_and_an_immediate_one_loses_nothing() {
        let mut row = Splice::default();
        row.tick(tick(1, 0, None));
        row.begin(S, "once");
        let at_once = row.begin(S, "twice");
        assert_eq!((at_once.at_ns, at_once.first_tick), (S, 1));
        row.tick(tick(1, 0, None));
        let third = row.begin(S, "three times");
        assert_eq!((third.at_ns, third.first_tick), (2 * S, 2));
        assert_eq!(row.tick(tick(1, 0, None)).total.cycles, 3);
        let first = Splice::default().begin(S, "before its first tick");
        assert_eq!((first.at_ns, first.first_tick), (0, 0));
    }

    #[test]
    fn numbers_beyond_all_bounds_stay_within_them() {
        let mut row = Splice::default();
        let wild = Tick { n: u64::MAX, at_ns: u64::MAX, ..tick(1, 0, None) };
        row.tick(wild.clone());
        row.begin(u64::MAX, "");
        let again = row.tick(wild);
        assert_eq!((again.n, again.at_ns), (u64::MAX, u64::MAX));
    }
}
