//! What is kept of a file, and how its rows and what it says of them become a series.

use tactus_model::buckets::{Counts, Packed, bucket_of};
use tactus_model::histograms::MOST_COUNTED;
use tactus_model::latency::{Latency, Sparse, Totals};
use tactus_model::number::{float, whole};

/// The longest value that is believed, in ns: 100 years.
pub(super) const MOST_NS: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// What the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// How late a thread woke that wakes by a timer.
    Wakeups,
    /// Gaps that a polling thread saw.
    Gaps,
    /// How late a timer's interrupts were, at the first instruction of their handler.
    Interrupts,
}

/// What one instrument measured.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Who wrote it, as `cyclictest 2.40`.
    pub instrument: String,
    /// Which of its values these are, where the file has several: `IRQ`.
    pub part: Option<&'static str>,
    /// What the values are.
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
    /// What each thread measured.
    pub series: Vec<Series>,
    /// What a reader must know of its numbers.
    pub notes: Vec<String>,
}

impl Recording {
    /// Nothing yet.
    pub(super) fn of(instrument: impl Into<String>, values: Values) -> Self {
        Self {
            instrument: instrument.into(),
            part: None,
            values,
            command: None,
            node: None,
            kernel: None,
            interval_ns: None,
            duration_ns: None,
            counts_missed: false,
            series: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// How many periods late wake-ups missed; none: that was not counted.
    #[must_use]
    pub fn overruns(&self, latency: &Latency) -> Option<u64> {
        self.counts_missed.then_some(latency.totals.overruns)
    }

    /// Notes what a command line says of interval and priority.
    pub(super) fn called(&mut self, command: &str) {
        if self.interval_ns.is_none() {
            self.interval_ns = option(command, 'i', "interval").and_then(|us| us.checked_mul(1_000));
        }
        let priority = option(command, 'p', "priority").and_then(|priority| u32::try_from(priority).ok());
        let priority = priority.filter(|priority| *priority < 100);
        for series in &mut self.series {
            series.priority = series.priority.or(priority);
        }
        self.command = Some(command.to_owned());
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

/// The number behind an option of a command line.
pub(super) fn option(command: &str, short: char, long: &str) -> Option<u64> {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        let rest = if let Some(rest) = word.strip_prefix("--").and_then(|word| word.strip_prefix(long)) {
            rest.strip_prefix('=').unwrap_or(rest)
        } else if let Some(rest) = word.strip_prefix('-').and_then(|word| word.strip_prefix(short)) {
            rest
        } else {
            continue;
        };
        return if rest.is_empty() { words.next()?.parse().ok() } else { rest.parse().ok() };
    }
    None
}

/// What one thread measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Its number.
    pub thread: u32,
    /// Its CPU, where that is known.
    pub cpu: Option<u32>,
    /// Its priority, where that is known.
    pub priority: Option<u32>,
    /// Counts, minimum, maximum and sum, as the file has them.
    pub totals: Totals,
    /// How many of the values are beyond the histogram: they are in `counts`, at the largest value.
    pub beyond: u64,
    /// What those are at least, in ns; none: there are no such.
    pub least_beyond_ns: Option<u64>,
    /// Its distribution; empty where only totals are known. Packed: thousands of threads may wait for their bundle.
    pub counts: Packed,
    /// What the wake-ups would have measured that never came, because the one before was too late.
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

    /// What never came, as it travels.
    #[must_use]
    pub fn missed(&self) -> Sparse {
        let mut last = 0;
        let steps = self.missed.buckets().flat_map(|(value, count)| {
            let step = value - std::mem::replace(&mut last, value);
            [step, count]
        });
        Sparse(steps.collect())
    }

    /// Its number and CPU.
    pub(super) fn at(mut self, thread: u32, cpu: Option<u32>) -> Self {
        (self.thread, self.cpu) = (thread, cpu);
        self
    }
}

/// What a file says of a thread beside its rows; times in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stated {
    /// How many values there were in all.
    pub cycles: Option<u64>,
    /// How many of them are in no row, being too large.
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
            return Err(format!("{value_ns} ns is longer than anybody measures"));
        }
        let values = self.values.checked_add(count).filter(|values| *values <= MOST_COUNTED);
        self.values = values.ok_or_else(|| format!("{count} more values are more than anybody measures"))?;
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
            missing.ok_or_else(|| format!("{count} missing values are more than anybody measures"))?;
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

