//! The session's side of a measuring thread: its samples become histograms, totals and outliers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tactus_model::latency::{Latency, Sparse, Totals};
use tactus_model::message::{Counted, Outlier, ThreadCounters, Tick, Total, Windows};
use tactus_model::series::SeriesKey;
use tactus_model::trace::Trace;

use crate::clock::{Scale, Source};
use crate::counters::{self, OfCpu};
use crate::lane::{Lane, Spec};
use crate::reading::Marked;
use crate::stat::Stat;
use crate::sys;
use crate::windows::WindowMaxima;

/// Largest values kept per series.
const OUTLIERS: usize = 32;
/// Of these, the most that are sent with one tick.
const PER_TICK: usize = 4;
/// A thread may read its clock, be delayed, and store the reading later: its window stays open for this long, in ns.
const PUSHED_NS: u64 = 10_000_000;
/// Gaps below this do not count as outliers, in ns.
pub const SMALLEST_GAP: u64 = 1_000;

/// For this many of the largest values, the kernel's activity at their time is kept.
const WITNESSED: usize = 10;

/// A source that knows what the kernel did on a CPU.
pub trait Witness {
    /// Takes the readings that the source needs at intervals. Called each time that samples are taken in, before
    /// `between`.
    fn look(&self) {}
    /// The kernel's activity between two moments of CLOCK_MONOTONIC, in ns.
    fn between(&self, due: u64, seen: u64) -> Trace;
}

/// The largest values of a series with their times.
#[derive(Debug, Default)]
struct TopN {
    /// Largest first.
    kept: Vec<Kept>,
}

/// One of the largest values.
#[derive(Debug)]
struct Kept {
    value: u64,
    at: u64,
    sent: bool,
    trace: Option<Trace>,
}

impl TopN {
    /// Values up to this one are not among the largest.
    fn floor(&self) -> u64 {
        if self.kept.len() < OUTLIERS { 0 } else { self.kept.last().map_or(0, |last| last.value) }
    }

    /// `trace`: asked where the value is kept, with its place among them.
    fn offer(&mut self, value: u64, at: u64, trace: impl FnOnce(usize) -> Option<Trace>) {
        if value <= self.floor() && self.kept.len() == OUTLIERS {
            return;
        }
        let place = self.kept.partition_point(|kept| kept.value >= value);
        self.kept.insert(place, Kept { value, at, sent: false, trace: trace(place) });
        self.kept.truncate(OUTLIERS);
    }

    fn unsent(&mut self, most: usize) -> impl Iterator<Item = (u64, u64, Option<Trace>)> {
        self.kept.iter_mut().filter(|kept| !kept.sent).take(most).map(|kept| {
            kept.sent = true;
            (kept.value, kept.at, kept.trace.take())
        })
    }
}

/// One series while its job runs.
pub struct Series {
    /// The thread's side.
    pub lane: Arc<Lane>,
    began: u64,
    /// When its thread ends, CLOCK_MONOTONIC in ns.
    end: u64,
    now: Latency,
    total: Totals,
    largest: TopN,
    polled: Option<Polled>,
    before: ThreadCounters,
    /// Cycles that were left out where they are read, and that no tick has told of.
    unread: u64,
    /// The windows, if the job asks for them.
    windows: Option<WindowMaxima>,
    /// The source that knows who had the CPU, and the value above which it is asked for each, in ns.
    witness: Option<(Box<dyn Witness>, u64)>,
    n: u64,
}

/// The state of a series of gaps.
struct Polled {
    scale: Scale,
    state: Vec<u64>,
    sum_before: u64,
}

impl Series {
    /// Begins a series: earlier activity of the thread (the control) does not count.
    pub fn begin(lane: Arc<Lane>, stat: &Stat) -> Self {
        let before = counters(&lane, stat);
        Self { before, ..Self::uncounted(lane) }
    }

