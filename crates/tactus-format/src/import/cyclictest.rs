//! cyclictest's text: the histogram of `-h` and `-H` (of any version, with its empty rows or without), the
//! stream of `-v`, and its status lines. Those of cyclicdeadline and signaltest are read as well.

use std::collections::BTreeMap;
use std::io::Read;

use tactus_model::scheduling::Policy;

use super::conditions::{Conditions, is_command, without_priority};
use super::recording::{Rows, Stated, has_option, option};
use super::text::{Lines, MOST_IDLE, NO_UNIT, short, too_idle};
use super::{ImportError, Recording, Values, plain, runs};
use crate::lines::{self, AnyStatus, Figure, Format, MOST_THREADS, Reading, any_status};

/// Whether a line is cyclictest's.
pub(super) fn is_line(line: &str) -> bool {
    line == "# Histogram"
        || line.starts_with("# /dev/cpu_dma_latency set")
        || any_status(&lines::plain(line)).is_some()
        || lines::recognize(line) == Some(Format::Cyclictest)
        || matches!(lines::read(Format::Cyclictest, line), Some(Reading::Bucket(..)))
}

/// Reads one.
pub(super) fn read<R: Read>(lines: Lines<R>, unit_ns: Option<u64>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, |lines| one(lines, unit_ns))
}

fn one<R: Read>(lines: &mut Lines<R>, unit_ns: Option<u64>) -> Result<Vec<Recording>, ImportError> {
    let mut text = Text::new(unit_ns);
    let mut counts = Vec::new();
    while let Some(line) = lines.next_bytes()? {
        // Nearly all of a long file are lines of two kinds as they are printed; whatever else is looked at with patience.
        let found = if let Some((thread, cycle, value)) = plain::sample(line) {
            Found::Sample(thread, cycle, value)
        } else if let Some(value) = plain::row(line, &mut counts) {
            Found::Row(value)
        } else {
            match lines::read(Format::Cyclictest, lines.text()?) {
                Some(
                    reading @ (Reading::Histogram
                    | Reading::Bucket(..)
                    | Reading::Figure(..)
                    | Reading::Sample { .. }),
                ) => Found::Reading(reading),
                _ => Found::Other,
            }
        };
        let next = match &found {
            Found::Sample(thread, cycle, _) => text.samples_again(*thread, *cycle),
            Found::Row(_) => text.is_whole(),
            Found::Reading(reading) => text.reads_again(reading),
            Found::Other => text.begins_again(lines.text()?),
        };
        if next {
            match text.policy.take() {
                Some(policy) => lines.again_after(policy),
                None => lines.again(),
            }
            break;
        }
        let what = match found {
            Found::Sample(thread, cycle, value) => text.sample(thread, cycle, value),
            Found::Row(value) => text.row(value, &counts),
            Found::Reading(reading) => text.take(reading),
            Found::Other => text.other(lines.text()?),
        };
        what.map_err(|what| lines.error(what))?;
    }
    let says_unit = text.says_unit;
    let mut recording = text.recording().map_err(|what| lines.error(what))?;
    if !says_unit {
        recording.notes.push(NO_UNIT.into());
    }
    Ok(vec![recording])
}

/// The kind of a line.
enum Found {
    /// Thread, number and value.
    Sample(u32, u64, u64),
    /// A row whose counts stand elsewhere.
    Row(u64),
    Reading(Reading),
    Other,
}

/// The text read so far.
struct Text {
    unit_ns: u64,
    /// Whether the user or the command says that unit.
    says_unit: bool,
    interval_ns: Option<u64>,
    conditions: Conditions,
    /// The last line `policy:`, until it is known of which run it is.
    policy: Option<String>,
    /// Ids of the threads, by their number.
    ids: BTreeMap<u32, u64>,
    break_thread: Option<u64>,
    break_value: Option<u64>,
    /// CPUs that threads were bound to.
    cpus: BTreeMap<u32, u32>,
    /// Threads of the histogram.
    columns: Vec<Rows>,
    last_row: Option<u64>,
    figures: BTreeMap<u8, Vec<u64>>,
    /// Threads of `-v` by their number: the number of the next value, and the values.
    samples: Vec<Option<(u64, Rows)>>,
    missing: u64,
    status: BTreeMap<u32, AnyStatus>,
    /// Lines that are no readings, comments among them.
    idle: u64,
    /// The number of unexpected ones, and the first of them.
    strange: u64,
    first: String,
}

