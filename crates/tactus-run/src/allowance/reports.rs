//! Limits on a probe's reports of its job: the plan determines how many ticks and series there can be. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tactus_model::buckets::BUCKETS;
use tactus_model::catalogue::Item;
use tactus_model::histograms::MOST_COUNTED;
use tactus_model::latency::{HIGHEST_NS, Sparse, Totals};
use tactus_model::message::{
    Activity, BreakdownOf, CardOf, Done, Injected, Job, Outlier, Tick, Total, Trial, Value, What, Windows,
};
use tactus_model::outcome::breakdown::Breakdown;
use tactus_model::outcome::{CardCounts, Point, ValueResult};
use tactus_model::series::{SeriesKey, Thread, ThreadCounters};

use super::{Excess, LONGEST_NAME, LONGEST_TEXT, clip, count, longest};
use crate::plan::threads;

/// Ticks beyond those that fit into the duration: the last one, which ends with it, and one where somebody was held up.
const MORE_TICKS: u64 = 3;
/// Largest values of a series that are said with each tick, and at its end.
const OUTLIERS_PER_TICK: u64 = 4;
const LAST_OUTLIERS: u64 = 64;
/// Largest values of a series that may come with what the kernel did meanwhile; those beyond come without. Of a day of
/// 432 million wake-ups some 560 are among the 32 largest so far when they come.
const MOST_TRACES: u64 = 1024;
/// Words on the last totals of a series, beside one with each tick: they are said several times.
const LAST_TOTALS: u64 = 16;
/// Most windows that one message tells of: a probe keeps a hundred for a channel that is busy.
const MOST_WINDOWS: usize = 128;
/// Most controls that a thread tells of: one of each stage, and the one at the end once more for each scenario.
const MOST_TRIALS: u64 = 16;
/// Most items of a measurement that yields values, and points of those that are curves: `memory` has six of up to thirty.
const MOST_ITEMS: usize = 256;
/// Phases of a measurement whose use of time is reported: `network` has two.
const MOST_PHASES: u64 = 4;
/// CPUs that it may be told of, and threads and kinds of interrupts: probes tell of sixteen.
const MOST_CPUS: usize = 4096;
const MOST_NAMED: usize = 64;
/// Counts of all kinds of interrupts in one phase: thirty-two kinds on 1024 CPUs. The limit exists because a reader
/// must be able to read a row with all of its phases.
const MOST_COUNTS: usize = 1 << 15;
/// The most numbers of histograms (a value or a count each) that a tick of one series has on average. The 8192
/// buckets hold all values from 1 ns to 150 us, or eight octaves beyond 2 us.
const NUMBERS_PER_TICK: u64 = 2 * 8192;
/// Numbers of a histogram of every bucket.
const MOST_NUMBERS: usize = 2 * BUCKETS;
/// Series that an instrument of others may have where the plan names fewer CPUs: it numbers its threads itself.
const MOST_IMPORTED: usize = 64;

/// Latest time that a clock shows which stands for anything, in ns: 146 years.
pub(super) const LATEST_NS: u64 = 1 << 62;

/// The reports of a job so far, and their limits.
#[derive(Debug, Default)]
pub(super) struct Reports {
    activities: BTreeMap<u32, Reported>,
    /// Faults, and loads that report when they ran, that have not been reported yet.
    disturb: BTreeMap<u32, Activity>,
    /// Loads that count their rounds.
    loads: usize,
    /// Ticks of each series.
    ticks: u64,
    /// The longest time that anything in it can have taken, in ns.
    longest_ns: u64,
    /// Whether windows of time are told.
    windows: bool,
    numbers: u64,
    most_numbers: u64,
    /// The sum of the counts in all histograms.
    counted: u64,
}

/// The reports of a job before its environment died: the next start continues with them, in the same rows.
#[derive(Debug, Default)]
pub(crate) struct Before {
    series: BTreeMap<(u32, Thread), SeriesKey>,
    counted: u64,
    numbers: u64,
    most_numbers: u64,
}