    /// The same without what its thread goes through: for a control.
    #[inline(never)]
    pub fn uncounted(lane: Arc<Lane>) -> Self {
        lane.ring.drain(|_| ());
        let _ = lane.ring.take_lost();
        if let Some(reading) = &lane.reading {
            reading.inbox().drain(&mut |_| ());
        }
        let polled = lane.gaps.as_ref().map(|gaps| {
            let scale = Source::find().scale();
            let mut state = Vec::new();
            let sum_before = gaps.since(&mut state).sum;
            gaps.set_floor(scale.ticks(SMALLEST_GAP));
            Polled { scale, state, sum_before }
        });
        Self {
            lane,
            began: 0,
            end: u64::MAX,
            now: Latency::new(),
            total: Totals::default(),
            largest: TopN::default(),
            polled,
            before: ThreadCounters::default(),
            unread: 0,
            windows: None,
            witness: None,
            n: 0,
        }
    }

    /// Keeps the largest latency of every window of this length, in ns. Not of gaps, of which only large ones are known
    /// one by one.
    pub fn keep_windows(&mut self, length_ns: u64) {
        self.windows = self.polled.is_none().then(|| WindowMaxima::new(length_ns, self.began));
    }

    /// Keeps the kernel's activity on the CPU during the largest values, and during every one above `above_ns` that is
    /// among the reported outliers.
    pub fn set_witness(&mut self, witness: Box<dyn Witness>, above_ns: u64) {
        self.witness = Some((witness, above_ns));
    }

    /// The windows that are over since the last time; to be asked after a tick. `last`: nothing more is measured.
    pub fn windows(&mut self, last: bool) -> Option<Windows> {
        let late = if last { 0 } else { PUSHED_NS };
        let (first, maxima) = self.windows.as_mut()?.over(sys::now().saturating_sub(late))?;
        let Spec { activity, series, .. } = &self.lane.spec;
        Some(Windows { activity: *activity, series: series.clone(), began_ns: self.began, first, maxima })
    }

    /// Says when the measurement starts and when its thread ends, CLOCK_MONOTONIC in ns.
    pub const fn set_span(&mut self, began: u64, end: u64) {
        (self.began, self.end) = (began, end);
    }

    /// Takes in the new samples of the thread. Call it several times within the four seconds that its ring holds.
    pub fn drain(&mut self) {
        let interval = self.lane.spec.interval_ns;
        let (now, largest, began, end) = (&mut self.now, &mut self.largest, self.began, self.end);
        let (timed, mut windows) = (self.polled.is_none(), self.windows.as_mut());
        let witness = self.witness.as_ref();
        if let Some((witness, _)) = witness {
            witness.look();
        }
        let witnessed = |at: u64, value: u64| {
            move |place: usize| {
                let (witness, above_ns) = witness?;
                let asked = place < WITNESSED || value > *above_ns;
                asked.then(|| witness.between(at.saturating_sub(value), at))
            }
        };
        self.lane.ring.drain(|sample| {
            if let Some(windows) = &mut windows {
                windows.take(sample.at, sample.value);
            }
            if timed {
                now.record_until(sample.value, interval, sample.left(interval, end));
            }
            largest.offer(sample.value, sample.at.saturating_sub(began), witnessed(sample.at, sample.value));
        });
        if let Some(reading) = &self.lane.reading {
            let left_out = reading.inbox().drain(&mut |marked| {
                let (at, value) = match marked {
                    Marked::Cycle { at, value, left } => {
                        now.record_until(value, interval, left);
                        (at, value)
                    }
                    Marked::Behind { at, value } => {
                        now.record_behind(value);
                        (at, value)
                    }
                };
                if let Some(windows) = &mut windows {
                    windows.take(at, value);
                }
                largest.offer(value, at.saturating_sub(began), witnessed(at, value));
            });
            // The lost values were cycles of unknown length. The first figures need one cycle that was read.
            self.unread = self.unread.saturating_add(left_out);
            if now.totals.cycles > 0 {
                now.totals.cycles = now.totals.cycles.saturating_add(std::mem::take(&mut self.unread));
            }
        }
        if let (Some(polled), Some(gaps)) = (&self.polled, &self.lane.gaps) {
            gaps.set_floor(polled.scale.ticks(self.largest.floor().max(SMALLEST_GAP)));
        }
    }