impl Text {
    fn new(unit_ns: Option<u64>) -> Self {
        Self {
            unit_ns: unit_ns.unwrap_or(1_000),
            says_unit: unit_ns.is_some(),
            interval_ns: None,
            conditions: Conditions::default(),
            policy: None,
            ids: BTreeMap::new(),
            break_thread: None,
            break_value: None,
            cpus: BTreeMap::new(),
            columns: Vec::new(),
            last_row: None,
            figures: BTreeMap::new(),
            samples: Vec::new(),
            missing: 0,
            status: BTreeMap::new(),
            idle: 0,
            strange: 0,
            first: String::new(),
        }
    }

    /// Whether a histogram has been read to its end.
    fn is_whole(&self) -> bool {
        let last = [Figure::Min, Figure::Avg, Figure::Max, Figure::Overflows];
        last.into_iter().all(|figure| self.figures.contains_key(&(figure as u8)))
    }

    /// Whether there are values of any kind.
    fn has_values(&self) -> bool {
        self.is_whole() || !self.samples.is_empty() || !self.status.is_empty()
    }

    fn has_samples(&self, thread: u32) -> bool {
        let number = usize::try_from(thread).unwrap_or(usize::MAX);
        self.samples.get(number).is_some_and(Option::is_some)
    }

    /// Whether the thread counts from the beginning again: the next run.
    fn samples_again(&self, thread: u32, cycle: u64) -> bool {
        self.is_whole() || (cycle == 0 && self.has_samples(thread))
    }

    /// Whether a reading belongs to the next run.
    fn reads_again(&self, reading: &Reading) -> bool {
        match reading {
            Reading::Histogram | Reading::Bucket(..) => self.is_whole(),
            Reading::Sample { thread, cycle, .. } => self.samples_again(*thread, cycle.unwrap_or(0)),
            Reading::Figure(..) | Reading::Status(_) => false,
        }
    }

    /// Whether a line that is no reading belongs to the next run: one that stands before the values, or totals of other
    /// threads.
    fn begins_again(&self, line: &str) -> bool {
        // Most lines that say nothing are empty.
        if line.len() < 8 || !self.has_values() {
            return false;
        }
        let plain = lines::plain(line);
        if let Some(any) = any_status(&plain) {
            // Totals of a run only grow.
            let is_later = self.status.get(&any.status.thread).is_none_or(|before| {
                let (own, known) = (&any.status, &before.status);
                let same = own.cycles == known.cycles && (own.min, own.max) != (known.min, known.max);
                before.tid == any.tid
                    && own.cycles >= known.cycles
                    && own.min <= known.min
                    && own.max >= known.max
                    && !same
            });
            return self.is_whole() || !is_later;
        }
        let text = plain.trim();
        let preamble = text.strip_prefix("Thread ").and_then(|text| text.split_once(" Interval:"));
        preamble.is_some_and(|(thread, _)| thread.parse().is_ok_and(|thread| self.has_samples(thread)))
            || text.starts_with("# /dev/cpu_dma_latency set")
            || text.starts_with("Max CPUs = ")
            || ["cyclictest", "cyclicdeadline", "signaltest"].iter().any(|name| is_command(name, text))
    }

    fn take(&mut self, reading: Reading) -> Result<(), String> {
        match reading {
            Reading::Histogram if self.last_row.is_some() || !self.figures.is_empty() => {
                Err("a second histogram, before the end of the first one".into())
            }
            Reading::Histogram | Reading::Status(_) => Ok(()),
            Reading::Bucket(value, counts) => self.row(value, &counts),
            Reading::Figure(figure, numbers) => match self.figures.insert(figure as u8, numbers) {
                Some(_) => Err("this line appears twice after the histogram".into()),
                None => Ok(()),
            },
            Reading::Sample { thread, cycle, value, .. } => self.sample(thread, cycle.unwrap_or(0), value),
        }
    }

    fn status(&mut self, any: AnyStatus) -> Result<(), String> {
        let status = &any.status;
        if status.thread == 0 && any.has_interval {
            self.interval_ns = status.interval_us.checked_mul(1_000);
        }
        self.ids.insert(status.thread, any.tid);
        self.status.insert(status.thread, any);
        Ok(())
    }