/// The reports of a measurement.
#[derive(Debug, Default)]
struct Reported {
    threads: Threads,
    series: BTreeMap<Thread, OfSeries>,
    /// The items whose values it yields.
    known: &'static [Item],
    items: BTreeSet<(String, Option<Point>)>,
    said: u64,
    breakdowns: u64,
    cards: u64,
}

/// The threads that may report.
#[derive(Debug)]
enum Threads {
    /// These, each as one series.
    Planned(BTreeSet<Thread>),
    /// A number of threads, with any ids.
    AsMany(usize),
}

impl Default for Threads {
    fn default() -> Self {
        Self::AsMany(0)
    }
}

/// The reports of a series: how many of each kind.
#[derive(Debug)]
struct OfSeries {
    key: SeriesKey,
    next_tick: u64,
    totals: u64,
    windows: u64,
    outliers: u64,
    traces: u64,
    trials: u64,
}

impl OfSeries {
    const fn new(key: SeriesKey) -> Self {
        Self { key, next_tick: 0, totals: 0, windows: 0, outliers: 0, traces: 0, trials: 0 }
    }
}

impl Reports {
    /// Of a job that an environment gets, after what it reported of it in earlier starts.
    pub fn of(job: &Job, imported: bool, before: Option<&Before>) -> Self {
        let measured = job.activities.iter().filter_map(|activity| {
            let What::Measure { measure, .. } = &activity.what else { return None };
            let planned: BTreeSet<Thread> = threads(measure, &activity.cpus).into_iter().flatten().collect();
            let threads = match imported {
                true => Threads::AsMany(planned.len().max(MOST_IMPORTED)),
                false => Threads::Planned(planned),
            };
            Some((activity.id, Reported { threads, known: measure.entry().items, ..Reported::default() }))
        });
        let mut activities: BTreeMap<u32, Reported> = measured.collect();
        let ticks = (job.duration_ns / job.tick_ns.max(1)).saturating_add(MORE_TICKS);
        let series: u64 = activities.values().map(|reported| reported.threads.count()).sum();
        let longest = longest(Duration::from_nanos(job.duration_ns), 5).as_nanos();
        let numbers = |ticks: u64| NUMBERS_PER_TICK.saturating_mul(ticks).saturating_mul(series);
        let most_numbers = before.map_or_else(
            || numbers(ticks),
            // The probe itself says how much is left to measure: that is not trusted.
            |before| before.most_numbers.saturating_add(numbers(MORE_TICKS)),
        );
        for ((activity, thread), key) in before.iter().flat_map(|before| &before.series) {
            if let Some(reported) = activities.get_mut(activity) {
                reported.series.insert(*thread, OfSeries::new(key.clone()));
            }
        }
        let disturbs = |activity: &&Activity| match activity.what {
            What::Fault(_) => true,
            What::Load(_) => job.lock_in.is_some(),
            What::Measure { .. } => false,
        };
        let disturb = job.activities.iter().filter(disturbs);
        Self {
            ticks,
            longest_ns: u64::try_from(longest).unwrap_or(u64::MAX),
            windows: job.lock_in.is_some(),
            disturb: disturb.map(|activity| (activity.id, activity.clone())).collect(),
            loads: job.activities.iter().filter(|activity| matches!(activity.what, What::Load(_))).count(),
            numbers: before.map_or(0, |before| before.numbers),
            counted: before.map_or(0, |before| before.counted),
            most_numbers,
            activities,
        }
    }

    /// The state that the next start of its environment continues with; `None`: it was given no job.
    pub fn before(&self) -> Option<Before> {
        let series = self.activities.iter().flat_map(|(activity, reported)| {
            reported.series.iter().map(|(thread, own)| ((*activity, *thread), own.key.clone()))
        });
        let Self { counted, numbers, most_numbers, .. } = *self;
        (self.ticks > 0).then(|| Before { series: series.collect(), counted, numbers, most_numbers })
    }

    /// The highest latency that there can be: a histogram has room for it, or it fits into the job.
    fn highest_ns(&self) -> u64 {
        self.longest_ns.max(HIGHEST_NS)
    }

    /// How many threads it measures with.
    pub fn threads(&self) -> u64 {
        self.activities.values().map(|reported| reported.threads.count()).sum()
    }