    /// Ends a tick: returns its values, and the new ones among the largest. `end`: it is the last one, with the
    /// processor's counts of the CPU.
    pub fn tick(&mut self, at_ns: u64, stat: &Stat, end: Option<OfCpu>) -> (Tick, Vec<Outlier>) {
        self.drain();
        self.take_exact();
        self.total.add(&self.now.totals);
        let mut counters = counters(&self.lane, stat);
        let SeriesKey { thread, .. } = self.lane.spec.series;
        counters.smi = end.and_then(|of_cpu| of_cpu.smi);
        // It belongs to the CPU, and is reported only once.
        counters.llc_misses = end.filter(|_| thread == 0).and_then(|of_cpu| of_cpu.llc_misses);
        let tick = Tick {
            activity: self.lane.spec.activity,
            series: self.lane.spec.series.clone(),
            n: self.n,
            at_ns,
            now: self.now.totals,
            total: self.total,
            counts: Sparse::of(&self.now.raw),
            missed: Sparse::of(&self.now.missed),
            thread: counters::since(&self.before, &counters),
        };
        self.n += 1;
        self.now.totals = Totals::default();
        self.now.raw.reset();
        if !self.now.missed.is_empty() {
            self.now.missed.reset();
        }
        let most = if end.is_some() { OUTLIERS } else { PER_TICK };
        let spec = &self.lane.spec;
        let outliers = self
            .largest
            .unsent(most)
            .map(|(value_ns, at_ns, trace)| Outlier {
                activity: spec.activity,
                series: spec.series.clone(),
                at_ns,
                value_ns,
                trace,
            })
            .collect();
        (tick, outliers)
    }

    /// The counts since the beginning, in the form of a tick's.
    #[inline(never)]
    pub fn counted(mut self) -> Counted {
        self.drain();
        self.take_exact();
        Counted { total: self.now.totals, counts: Sparse::of(&self.now.raw) }
    }

    /// The counts up to its last tick, `at_ns` after the beginning.
    pub fn total(&self, at_ns: u64, last: bool) -> Total {
        let spec = &self.lane.spec;
        Total { activity: spec.activity, series: spec.series.clone(), at_ns, total: self.total, last }
    }

    fn take_exact(&mut self) {
        let (Some(polled), Some(gaps)) = (&mut self.polled, &self.lane.gaps) else {
            let lost = self.lane.ring.take_lost();
            if let (1.., Some(windows)) = (lost.cycles, &mut self.windows) {
                windows.spoil();
            }
            self.now.totals.add(&lost);
            return;
        };
        let counted = gaps.since(&mut polled.state);
        for (ticks, count) in &counted.buckets {
            self.now.raw.saturating_record_n(polled.scale.ns(*ticks), *count);
        }
        if counted.cycles == 0 {
            return;
        }
        let sum_ns = polled.scale.ns(counted.sum - polled.sum_before);
        self.now.totals.add(&Totals {
            cycles: counted.cycles,
            overruns: 0,
            // An extreme is stored just after its count: it may belong to the next look.
            min_ns: if counted.min == u64::MAX { self.total.min_ns } else { polled.scale.ns(counted.min) },
            max_ns: polled.scale.ns(counted.max),
            sum_ns: sum_ns.saturating_sub(self.total.sum_ns),
        });
    }
}