    /// The series that rows and what is said of them are.
    pub fn series(mut self, stated: Stated) -> Result<Series, String> {
        let over = stated.over.unwrap_or(0);
        let cycles = match stated.cycles {
            Some(cycles) => cycles,
            None => self.values.saturating_add(over).saturating_add(self.missing),
        };
        if cycles > MOST_COUNTED {
            return Err(format!("{cycles} values are more than anybody measures"));
        }
        let counted = self.values.saturating_add(over).saturating_add(self.missing);
        if counted > cycles {
            return Err(format!("{counted} values stand in its histogram, but {cycles} were measured"));
        }
        if stated.over.is_some() && counted < cycles {
            return Err(format!(
                "{counted} values stand in its histogram, but {cycles} were measured: rows are missing"
            ));
        }
        let none = Series {
            thread: 0,
            cpu: None,
            priority: None,
            totals: Totals::default(),
            beyond: 0,
            least_beyond_ns: None,
            counts: Packed::default(),
            missed: Packed::default(),
        };
        if cycles == 0 {
            return Ok(none);
        }
        let most = self.most();
        let largest = stated.max.or(most).ok_or("it has values, but no largest one")?;
        if largest > MOST_NS {
            return Err(format!("its largest value, {largest} ns, is longer than anybody measures"));
        }
        if let Some(most) = most.filter(|most| *most > largest) {
            return Err(format!("{most} ns stands in its histogram, but the largest value is {largest} ns"));
        }
        // Of what is beyond the histogram only the largest is known: no quantile is then too small.
        let beyond = match stated.over {
            Some(over) => over,
            None if self.values > 0 && most < Some(largest) => cycles - self.values - self.missing,
            None => 0,
        };
        let least_beyond_ns = (beyond > 0).then(|| most.unwrap_or(0));
        if beyond > 0 {
            self.counts.add(bucket_of(largest), beyond);
        }
        let least = stated.min.or(self.least).unwrap_or(largest);
        if least > largest {
            return Err(format!("the smallest value is {least} ns, but the largest is {largest} ns"));
        }
        let stated_mean = stated.mean.filter(|_| stated.coarse || self.values < cycles);
        if let Some(mean) = stated_mean.filter(|mean| !(0.0..=float(MOST_NS)).contains(mean)) {
            return Err(format!("its mean, {mean} ns, cannot be"));
        }
        // Some tools print 0 for a mean that they do not keep: then it is that of the rows.
        let sum_ns = match stated_mean.filter(|mean| (float(least)..=float(largest)).contains(mean)) {
            Some(mean) => whole(mean * float(cycles)),
            None => self.sum_of(cycles, u128::from(beyond), largest)?,
        };
        // Rows are cut to their lower end, the smallest value is not.
        let sum_ns = sum_ns.clamp(least.saturating_mul(cycles), largest.saturating_mul(cycles));
        let totals = Totals { cycles, overruns: 0, min_ns: least, max_ns: largest, sum_ns };
        Ok(Series { totals, beyond, least_beyond_ns, counts: self.counts.pack(), ..none })
    }

    /// What all values add up to: those that are missing as the others do, in the mean.
    fn sum_of(&self, cycles: u64, beyond: u128, largest: u64) -> Result<u64, String> {
        let known = u128::from(self.values) + beyond;
        if known == 0 {
            return Err("it has values, but neither a histogram nor a mean".into());
        }
        let sum = self.sum + u128::from(largest) * beyond;
        let sum = match known == u128::from(cycles) {
            true => Some(sum),
            false => sum.checked_mul(cycles.into()).map(|sum| sum / known),
        };
        sum.and_then(|sum| u64::try_from(sum).ok())
            .ok_or_else(|| "its values add up to more than can be".into())
    }
}