    /// Takes the line that was kept back.
    fn keep_policy(&mut self) {
        if let Some(line) = self.policy.take() {
            self.conditions.line("cyclictest", &line);
        }
    }

    fn time(&self, value: u64) -> Result<u64, String> {
        value.checked_mul(self.unit_ns).ok_or_else(|| format!("{value} is longer than any measurement"))
    }

    fn row(&mut self, value: u64, counts: &[u64]) -> Result<(), String> {
        if !self.figures.is_empty() {
            return Err("a row of a histogram after its end".into());
        }
        if self.last_row.is_some_and(|last| last >= value) {
            return Err("this row is not larger than the one before it".into());
        }
        if self.last_row.is_some() && self.columns.len() != counts.len() {
            return Err(format!(
                "{} counts, where the rows before have {}",
                counts.len(),
                self.columns.len()
            ));
        }
        self.last_row = Some(value);
        self.columns.resize_with(counts.len(), Rows::default);
        let value_ns = self.time(value)?;
        self.columns.iter_mut().zip(counts).try_for_each(|(rows, count)| rows.add(value_ns, *count))
    }

    fn sample(&mut self, thread: u32, cycle: u64, value: u64) -> Result<(), String> {
        let value_ns = self.time(value)?;
        let number = usize::try_from(thread).unwrap_or(usize::MAX);
        if self.samples.len() <= number {
            self.samples.resize(number + 1, None);
        }
        let (next, rows) = self.samples[number].get_or_insert_with(|| (cycle, Rows::default()));
        let lost = cycle
            .checked_sub(*next)
            .ok_or_else(|| format!("value {cycle} of thread {thread} comes after a later one"))?;
        rows.miss(lost)?;
        self.missing += lost;
        *next = cycle.saturating_add(1);
        rows.add(value_ns, 1)
    }

    /// A line that is no reading. One that begins like one is damaged.
    fn other(&mut self, line: &str) -> Result<(), String> {
        self.idle += 1;
        if self.idle > MOST_IDLE {
            return Err(too_idle());
        }
        let plain = lines::plain(line);
        if let Some(status) = any_status(&plain) {
            self.keep_policy();
            return self.status(status);
        }
        let text = plain.trim();
        // It may be that of the next run.
        if text.trim_start_matches(['#', ' ']).starts_with("policy:") && self.has_values() {
            self.keep_policy();
            self.policy = Some(text.to_owned());
            return Ok(());
        }
        let figure = ["# Total:", "# Min Lat", "# Avg Lat", "# Max Lat", "# Histogram Overflows"];
        let unmeasured = text.starts_with("T:") && text.contains("C:      0 ");
        let begins = text.starts_with("T:") || text.starts_with(|c: char| c.is_ascii_digit());
        if (begins && !unmeasured) || figure.iter().any(|figure| text.starts_with(figure)) {
            return Err(format!("cut or damaged: `{}`", short(line)));
        }
        if self.event(text)? || self.conditions.line("cyclictest", text) {
            return self.unit();
        }
        // The interval that `-v` prints before its values is that of the next thread: the status is right.
        let preamble = text.starts_with("Thread ") && text.contains("Interval:");
        let debug = text.starts_with("DEBUG: ") || (text.starts_with("Using ") && text.ends_with(" cpus."));
        let known = text.starts_with('#') || text.contains("CPUs = ") || preamble || debug;
        if !(text.is_empty() || known || unmeasured) {
            if self.strange == 0 {
                self.first = short(line);
            }
            self.strange += 1;
        }
        Ok(())
    }