/// The counters of its thread. If another program or the kernel measures, only the CPU's counts are known.
fn counters(lane: &Lane, stat: &Stat) -> ThreadCounters {
    let tid = if lane.reading.is_some() { 0 } else { lane.tid.load(Ordering::Acquire) };
    counters::read(tid, lane.spec.series.cpu, stat)
}

#[cfg(test)]
mod tests {
    use tactus_model::scheduling::Policy;

    use super::*;
    use crate::gaps::GapHistogram;
    use crate::ring::Sample;

    fn lane(gaps: Option<GapHistogram>) -> Arc<Lane> {
        let series = SeriesKey { cpu: 0, thread: 0, priority: 0, kind: "thread".into() };
        let interval_ns = if gaps.is_some() { 0 } else { 1_000 };
        let spec = Spec {
            activity: 3,
            series,
            interval_ns,
            policy: Policy::Other,
            limit_ns: u64::MAX,
            busy: 95,
            reads_on: None,
        };
        Arc::new(Lane::new(spec, gaps, Arc::default()))
    }

    #[test]
    fn ticks_add_up_to_the_total_and_swallowed_periods_are_put_back() {
        let lane = lane(None);
        let mut series = Series::begin(Arc::clone(&lane), &Stat::default());
        series.set_span(100, u64::MAX);
        let mut writer = lane.ring.writer(1_000, u64::MAX);
        for value in [10, 20, 2_500] {
            writer.push(Sample { at: 1_100, value });
        }
        let (first, outliers) = series.tick(1_000, &Stat::default(), None);
        assert_eq!((first.n, first.now.cycles, first.now.overruns, first.now.max_ns), (0, 3, 2, 2_500));
        let missed: u64 = first.missed.buckets().unwrap().iter().map(|(_, count)| count).sum();
        assert_eq!(missed, 2);
        assert_eq!(outliers.iter().map(|o| o.value_ns).collect::<Vec<_>>(), [2_500, 20, 10]);
        assert!(outliers.iter().all(|o| o.at_ns == 1_000));
        writer.push(Sample { at: 2_000, value: 5 });
        let (second, _) = series.tick(2_000, &Stat::default(), Some(OfCpu::default()));
        assert_eq!((second.n, second.now.cycles, second.total.cycles, second.total.sum_ns), (1, 1, 4, 2_535));
        assert_eq!((second.now.min_ns, second.total.max_ns), (5, 2_500));
        assert!(second.missed.is_empty());
    }

    #[test]
    fn what_the_processor_counted_is_said_at_the_end_and_of_no_other_tick() {
        let lane = lane(None);
        let mut series = Series::begin(lane, &Stat::default());
        let counted = OfCpu { smi: Some(2), llc_misses: Some(77) };
        let (tick, _) = series.tick(1, &Stat::default(), None);
        assert_eq!((tick.thread.smi, tick.thread.llc_misses), (None, None));
        let (tick, _) = series.tick(2, &Stat::default(), Some(counted));
        assert_eq!((tick.thread.smi, tick.thread.llc_misses), (Some(2), Some(77)));
    }

    #[test]
    fn what_was_measured_before_the_beginning_does_not_count() {
        let lane = lane(None);
        lane.ring.writer(1_000, u64::MAX).push(Sample { at: 1, value: 9_999_999 });
        let (tick, outliers) =
            Series::begin(lane, &Stat::default()).tick(1, &Stat::default(), Some(OfCpu::default()));
        assert_eq!(tick.total, Totals::default());
        assert!(outliers.is_empty());
    }

    #[test]
    fn the_largest_values_are_sent_once_and_at_most_four_a_tick() {
        let mut largest = TopN::default();
        (1..=100).for_each(|value| largest.offer(value, value, |_| None));
        assert_eq!(largest.floor(), 69);
        assert_eq!(largest.unsent(PER_TICK).map(|(value, ..)| value).collect::<Vec<_>>(), [100, 99, 98, 97]);
        largest.offer(1_000, 7, |_| None);
        assert_eq!(
            largest.unsent(PER_TICK).map(|(value, ..)| value).collect::<Vec<_>>(),
            [1_000, 96, 95, 94]
        );
        assert_eq!(largest.unsent(OUTLIERS).count(), 24);
        assert_eq!(largest.unsent(OUTLIERS).count(), 0);
    }

