//! Readings become what a probe would send: ticks of series. Pure.
//!
//! cyclictest's status carries totals since its own beginning and no distribution: then quantiles stay
//! unknown. Its histogram, its `-v` values and the demonstrations' timers carry one.

use std::collections::BTreeMap;

use tactus_model::latency::{Latency, Sparse, Totals};
use tactus_model::message::{Outlier, ThreadCounters, Tick};
use tactus_model::series::SeriesKey;

use tactus_format::lines::{Figure, Reading, Status};

/// Values from which on a sequence number says nothing about what was lost.
const MOST_LOST: u64 = 1_000_000;
/// The most numbers of a histogram that are kept: 64 threads by 100000 values, and more.
const MOST_NUMBERS: usize = 8_000_000;
/// The size of a histogram's row beside its counts, in numbers.
const ROW: usize = 7;
/// The most threads that are kept, if the plan does not name more CPUs: each takes half a MB.
const MOST_THREADS: usize = 64;
/// Largest values of a series that are told in one tick.
const OUTLIERS: usize = 4;

/// How lines become series.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The measuring activity.
    pub activity: u32,
    /// CPUs that the plan names: the n-th thread's is the n-th. Where there are too few, a thread's number
    /// stands for its CPU.
    pub cpus: Vec<u32>,
    /// Priority of threads whose lines do not say it.
    pub priority: u32,
    /// One unit of the lines, in ns.
    pub unit_ns: u64,
}

/// The readings since the measurement began.
#[derive(Debug)]
pub struct Collector {
    rules: Rules,
    series: BTreeMap<u32, Series>,
    histogram: Option<Histogram>,
    /// Whether a histogram has come to its end.
    pub finished: bool,
    /// Whether a status said what was measured before the measurement began.
    pub older: bool,
    /// The interval of its first thread, in ns, where it says one.
    pub interval_ns: Option<u64>,
    n: u64,
}

#[derive(Debug, Default)]
struct Series {
    priority: Option<u32>,
    now: Latency,
    /// Of values that were counted one by one.
    total: Totals,
    status: Option<Standing>,
    cycle: Option<u64>,
    largest: Vec<(u64, u64)>,
    /// Interrupts of the firmware: at first, and at last.
    smi: Option<(u64, u64)>,
    /// The totals of the last report.
    told: Totals,
}

/// The status lines of a thread.
#[derive(Debug)]
struct Standing {
    last: Status,
    /// Its values when the measurement began.
    before: u64,
    /// Totals of runs that ended before this one, where it was started again.
    past: Totals,
}

#[derive(Debug, Default)]
struct Histogram {
    rows: Vec<(u64, Vec<u64>)>,
    numbers: usize,
    figures: BTreeMap<u8, Vec<u64>>,
}

impl Collector {
    /// Nothing was read yet.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            series: BTreeMap::new(),
            histogram: None,
            finished: false,
            older: false,
            interval_ns: None,
            n: 0,
        }
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Whether any series has a distribution.
    pub fn has_distribution(&self) -> bool {
        self.series.values().any(|series| series.total.cycles > 0)
    }

    /// Takes in a reading that arrived `at_ns` after the beginning.
    pub fn take(&mut self, reading: Reading, at_ns: u64) {
        match reading {
            Reading::Status(status) => self.status(status),
            Reading::Sample { thread, cycle, value, smi } => {
                let value_ns = value.saturating_mul(self.rules.unit_ns);
                if let Some(series) = self.series(thread) {
                    series.sample(cycle, value_ns, at_ns, smi);
                }
            }
            Reading::Histogram => self.histogram = Some(Histogram::default()),
            Reading::Bucket(value, counts) => {
                if let Some(histogram) = &mut self.histogram
                    && histogram.numbers < MOST_NUMBERS
                {
                    histogram.numbers += counts.len() + ROW;
                    histogram.rows.push((value, counts));
                }
            }
            Reading::Figure(figure, numbers) => {
                if let Some(histogram) = &mut self.histogram {
                    histogram.figures.insert(figure as u8, numbers);
                    if figure == Figure::Overflows {
                        self.end_histogram();
                    }
                }
            }
        }
    }

    /// The series of a thread; none where there are more threads than can be.
    fn series(&mut self, thread: u32) -> Option<&mut Series> {
        let most = self.rules.cpus.len().max(MOST_THREADS);
        if !self.series.contains_key(&thread) && self.series.len() >= most {
            return None;
        }
        Some(self.series.entry(thread).or_default())
    }

    fn status(&mut self, status: Status) {
        if status.thread == 0 {
            self.interval_ns = status.interval_us.checked_mul(1_000);
        }
        let unit_ns = self.rules.unit_ns;
        let mut older = false;
        let Some(series) = self.series(status.thread) else { return };
        series.priority = Some(status.priority);
        series.count_smi(status.smi);
        match &mut series.status {
            None => {
                // The first one of a scenario speaks of what was before it, too.
                older = status.cycles > 10;
                let before = status.cycles.saturating_sub(1);
                series.status = Some(Standing { last: status, before, past: Totals::default() });
            }
            Some(standing) if status.cycles < standing.last.cycles => {
                let past = standing.totals(unit_ns);
                *standing = Standing { last: status, before: 0, past };
            }
            Some(standing) => standing.last = status,
        }
        self.older |= older;
    }

    /// A histogram whose figures agree with its rows becomes the distribution of its threads; else it is
    /// left, with the totals that stand behind it.
    fn end_histogram(&mut self) {
        let Some(histogram) = self.histogram.take() else { return };
        let figure = |figure: Figure| histogram.figures.get(&(figure as u8));
        let (Some(min), Some(avg), Some(max), Some(over)) =
            (figure(Figure::Min), figure(Figure::Avg), figure(Figure::Max), figure(Figure::Overflows))
        else {
            return;
        };
        self.finished = true;
        let unit_ns = self.rules.unit_ns;
        let scale = |value: u64| value.saturating_mul(unit_ns);
        for thread in 0..min.len() {
            let at = |numbers: &Vec<u64>| numbers.get(thread).copied();
            let (Some(min), Some(avg), Some(max), Some(over)) = (at(min), at(avg), at(max), at(over)) else {
                continue;
            };
            let mut latency = Latency::new();
            let mut rows = 0u64;
            for (value, counts) in &histogram.rows {
                let count = counts.get(thread).copied().unwrap_or(0);
                rows = rows.saturating_add(count);
                latency.raw.saturating_record_n(scale(*value), count);
            }
            // Rows that were lost on the way are counted as lost, never guessed.
            let counted = figure(Figure::Total).and_then(at).unwrap_or(rows).max(rows);
            // Of what is beyond the histogram only the largest is known: no quantile is then too small.
            latency.raw.saturating_record_n(scale(max), over);
            let cycles = counted.saturating_add(over);
            if cycles == 0 || min > max {
                continue;
            }
            latency.totals = Totals {
                cycles,
                overruns: 0,
                min_ns: scale(min),
                max_ns: scale(max),
                sum_ns: scale(avg).saturating_mul(cycles),
            };
            let number = u32::try_from(thread).unwrap_or(u32::MAX);
            let Some(series) = self.series(number) else { return };
            series.total = latency.totals;
            series.now = latency;
        }
    }

    /// Ends a tick at `at_ns` after the beginning: one for each series, and its largest new values.
    pub fn tick(&mut self, at_ns: u64) -> Vec<(Tick, Vec<Outlier>)> {
        let n = self.n;
        self.n += 1;
        let (rules, series) = (&self.rules, &mut self.series);
        series
            .iter_mut()
            .map(|(thread, series)| {
                let place = usize::try_from(*thread).ok().and_then(|at| rules.cpus.get(at));
                let key = SeriesKey {
                    cpu: place.copied().unwrap_or(*thread),
                    thread: *thread,
                    priority: series.priority.unwrap_or(rules.priority),
                    kind: "thread".into(),
                };
                series.tick(rules, &key, n, at_ns)
            })
            .collect()
    }
}

