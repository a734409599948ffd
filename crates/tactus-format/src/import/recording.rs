//! The data that is kept of a file, and how rows and other lines become a series.

use tactus_model::buckets::{Counts, Packed, bucket_of};
use tactus_model::histograms::MOST_COUNTED;
use tactus_model::latency::{Latency, Sparse, Summary, Totals, swallowed};
use tactus_model::number::{float, whole};
pub use tactus_model::scheduling::Policy;

/// The longest value that is believed, in ns: 100 years.
pub(super) const MOST_NS: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// The meaning of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// How late a thread woke that wakes by a timer.
    Wakeups,
    /// Gaps that a polling thread saw.
    Gaps,
    /// How late a timer's interrupts were, at the first instruction of their handler.
    Interrupts,
}

/// The reason why a run ended before its time: a latency above a limit that the user had set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How large that latency was, in ns, where the file says it.
    pub value_ns: Option<u64>,
    /// The file's own words, as `# Break value: 115`.
    pub said: String,
}

/// The data of one instrument.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The tool that wrote it, as `cyclictest 2.40`.
    pub instrument: String,
    /// The kind of these values, if the file has several: `IRQ`.
    pub part: Option<&'static str>,
    /// The number of its run, from 1, if the file has several.
    pub run: Option<u32>,
    /// The meaning of the values.
    pub values: Values,
    /// How it was called, where it says so.
    pub command: Option<String>,
    /// The machine, where it says so.
    pub node: Option<String>,
    /// Its kernel.
    pub kernel: Option<String>,
    /// Time between two wake-ups, in ns, where it says so.
    pub interval_ns: Option<u64>,
    /// How long it measured, in ns, where it says so.
    pub duration_ns: Option<u64>,
    /// Whether the periods that late wake-ups missed were counted.
    pub counts_missed: bool,
    /// How its threads were scheduled, where it says so.
    pub policy: Option<Policy>,
    /// The latency that ended it, if it did not end by itself.
    pub ended_by: Option<Ended>,
    /// The conditions in its file, as `load average 3.71 4.06 3.51`.
    pub conditions: Vec<String>,
    /// The event that it looked for and did not find: a good result without a value.
    pub found_nothing: Option<String>,
    /// The data of each thread.
    pub series: Vec<Series>,
    /// Caveats to its numbers.
    pub notes: Vec<String>,
}