    #[test]
    fn windows_are_told_where_they_are_asked_for() {
        let mut gaps = Series::begin(lane(Some(GapHistogram::new(0))), &Stat::default());
        gaps.keep_windows(1);
        assert!(gaps.windows.is_none(), "only large ones are known one by one");
        let lane = lane(None);
        let mut series = Series::begin(Arc::clone(&lane), &Stat::default());
        assert_eq!(series.windows(true), None);
        let began = sys::now() - 1_000_000_000;
        series.set_span(began, u64::MAX);
        series.keep_windows(100_000_000);
        let mut writer = lane.ring.writer(1_000, u64::MAX);
        writer.push(Sample { at: began + 500_000_000, value: 77 });
        let _ = series.tick(1, &Stat::default(), None);
        let told = series.windows(true).unwrap();
        assert_eq!((told.activity, told.began_ns, told.maxima.iter().max()), (3, began, Some(&77)));
        let at = (began + 500_000_000) / 100_000_000 - told.first;
        assert_eq!(told.maxima[usize::try_from(at).unwrap()], 77);
    }

    #[test]
    fn a_control_of_gaps_is_seen_however_many_large_ones_fill_the_ring_before_it() {
        let lane = lane(Some(GapHistogram::new(0)));
        let (gaps, scale) = (lane.gaps.as_ref().unwrap(), Source::find().scale());
        let series = Series::uncounted(Arc::clone(&lane));
        let mut writer = lane.ring.writer(0, u64::MAX);
        let mut poll = |ns: u64| {
            gaps.count(scale.ticks(ns));
            writer.push(Sample { at: 1, value: ns });
        };
        (0..5_000).for_each(|_| poll(2_000));
        poll(1_000_000);
        let seen = series.counted().largest().unwrap();
        assert!(seen.abs_diff(1_000_000) <= 1_500, "{seen}");
    }

    #[test]
    fn what_is_left_of_a_late_wake_up_after_the_end_is_not_missed() {
        let lane = lane(None);
        let mut series = Series::begin(Arc::clone(&lane), &Stat::default());
        series.set_span(1_000, 5_000);
        // Due at 3000 and woken at 9500: only the due time at 4000 was still wanted.
        lane.ring.writer(1_000, 5_000).push(Sample { at: 9_500, value: 6_500 });
        let (tick, _) = series.tick(4_000, &Stat::default(), Some(OfCpu::default()));
        assert_eq!((tick.total.cycles, tick.total.overruns), (1, 1));
        let missed = tick.missed.buckets().unwrap();
        assert!(missed.len() == 1 && missed[0].1 == 1 && missed[0].0.abs_diff(5_500) <= 5, "{missed:?}");
    }

    #[test]
    fn gaps_of_a_tick_have_exact_extremes_and_a_sum() {
        let lane = lane(Some(GapHistogram::new(0)));
        let gaps = lane.gaps.as_ref().unwrap();
        gaps.count(1_000_000);
        let mut series = Series::begin(Arc::clone(&lane), &Stat::default());
        let scale = series.polled.as_ref().unwrap().scale;
        [50, 70, 5_000].into_iter().for_each(|ticks| gaps.count(ticks));
        let (tick, _) = series.tick(1, &Stat::default(), None);
        assert_eq!(tick.now.cycles, 3);
        assert_eq!((tick.now.min_ns, tick.now.max_ns), (scale.ns(50), scale.ns(5_000)));
        assert_eq!(tick.total.sum_ns, scale.ns(5_120));
        assert_eq!(series.tick(2, &Stat::default(), None).0.now, Totals::default());
    }
}