    pub fn tick(&mut self, tick: &mut Tick) -> Result<(), Excess> {
        let most = self.ticks;
        let series = self.series(tick.activity, &tick.series)?;
        let (n, key) = (tick.n, &series.key);
        if n >= most {
            return Err(Excess(format!("sent tick {n} of {key}, of which there are {most}")));
        }
        // Readers know a tick that they have read by its number.
        if n < series.next_tick {
            return Err(Excess(format!("sent tick {n} of {key} after tick {}", series.next_tick - 1)));
        }
        series.next_tick = n + 1;
        tick.at_ns = tick.at_ns.min(self.longest_ns);
        self.totals(&mut tick.now);
        self.totals(&mut tick.total);
        self.counters(&mut tick.thread);
        self.histogram(&tick.counts)?;
        self.histogram(&tick.missed)
    }

    pub fn total(&mut self, total: &mut Total) -> Result<(), Excess> {
        let most = self.ticks.saturating_add(LAST_TOTALS);
        let series = self.series(total.activity, &total.series)?;
        count(&mut series.totals, most, &format!("totals of {}", series.key))?;
        total.at_ns = total.at_ns.min(self.longest_ns);
        self.totals(&mut total.total);
        Ok(())
    }

    pub fn windows(&mut self, windows: &mut Windows) -> Result<(), Excess> {
        let most = if self.windows { self.ticks } else { 0 };
        let series = self.series(windows.activity, &windows.series)?;
        count(&mut series.windows, most, &format!("messages on windows of time of {}", series.key))?;
        if windows.maxima.len() > MOST_WINDOWS {
            return Err(Excess(format!("sent more than {MOST_WINDOWS} windows of time at once")));
        }
        windows.began_ns = windows.began_ns.min(LATEST_NS);
        windows.first = windows.first.min(LATEST_NS);
        let highest = self.highest_ns();
        windows.maxima.iter_mut().for_each(|max_ns| *max_ns = (*max_ns).min(highest));
        Ok(())
    }

    pub fn outlier(&mut self, outlier: &mut Outlier) -> Result<(), Excess> {
        let most = self.ticks.saturating_mul(OUTLIERS_PER_TICK).saturating_add(LAST_OUTLIERS);
        let series = self.series(outlier.activity, &outlier.series)?;
        count(&mut series.outliers, most, &format!("outliers of {}", series.key))?;
        series.traces = series.traces.saturating_add(u64::from(outlier.trace.is_some()));
        let untold = series.traces > MOST_TRACES;
        outlier.at_ns = outlier.at_ns.min(self.longest_ns);
        outlier.value_ns = outlier.value_ns.min(self.highest_ns());
        outlier.trace.take_if(|_| untold);
        if let Some(trace) = &mut outlier.trace {
            trace.limit();
        }
        Ok(())
    }

    pub fn trial(&mut self, trial: &mut Trial) -> Result<(), Excess> {
        let series = self.series(trial.activity, &trial.series)?;
        count(&mut series.trials, MOST_TRIALS, &format!("self-tests of {}", series.key))?;
        clip(&mut trial.by, LONGEST_NAME);
        for counted in [&mut trial.quiet, &mut trial.held] {
            self.totals(&mut counted.total);
            if counted.counts.0.len() > MOST_NUMBERS {
                return Err(Excess("sent a histogram of more values than there are".into()));
            }
        }
        Ok(())
    }

    pub fn value(&mut self, value: &mut Value) -> Result<(), Excess> {
        let most = self.ticks.saturating_mul(u64::try_from(MOST_ITEMS).unwrap_or(u64::MAX));
        let reported = self.reported(value.activity)?;
        let ValueResult { item, unit, better, at, .. } = &mut value.value;
        clip(item, LONGEST_NAME);
        let Some(known) = reported.known.iter().find(|known| known.name == item) else {
            return Err(Excess(format!("sent a value of `{item}`, which is not measured")));
        };
        // The direction in which values are better decides a verdict.
        if (*unit, *better) != (known.unit, known.better) {
            return Err(Excess(format!("sent `{item}` as something else than {}", known.unit)));
        }
        count(&mut reported.said, most, "values")?;
        let item = (item.clone(), *at);
        if !reported.items.contains(&item) {
            if reported.items.len() == MOST_ITEMS {
                return Err(Excess(format!("sent values of more than {MOST_ITEMS} items")));
            }
            reported.items.insert(item);
        }
        Ok(())
    }