impl Recording {
    /// Nothing yet.
    pub(super) fn of(instrument: impl Into<String>, values: Values) -> Self {
        Self {
            instrument: instrument.into(),
            part: None,
            run: None,
            values,
            command: None,
            node: None,
            kernel: None,
            interval_ns: None,
            duration_ns: None,
            counts_missed: false,
            policy: None,
            ended_by: None,
            conditions: Vec::new(),
            found_nothing: None,
            series: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The figures of a series of it, or of all; figures that the file lacks are unknown.
    #[must_use]
    pub fn summary<'a>(&self, latency: &Latency, of: impl IntoIterator<Item = &'a Series>) -> Summary {
        let known_min = of.into_iter().all(|series| series.knows_min);
        let summary = latency.summary();
        Summary { overruns: self.overruns(latency), min_ns: summary.min_ns.filter(|_| known_min), ..summary }
    }

    /// How many periods late wake-ups missed; `None` if that was not counted.
    #[must_use]
    pub fn overruns(&self, latency: &Latency) -> Option<u64> {
        self.counts_missed.then_some(latency.totals.overruns)
    }

    /// How many periods late wake-ups missed at least, if they were not counted: by the largest latency of
    /// each thread and its interval.
    #[must_use]
    pub fn least_missed(&self) -> u64 {
        if self.counts_missed || self.values != Values::Wakeups {
            return 0;
        }
        let missed = |series: &Series| swallowed(series.totals.max_ns, series.interval_ns.unwrap_or(0));
        let measured = self.series.iter().filter(|series| series.totals.cycles > 0);
        measured.map(missed).fold(0, u64::saturating_add)
    }

    /// Takes interval, priority and policy from a command line.
    pub(super) fn called(&mut self, command: &str) {
        if self.interval_ns.is_none() {
            self.interval_ns = option(command, 'i', "interval").and_then(|us| us.checked_mul(1_000));
        }
        let priority = option(command, 'p', "priority").or_else(|| option(command, 'p', "prio"));
        let priority = priority.and_then(|priority| u32::try_from(priority).ok());
        let priority = priority.filter(|priority| *priority < 100);
        for series in &mut self.series {
            series.priority = series.priority.or(priority);
        }
        let named = word_behind(command, "--policy").and_then(policy_of);
        let policy = named.or_else(|| (priority > Some(0)).then_some(Policy::Fifo));
        self.policy = self.policy.or(policy);
        self.command = Some(command.to_owned());
    }

    /// Notes that a latency ended it, which belongs to this thread, or else to one of them. It is added only
    /// if it is larger than all values of the thread: otherwise the rows may contain it already.
    pub(super) fn ended(&mut self, thread: Option<u32>, value_ns: Option<u64>, said: impl Into<String>) {
        self.ended_by = Some(Ended { value_ns, said: said.into() });
        let Some(value_ns) = value_ns.filter(|value_ns| *value_ns <= MOST_NS) else { return };
        let largest = self.series.iter().map(|series| series.totals.max_ns).max().unwrap_or(0);
        let at = match thread {
            Some(thread) => self.series.iter().position(|series| series.thread == thread),
            // The thread is unknown: the latency is added where it changes nothing but the maximum.
            None if value_ns > largest => {
                self.series.iter().position(|series| series.totals.max_ns == largest)
            }
            None => return,
        };
        match at.map(|at| &mut self.series[at]) {
            Some(series) if series.totals.cycles == 0 || value_ns > series.totals.max_ns => {
                series.add(value_ns);
            }
            Some(_) => {}
            None => {
                let mut series = Series::default().at(thread.unwrap_or(0), None);
                series.add(value_ns);
                self.series.push(series);
            }
        }
    }

    /// Says what is uncertain in its series, as notes.
    pub(super) fn remark(&mut self) {
        for series in &self.series {
            let (thread, values) = (series.thread, series.beyond);
            if let Some(beyond) = &series.least_beyond_ns {
                self.notes.push(format!(
                    "thread {thread}: {values} values lie beyond its histogram, at {beyond} ns or more; they are \
counted at the largest value, so that no quantile is too small"
                ));
            }
            if series.totals.cycles == 0 {
                self.notes.push(format!("thread {thread}: it measured nothing"));
            }
        }
    }
}

/// A policy by its name in any of the field's spellings: `fifo`, `SCHED_FIFO`, `f`.
pub(super) fn policy_of(word: &str) -> Option<Policy> {
    let word = word.to_ascii_lowercase();
    match word.strip_prefix("sched_").unwrap_or(&word) {
        "fifo" | "f" => Some(Policy::Fifo),
        "rr" | "r" => Some(Policy::Rr),
        "deadline" | "d" => Some(Policy::Deadline),
        "other" | "normal" | "batch" | "idle" | "o" | "default" => Some(Policy::Other),
        _ => None,
    }
}

/// The word behind an option with a long name, as `fifo` of `--policy=fifo`.
fn word_behind<'a>(command: &'a str, long: &str) -> Option<&'a str> {
    let mut words = command.split_whitespace();
    let rest = words.find_map(|word| word.strip_prefix(long))?;
    if rest.is_empty() { words.next() } else { rest.strip_prefix('=') }
}

/// Whether a command line has an option, with a value or without.
pub(super) fn has_option(command: &str, short: char, long: &str) -> bool {
    command.split_whitespace().skip(1).any(|word| match word.strip_prefix("--") {
        Some(word) => word.split('=').next().is_some_and(|name| name.len() > 1 && long.starts_with(name)),
        None => word.strip_prefix('-').is_some_and(|word| word.contains(short)),
    })
}

/// The number behind an option of a command line.
pub(super) fn option(command: &str, short: char, long: &str) -> Option<u64> {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        let rest = if let Some(rest) = word.strip_prefix("--").and_then(|word| word.strip_prefix(long)) {
            rest.strip_prefix('=').unwrap_or(rest)
        } else if let Some(rest) = word.strip_prefix('-').and_then(|word| short_option(word, short)) {
            rest
        } else {
            continue;
        };
        return if rest.is_empty() { words.next()?.parse().ok() } else { rest.parse().ok() };
    }
    None
}

/// The text after a short option in its word; others without a value may stand before it, as in `-qmp95`.
fn short_option(word: &str, short: char) -> Option<&str> {
    let (before, rest) = word.split_once(short)?;
    let alone = before.chars().all(|c| c.is_ascii_alphabetic());
    (alone && (before.is_empty() || rest.chars().all(|c| c.is_ascii_digit()))).then_some(rest)
}