    /// `# Thread Ids: 15142`, `# Break thread: 15142`, `# Break value: 115`, `Thread 0 using cpu 1.`; false
    /// for any other line.
    fn event(&mut self, text: &str) -> Result<bool, String> {
        let damaged = || format!("cut or damaged: `{}`", short(text));
        if let Some(ids) = text.strip_prefix("# Thread Ids:") {
            for (number, id) in (0..MOST_THREADS).zip(ids.split_whitespace()) {
                self.ids.insert(number, id.parse().map_err(|_| damaged())?);
            }
        } else if let Some(thread) = text.strip_prefix("# Break thread:") {
            self.break_thread = Some(thread.trim().parse().map_err(|_| damaged())?);
        } else if let Some(value) = text.strip_prefix("# Break value:") {
            self.break_value = Some(value.trim().parse().map_err(|_| damaged())?);
        } else if let Some((thread, cpu)) =
            text.strip_prefix("Thread ").and_then(|text| text.strip_suffix('.')?.split_once(" using cpu "))
        {
            if let (Ok(thread), Ok(cpu)) = (thread.parse(), cpu.parse())
                && thread < MOST_THREADS
                && cpu < 4096
            {
                self.cpus.insert(thread, cpu);
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// `cyclictest -N` prints ns.
    fn unit(&mut self) -> Result<(), String> {
        let Some(command) = self.conditions.command.as_deref().filter(|_| !self.says_unit) else {
            return Ok(());
        };
        self.says_unit = true;
        if !has_option(command, 'N', "nsecs") {
            return Ok(());
        }
        self.unit_ns = 1;
        match self.last_row.is_some() || !self.samples.is_empty() {
            true => Err("the command with the values contains `-N`: import it with `--unit ns`".into()),
            false => Ok(()),
        }
    }

    fn recording(mut self) -> Result<Recording, String> {
        self.keep_policy();
        let mut recording = Recording::of("cyclictest", Values::Wakeups);
        let kinds = usize::from(self.last_row.is_some() || !self.figures.is_empty());
        if kinds + usize::from(!self.samples.is_empty()) > 1 {
            return Err("both a histogram and the values of -v: import them one by one".into());
        }
        if kinds > 0 {
            self.histogram(&mut recording)?;
        } else if !self.samples.is_empty() {
            for (thread, samples) in std::mem::take(&mut self.samples).into_iter().enumerate() {
                let Some((_, rows)) = samples else { continue };
                let thread = u32::try_from(thread).unwrap_or(u32::MAX);
                recording.series.push(rows.series(Stated::default())?.at(thread, None));
            }
        } else {
            for (thread, AnyStatus { status, .. }) in &self.status {
                let (min, mean, max) =
                    (self.time(status.min)?, self.time(status.avg)?, self.time(status.max)?);
                let stated = Stated {
                    cycles: Some(status.cycles),
                    over: None,
                    min: Some(min),
                    mean: Some(tactus_model::number::float(mean)),
                    max: Some(max),
                    coarse: false,
                };
                recording.series.push(Rows::default().series(stated)?.at(*thread, None));
            }
            recording.notes.push("it has totals but no histogram: quantiles are unknown".into());
        }
        recording.interval_ns = self.interval_ns;
        self.around(&mut recording)?;
        recording.remark();
        if self.missing > 0 {
            recording.notes.push(format!("{} values that it numbers are not in the file", self.missing));
        }
        if self.strange > 0 {
            let (lines, first) = (self.strange, &self.first);
            recording.notes.push(format!("{lines} lines of it are not readings; the first is `{first}`"));
        }
        Ok(recording)
    }

    /// Adds the facts in the lines around the values.
    fn around(&mut self, recording: &mut Recording) -> Result<(), String> {
        let some = self.status.values().next();
        if some.is_some_and(|any| !any.has_priority) {
            (recording.instrument, recording.policy) = ("cyclicdeadline".into(), Some(Policy::Deadline));
        } else if some.is_some_and(|any| !any.has_interval) {
            recording.instrument = "signaltest".into();
        }
        for series in &mut recording.series {
            series.cpu = self.cpus.get(&series.thread).copied();
            let Some(AnyStatus { status, has_priority, has_interval, .. }) = self.status.get(&series.thread)
            else {
                continue;
            };
            series.priority = has_priority.then_some(status.priority);
            series.interval_ns = status.interval_us.checked_mul(1_000).filter(|_| *has_interval);
        }
        let unscheduled = some.is_some_and(|any| any.has_priority)
            && recording.series.iter().all(|series| series.priority == Some(0));
        std::mem::take(&mut self.conditions).tell(recording);
        if unscheduled && recording.policy.is_none() {
            recording.policy = Some(Policy::Other);
        }
        default_of_cyclictest(recording);
        if self.break_value.is_some() || self.break_thread.is_some() {
            let thread = self.break_thread.and_then(|id| self.ids.iter().find(|(_, own)| **own == id));
            let value_ns = self.break_value.map(|value| self.time(value)).transpose()?;
            let said = match self.break_value {
                Some(value) => format!("# Break value: {value}"),
                None => "# Break thread".into(),
            };
            recording.ended(thread.map(|(number, _)| *number), value_ns, said);
        }
        Ok(())
    }

    /// The threads of a histogram. With `-H` a last column adds them up; minimum and mean lack that column.
    fn histogram(&mut self, recording: &mut Recording) -> Result<(), String> {
        let figure = |figure: Figure, name: &str| {
            let found = self.figures.get(&(figure as u8));
            found.ok_or_else(|| format!("the file ends before the histogram's `# {name}:`"))
        };
        let over = figure(Figure::Overflows, "Histogram Overflows")?;
        let min = figure(Figure::Min, "Min Latencies")?;
        let max = figure(Figure::Max, "Max Latencies")?;
        let avg = figure(Figure::Avg, "Avg Latencies")?;
        let total = self.figures.get(&(Figure::Total as u8));
        let threads = min.len();
        if threads > MOST_THREADS as usize {
            return Err(format!("{threads} threads are more than possible"));
        }
        let fits = |count: usize| count == threads || (threads > 1 && count == threads + 1);
        // Without a row every value is beyond the histogram.
        let columns = if self.last_row.is_some() { self.columns.len() } else { threads };
        let lengths = [columns, over.len(), max.len(), avg.len(), total.map_or(threads, Vec::len)];
        if !lengths.into_iter().all(fits) {
            return Err(format!(
                "the histogram has figures of {threads} threads, and others of more or fewer"
            ));
        }
        for thread in 0..threads {
            let wrong = |what: String| format!("thread {thread}: {what}");
            let rows = self.columns.get(thread).cloned().unwrap_or_default();
            if let Some(total) = total.map(|total| total[thread]).filter(|total| *total != rows.values()) {
                let values = rows.values();
                return Err(wrong(format!("{values} values are in its rows, but `# Total:` is {total}")));
            }
            let mean = avg[thread].checked_mul(self.unit_ns).map(tactus_model::number::float);
            let counted = rows.values().saturating_add(over[thread]) > 0;
            let stated = Stated {
                cycles: None,
                over: Some(over[thread]),
                min: counted.then(|| self.time(min[thread])).transpose()?,
                mean,
                max: counted.then(|| self.time(max[thread])).transpose()?,
                coarse: false,
            };
            let mut series = rows.series(stated).map_err(wrong)?;
            // Rows were printed up to the last one, full or not, so values beyond are later than that.
            if let (Some(least), Some(last)) = (&mut series.least_beyond_ns, self.last_row) {
                *least = (*least).max(self.time(last)?);
            }
            let number = u32::try_from(thread).unwrap_or(u32::MAX);
            recording.series.push(series.at(number, None));
        }
        Ok(())
    }
}

/// Applies cyclictest's defaults where its command does not ask for anything else: an interval of 1 ms, each
/// further thread 500 us more, and SCHED_OTHER.
pub(super) fn default_of_cyclictest(recording: &mut Recording) {
    let Some(command) = recording.command.clone().filter(|_| recording.instrument.starts_with("cyclictest"))
    else {
        return;
    };
    let at_zero =
        !recording.series.is_empty() && recording.series.iter().all(|series| series.priority == Some(0));
    if recording.policy.is_none() && (at_zero || without_priority(&command)) {
        recording.policy = Some(Policy::Other);
        recording.series.iter_mut().for_each(|series| series.priority = series.priority.or(Some(0)));
    }
    let interval_ns = *recording.interval_ns.get_or_insert(1_000_000);
    // Relative sleeps begin anew behind a late wake-up, and miss no period.
    let misses = !has_option(&command, 'r', "relative");
    let together = has_option(&command, 'S', "smp") || has_option(&command, 'h', "histogram");
    let step_us = option(&command, 'd', "distance").unwrap_or(if together { 0 } else { 500 });
    for series in &mut recording.series {
        let step_ns = step_us.saturating_mul(1_000).saturating_mul(series.thread.into());
        let own = series.interval_ns.unwrap_or(interval_ns.saturating_add(step_ns));
        series.interval_ns = misses.then_some(own);
    }
}