    pub fn card(&mut self, card: &mut CardOf) -> Result<(), Excess> {
        let reported = self.reported(card.activity)?;
        if !reported.known.is_empty() {
            return Err(Excess("sent card counts in a measurement without a card".into()));
        }
        count(&mut reported.cards, 1, "accounts of a card")?;
        let CardCounts { lost, late, duplicates, left_out } = &mut card.counts;
        [lost, late, duplicates, left_out].into_iter().for_each(|of| *of = (*of).min(MOST_COUNTED));
        Ok(())
    }

    pub fn breakdown(&mut self, of: &mut BreakdownOf) -> Result<(), Excess> {
        let reported = self.reported(of.activity)?;
        if reported.known.is_empty() {
            return Err(Excess("sent the CPU time of a measurement without values".into()));
        }
        count(&mut reported.breakdowns, MOST_PHASES, "phases of a measurement")?;
        let Breakdown { phase, ns, switches, cpus, threads, interrupts, softirqs } = &mut of.breakdown;
        *ns = (*ns).min(self.longest_ns);
        *switches = (*switches).min(MOST_COUNTED);
        phase.iter_mut().for_each(|phase| clip(phase, LONGEST_NAME));
        // Free the memory of the rest: the message may wait long, for a slow disk or follower.
        cpus.truncate(MOST_CPUS);
        cpus.shrink_to_fit();
        threads.truncate(MOST_NAMED);
        threads.shrink_to_fit();
        for thread in threads {
            clip(&mut thread.name, LONGEST_NAME);
            clip(&mut thread.process, LONGEST_NAME);
        }
        let mut room = MOST_COUNTS;
        for kinds in [interrupts, softirqs] {
            kinds.truncate(MOST_NAMED);
            // The most frequent come first; half of one would be a wrong number of it.
            kinds.retain_mut(|kind| {
                clip(&mut kind.name, LONGEST_NAME);
                kind.counts.truncate(MOST_CPUS);
                kind.counts.shrink_to_fit();
                let left = room.checked_sub(kind.counts.len());
                room = left.unwrap_or(room);
                left.is_some()
            });
            kinds.shrink_to_fit();
        }
        Ok(())
    }

    /// Of a fault or a load of its job, once, and as its plan has it: it stands in the rows of all environments.
    pub fn injected(&mut self, injected: &mut Injected) -> Result<(), Excess> {
        let Injected { activity, kind, way, cpus, length_ns, every_ns, times, longest_ns, .. } = injected;
        let Some(planned) = self.disturb.remove(activity) else {
            return Err(Excess(format!(
                "reported a fault in activity {activity}, which was given none or has already reported it"
            )));
        };
        let own = planned.what.kind();
        if kind != own || *cpus != planned.cpus {
            clip(kind, LONGEST_NAME);
            return Err(Excess(format!(
                "reported a fault `{kind}` on CPUs {cpus}, but `{own}` belongs on {}",
                planned.cpus
            )));
        }
        clip(way, LONGEST_TEXT);
        let most = self.highest_ns();
        (*length_ns, *every_ns) = match planned.what {
            What::Fault(fault) => fault.size(),
            What::Load(_) | What::Measure { .. } => ((*length_ns).min(most), (*every_ns).min(most)),
        };
        longest_ns.iter_mut().for_each(|longest_ns| *longest_ns = (*longest_ns).min(most));
        times.iter_mut().for_each(|times| *times = (*times).min(MOST_COUNTED));
        Ok(())
    }