/// The data of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Its number.
    pub thread: u32,
    /// Its CPU, where that is known.
    pub cpu: Option<u32>,
    /// Its priority, where that is known.
    pub priority: Option<u32>,
    /// Time between two of its wake-ups, in ns, where that is known.
    pub interval_ns: Option<u64>,
    /// Counts, minimum, maximum and sum, as the file has them. Where the mean is not known, the sum is `u64::MAX`.
    pub totals: Totals,
    /// Whether the smallest value is known.
    pub knows_min: bool,
    /// How many of the values are beyond the histogram: they are in `counts`, at the largest value.
    pub beyond: u64,
    /// The least of those, in ns; `None` without any.
    pub least_beyond_ns: Option<u64>,
    /// Its distribution; empty where only totals are known. Packed: thousands of threads may wait for their bundle.
    pub counts: Packed,
    /// The latencies of the wake-ups that never came, because the one before was too late.
    pub missed: Packed,
}

impl Series {
    /// The same as a distribution.
    #[must_use]
    pub fn latency(&self) -> Latency {
        let mut latency = Latency::new();
        latency.totals = self.totals;
        self.counts.add_to(&mut latency.raw);
        self.missed.add_to(&mut latency.missed);
        latency
    }

    /// The latencies of the wake-ups that never came, as they travel.
    #[must_use]
    pub fn missed(&self) -> Sparse {
        let mut last = 0;
        let steps = self.missed.buckets().flat_map(|(value, count)| {
            let step = value - std::mem::replace(&mut last, value);
            [step, count]
        });
        Sparse(steps.collect())
    }

    /// Adds one value.
    fn add(&mut self, value_ns: u64) {
        // Only totals are known of a thread without a histogram.
        let whole = self.totals.cycles == 0 || !self.counts.is_empty();
        self.knows_min |= self.totals.cycles == 0;
        let one = Totals { cycles: 1, overruns: 0, min_ns: value_ns, max_ns: value_ns, sum_ns: value_ns };
        self.totals.add(&one);
        if whole {
            let mut counts = Counts::default();
            self.counts.buckets().for_each(|(value, count)| counts.add(bucket_of(value), count));
            counts.add(bucket_of(value_ns), 1);
            self.counts = counts.pack();
        }
    }

    /// Its number and CPU.
    pub(super) fn at(mut self, thread: u32, cpu: Option<u32>) -> Self {
        (self.thread, self.cpu) = (thread, cpu);
        self
    }
}

/// The figures of a thread beside its rows; times in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stated {
    /// How many values there were in all.
    pub cycles: Option<u64>,
    /// How many of them are too large for any row.
    pub over: Option<u64>,
    /// The smallest.
    pub min: Option<u64>,
    /// The mean.
    pub mean: Option<f64>,
    /// The largest.
    pub max: Option<u64>,
    /// Whether a row stands for values of several sizes, so that the mean is not that of its rows.
    pub coarse: bool,
}

/// Rows of a thread as they are read.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    counts: Counts,
    values: u64,
    sum: u128,
    least: Option<u64>,
    /// The last row: its value, and how many have it.
    most: Option<(u64, u64)>,
    /// Values that the file numbers, but does not have.
    missing: u64,
}

impl Rows {
    /// Adds values of one size, in ns.
    pub fn add(&mut self, value_ns: u64, count: u64) -> Result<(), String> {
        if count == 0 {
            return Ok(());
        }
        if value_ns > MOST_NS {
            return Err(format!("{value_ns} ns is longer than any measurement"));
        }
        let values = self.values.checked_add(count).filter(|values| *values <= MOST_COUNTED);
        self.values =
            values.ok_or_else(|| format!("{count} more values are more than any measurement has"))?;
        self.sum += u128::from(value_ns) * u128::from(count);
        self.counts.add(bucket_of(value_ns), count);
        self.least = Some(self.least.map_or(value_ns, |least| least.min(value_ns)));
        self.most = match self.most {
            Some((most, so_far)) if most > value_ns => Some((most, so_far)),
            Some((most, so_far)) if most == value_ns => Some((most, so_far + count)),
            _ => Some((value_ns, count)),
        };
        Ok(())
    }

    /// Counts values that are numbered in the file, and not in it.
    pub fn miss(&mut self, count: u64) -> Result<(), String> {
        let missing = self.missing.checked_add(count).filter(|missing| *missing <= MOST_COUNTED);
        self.missing =
            missing.ok_or_else(|| format!("{count} missing values are more than any measurement has"))?;
        Ok(())
    }

    /// How many values there are.
    pub const fn values(&self) -> u64 {
        self.values
    }