impl Standing {
    fn totals(&self, unit_ns: u64) -> Totals {
        let Status { cycles, min, avg, max, .. } = self.last;
        let cycles = cycles.saturating_sub(self.before);
        let scale = |value: u64| value.saturating_mul(unit_ns);
        let mut totals = self.past;
        totals.add(&Totals {
            cycles,
            overruns: 0,
            min_ns: scale(min),
            max_ns: scale(max),
            sum_ns: scale(avg).saturating_mul(cycles),
        });
        totals
    }
}

impl Series {
    fn sample(&mut self, cycle: Option<u64>, value_ns: u64, at_ns: u64, smi: Option<u64>) {
        let expected = self.cycle.and_then(|last| last.checked_add(1));
        // Samples that are missing in its sequence numbers were measured, but did not arrive.
        if let (Some(cycle), Some(expected)) = (cycle, expected)
            && let Some(lost) = cycle.checked_sub(expected).filter(|lost| *lost < MOST_LOST)
        {
            self.total.cycles = self.total.cycles.saturating_add(lost);
        }
        self.cycle = cycle.or(self.cycle);
        self.count_smi(smi);
        self.now.record(value_ns, 0);
        self.total.add(&Totals {
            cycles: 1,
            overruns: 0,
            min_ns: value_ns,
            max_ns: value_ns,
            sum_ns: value_ns,
        });
        self.largest.push((value_ns, at_ns));
        self.largest.sort_unstable_by(|a, b| b.cmp(a));
        self.largest.truncate(OUTLIERS);
    }

    fn count_smi(&mut self, now: Option<u64>) {
        let Some(now) = now else { return };
        match &mut self.smi {
            None => self.smi = Some((now, now)),
            // A counter does not fall: that number lost a digit.
            Some((_, last)) => *last = now.max(*last),
        }
    }

    fn tick(&mut self, rules: &Rules, key: &SeriesKey, n: u64, at_ns: u64) -> (Tick, Vec<Outlier>) {
        let (total, now) = match &self.status {
            // One by one, or a histogram of all of them: more than a status says.
            _ if self.total.cycles > 0 => (self.total, self.now.totals),
            Some(standing) => {
                let total = standing.totals(rules.unit_ns);
                // Extremes of this stretch alone are not known, but for a maximum that is new.
                let grown = total.max_ns > self.told.max_ns && self.told.cycles > 0;
                let now = Totals {
                    cycles: total.cycles.saturating_sub(self.told.cycles),
                    max_ns: if grown { total.max_ns } else { 0 },
                    ..Totals::default()
                };
                (total, now)
            }
            None => (self.total, self.now.totals),
        };
        let tick = Tick {
            activity: rules.activity,
            series: key.clone(),
            n,
            at_ns,
            now,
            total,
            counts: Sparse::of(&self.now.raw),
            missed: Sparse::default(),
            thread: ThreadCounters {
                smi: self.smi.map(|(first, last)| last - first),
                ..ThreadCounters::default()
            },
        };
        self.told = total;
        self.now.clear();
        let outliers = self
            .largest
            .drain(..)
            .map(|(value_ns, at_ns)| Outlier {
                activity: rules.activity,
                series: key.clone(),
                at_ns,
                value_ns,
                trace: None,
            })
            .collect();
        (tick, outliers)
    }
}

#[cfg(test)]
mod tests;