    pub fn done(&self, done: &mut Done) -> Result<(), Excess> {
        let most = self.loads;
        if done.load_rounds.len() > most {
            return Err(Excess(format!("counted the rounds of more than {most} loads")));
        }
        done.load_rounds.iter_mut().for_each(|(_, rounds)| *rounds = (*rounds).min(MOST_COUNTED));
        done.measured_ns = done.measured_ns.min(self.longest_ns);
        done.jump_ns = done.jump_ns.min(LATEST_NS);
        Ok(())
    }

    fn reported(&mut self, activity: u32) -> Result<&mut Reported, Excess> {
        let unknown = || Excess(format!("reported on activity {activity}, which it was not given"));
        self.activities.get_mut(&activity).ok_or_else(unknown)
    }

    /// The reports of a series; the first series of a thread stays that thread's.
    fn series(&mut self, activity: u32, key: &SeriesKey) -> Result<&mut OfSeries, Excess> {
        let Reported { threads, series, .. } = self.reported(activity)?;
        let thread = key.of_thread();
        let none = |key: &SeriesKey| {
            let mut kind = key.kind.clone();
            clip(&mut kind, LONGEST_NAME);
            Excess(format!(
                "reported on the series cpu{}/t{}/{kind}, which the plan does not have",
                key.cpu, key.thread
            ))
        };
        if !series.contains_key(&thread) {
            if !is_word(&key.kind) || !threads.have(thread, series.len()) {
                return Err(none(key));
            }
            series.insert(thread, OfSeries::new(key.clone()));
        }
        series.get_mut(&thread).filter(|own| own.key == *key).ok_or_else(|| none(key))
    }

    /// Counts that no time holds and latencies longer than the job become the largest that there can be.
    fn totals(&self, totals: &mut Totals) {
        let highest = self.highest_ns();
        totals.cycles = totals.cycles.min(MOST_COUNTED);
        totals.overruns = totals.overruns.min(MOST_COUNTED);
        totals.max_ns = totals.max_ns.min(highest);
        // The largest number means that there is no minimum yet.
        if totals.min_ns != u64::MAX || totals.cycles > 0 {
            totals.min_ns = totals.min_ns.min(highest);
        }
    }

    /// Counters of a thread included; times of a long job may be more than a thread counts.
    fn counters(&self, counters: &mut ThreadCounters) {
        let most = MOST_COUNTED.max(self.longest_ns);
        let ThreadCounters {
            minor_faults,
            major_faults,
            voluntary_switches,
            involuntary_switches,
            cpu_ns,
            steal_ns,
            smi,
            llc_misses,
        } = counters;
        let switches = [voluntary_switches, involuntary_switches];
        let all = [minor_faults, major_faults, cpu_ns, steal_ns, smi, llc_misses].into_iter().chain(switches);
        all.flatten().for_each(|counted| *counted = (*counted).min(most));
    }

    fn histogram(&mut self, counts: &Sparse) -> Result<(), Excess> {
        if counts.0.len() > MOST_NUMBERS {
            return Err(Excess("sent a histogram of more values than there are".into()));
        }
        self.numbers = self.numbers.saturating_add(u64::try_from(counts.0.len()).unwrap_or(u64::MAX));
        if self.numbers > self.most_numbers {
            return Err(Excess(format!("sent histograms of more than {} numbers", self.most_numbers)));
        }
        // Counts beyond this could not be read from the log.
        let counted = counts.0.iter().skip(1).step_by(2).fold(0_u64, |sum, count| sum.saturating_add(*count));
        self.counted = self.counted.saturating_add(counted);
        if self.counted > MOST_COUNTED {
            return Err(Excess("counted more than threads do in a month".into()));
        }
        Ok(())
    }
}

/// Whether it names a kind of series: it becomes a part of names in every format, which comma and blank would end.
fn is_word(kind: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    kind.len() <= LONGEST_NAME && kind.chars().all(fits)
}

impl Threads {
    fn count(&self) -> u64 {
        let count = match self {
            Self::Planned(threads) => threads.len(),
            Self::AsMany(most) => *most,
        };
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// Whether a thread may report where `others` others have.
    fn have(&self, thread: Thread, others: usize) -> bool {
        match self {
            Self::Planned(threads) => threads.contains(&thread),
            Self::AsMany(most) => others < *most,
        }
    }
}