    /// The largest row: its value in ns.
    pub fn most(&self) -> Option<u64> {
        self.most.map(|(most, _)| most)
    }

    /// Takes the last row out: it stands for all that is as large or larger.
    pub fn open_end(&mut self) -> u64 {
        let Some((most, count)) = self.most.take() else { return 0 };
        let mut counts = Counts::default();
        for (value, so_far) in self.counts.pack().buckets() {
            let own = bucket_of(value);
            counts.add(own, if own == bucket_of(most) { so_far - count } else { so_far });
        }
        self.counts = counts;
        self.values -= count;
        self.sum -= u128::from(most) * u128::from(count);
        self.most = Some((most, 0));
        count
    }

    /// The series from the rows and the stated figures.
    pub fn series(mut self, stated: Stated) -> Result<Series, String> {
        let over = stated.over.unwrap_or(0);
        let cycles = match stated.cycles {
            Some(cycles) => cycles,
            None => self.values.saturating_add(over).saturating_add(self.missing),
        };
        if cycles > MOST_COUNTED {
            return Err(format!("{cycles} values are more than any measurement has"));
        }
        let counted = self.values.saturating_add(over).saturating_add(self.missing);
        if counted > cycles {
            return Err(format!("{counted} values are in its histogram, but {cycles} were measured"));
        }
        if stated.over.is_some() && counted < cycles {
            return Err(format!(
                "{counted} values are in its histogram, but {cycles} were measured: rows are missing"
            ));
        }
        if cycles == 0 {
            return Ok(Series::default());
        }
        let most = self.most();
        let largest = stated.max.or(most).ok_or("it has values, but no largest one")?;
        if largest > MOST_NS {
            return Err(format!("its largest value, {largest} ns, is longer than any measurement"));
        }
        if let Some(most) = most.filter(|most| *most > largest) {
            return Err(format!("{most} ns is in its histogram, but the largest value is {largest} ns"));
        }
        // Of the values beyond the histogram only the largest is known, so that no quantile is too small.
        let beyond = match stated.over {
            Some(over) => over,
            None if self.values > 0 && most < Some(largest) => cycles - self.values - self.missing,
            None => 0,
        };
        let least_beyond_ns = (beyond > 0).then(|| most.unwrap_or(0));
        if beyond > 0 {
            self.counts.add(bucket_of(largest), beyond);
        }
        // A smallest row is the smallest value only where every value is in a row.
        let knows_min =
            stated.min.is_some() || (self.least.is_some() && self.missing == 0 && cycles == counted);
        let least = stated.min.or(self.least).unwrap_or(largest);
        if least > largest {
            return Err(format!("the smallest value is {least} ns, but the largest is {largest} ns"));
        }
        let stated_mean = stated.mean.filter(|_| stated.coarse || self.values < cycles);
        if let Some(mean) = stated_mean.filter(|mean| !(0.0..=float(MOST_NS)).contains(mean)) {
            return Err(format!("its mean, {mean} ns, is impossible"));
        }
        // Some tools print 0 for a mean that they do not keep: then it is that of the rows, where they are all of it.
        let sum_ns = match stated_mean.filter(|mean| (float(least)..=float(largest)).contains(mean)) {
            Some(mean) => Some(whole(mean * float(cycles))),
            None if stated.coarse => None,
            None => self.sum_of(cycles)?,
        };
        // Rows are cut to their lower end, the smallest value is not.
        let bounds = (least.saturating_mul(cycles), largest.saturating_mul(cycles));
        let sum_ns = sum_ns.map_or(u64::MAX, |sum_ns| sum_ns.clamp(bounds.0, bounds.1));
        let totals = Totals { cycles, overruns: 0, min_ns: least, max_ns: largest, sum_ns };
        let counts = self.counts.pack();
        Ok(Series { totals, beyond, least_beyond_ns, counts, knows_min, ..Series::default() })
    }

    /// The sum of all values; missing ones count with the mean of the numbered ones. Unknown if some are
    /// beyond the histogram.
    fn sum_of(&self, cycles: u64) -> Result<Option<u64>, String> {
        if self.values == 0 || self.values + self.missing < cycles {
            return Ok(None);
        }
        let sum = match self.values == cycles {
            true => Some(self.sum),
            false => self.sum.checked_mul(cycles.into()).map(|sum| sum / u128::from(self.values)),
        };
        let sum = sum.and_then(|sum| u64::try_from(sum).ok());
        sum.map(Some).ok_or_else(|| "the sum of its values is larger than possible".into())
    }
}
