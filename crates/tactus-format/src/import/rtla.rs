//! Text of `rtla timerlat hist` and `rtla osnoise hist`, and their last lines when they stop.

use std::collections::BTreeMap;
use std::io::Read;

use super::conditions::{Conditions, is_command};
use super::recording::{Rows, Stated, option};
use super::text::{Lines, MOST_IDLE, decimal, short, too_idle};
use super::{ImportError, Recording, Series, Values, runs};
use crate::lines::MOST_THREADS;

/// Most columns: three of each CPU.
const MOST_COLUMNS: usize = 3 * MOST_THREADS as usize;

/// Whether a line is rtla's.
pub(super) fn is_line(line: &str) -> bool {
    line.starts_with("# RTLA ") || heading(line).is_some_and(|columns| !columns.is_empty())
}

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Irq,
    Thread,
    User,
    Noise,
}

/// `Index   IRQ-000   Thr-000`
fn heading(line: &str) -> Option<Vec<(Part, u32)>> {
    let words = line.trim().strip_prefix("Index")?.split_whitespace();
    let column = |word: &str| {
        let (name, cpu) = word.split_once('-')?;
        let part = match name {
            "IRQ" => Part::Irq,
            "Thr" => Part::Thread,
            "Usr" => Part::User,
            "CPU" => Part::Noise,
            _ => return None,
        };
        Some((part, cpu.parse().ok()?))
    };
    let columns: Vec<_> = words.map(column).collect::<Option<_>>()?;
    // CPUs that saw nothing have no column.
    (columns.len() <= MOST_COLUMNS).then_some(columns)
}

#[derive(Default)]
struct Table {
    unit_ns: Option<u64>,
    /// Whether its first line says that it is noise, or a timer's latency.
    noise: bool,
    conditions: Conditions,
    pub stop: Stop,
    heading: bool,
    duration_ns: Option<u64>,
    columns: Vec<(Part, u32)>,
    rows: Vec<Vec<u64>>,
    indices: Vec<u64>,
    /// Numbers that are kept.
    kept: usize,
    figures: BTreeMap<&'static str, Vec<Option<u64>>>,
    /// All columns together follow: they say nothing new.
    over: bool,
    /// Lines that say nothing.
    idle: u64,
    strange: u64,
    first: String,
}

/// Numbers of rows that are kept: 4096 rows of 500 CPUs.
const MOST_NUMBERS: usize = 1 << 21;
const FIGURES: [&str; 5] = ["over", "count", "min", "avg", "max"];

/// Reads one.
pub(super) fn read<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, one)
}

fn one<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let mut table = Table::default();
    while let Some(line) = lines.next()? {
        if table.is_whole() && begins(line) {
            lines.again();
            break;
        }
        table.line(line).map_err(|what| lines.error(what))?;
    }
    table.recordings().map_err(|what| lines.error(what))
}

/// Whether a line is one of those before a histogram.
fn begins(line: &str) -> bool {
    let text = line.trim();
    let first = ["# RTLA ", "# Time unit is ", "# Duration:"];
    first.iter().any(|first| text.starts_with(first)) || heading(text).is_some() || is_command("rtla", text)
}

impl Table {
    /// Whether its summary has been read.
    fn is_whole(&self) -> bool {
        ["over", "count"].iter().all(|figure| self.figures.contains_key(figure))
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let text = line.trim();
        let damaged = || format!("cut or damaged: `{}`", short(line));
        if let Some(comment) = text.strip_prefix('#') {
            self.idle()?;
            return self.comment(comment.trim()).ok_or_else(damaged);
        }
        if let Some(columns) = heading(text) {
            if std::mem::replace(&mut self.heading, true) {
                return Err("a second histogram, before the summary of the first one".into());
            }
            let mut sorted = columns.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() < columns.len() {
                return Err("a column appears twice in it".into());
            }
            self.columns = columns;
            return Ok(());
        }
        if self.stop.line(text) || self.conditions.line("rtla", text) {
            return self.idle();
        }
        if text.starts_with("ALL:") {
            self.over = true;
        }
        if text.is_empty() || self.over {
            return self.idle();
        }
        let (word, numbers) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if let Some(figure) = FIGURES.into_iter().find(|figure| word.strip_suffix(':') == Some(figure)) {
            let unit_ns = if matches!(figure, "over" | "count") { 1 } else { self.unit_ns.unwrap_or(1_000) };
            let number = |word: &str| match word {
                // Older ones print the largest number there is of a column without a value.
                "-" | "18446744073709551615" => Some(None),
                word => decimal(word, unit_ns).map(Some),
            };
            let numbers: Option<Vec<_>> = numbers.split_whitespace().map(number).collect();
            let numbers =
                numbers.filter(|numbers| numbers.len() == self.columns.len()).ok_or_else(damaged)?;
            let numbers = if self.heading { numbers } else { return Err(damaged()) };
            return match self.figures.insert(figure, numbers) {
                Some(_) => Err(format!("`{figure}:` appears twice in it")),
                None => Ok(()),
            };
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) && !self.columns.is_empty() {
            return self.row(word, numbers).ok_or_else(damaged);
        }
        if self.strange == 0 {
            self.first = short(line);
        }
        self.strange += 1;
        self.idle()
    }

    /// One more line that says nothing.
    fn idle(&mut self) -> Result<(), String> {
        self.idle += 1;
        if self.idle > MOST_IDLE { Err(too_idle()) } else { Ok(()) }
    }

    /// `Time unit is microseconds (us)`, `Duration:   0 00:10:00`
    fn comment(&mut self, comment: &str) -> Option<()> {
        self.noise |= comment.starts_with("RTLA osnoise");
        if let Some(unit) = comment.strip_prefix("Time unit is ") {
            self.unit_ns = Some(match unit.split_whitespace().next()? {
                "microseconds" => 1_000,
                "nanoseconds" => 1,
                _ => return None,
            });
        } else if let Some(duration) = comment.strip_prefix("Duration:") {
            self.duration_ns = Some(duration_of(duration)?);
        }
        Some(())
    }

    fn row(&mut self, index: &str, counts: &str) -> Option<()> {
        let index = index.parse().ok().filter(|index| self.indices.last().is_none_or(|last| last < index))?;
        let counts: Vec<u64> =
            counts.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        self.kept += counts.len();
        let sound =
            counts.len() == self.columns.len() && self.figures.is_empty() && self.kept <= MOST_NUMBERS;
        if sound {
            self.indices.push(index);
            self.rows.push(counts);
        }
        sound.then_some(())
    }

    fn recordings(mut self) -> Result<Vec<Recording>, String> {
        if !self.heading {
            return Err("the file ends before the line `Index`".into());
        }
        if !self.is_whole() {
            return Err(
                "the file ends before `over:` and `count:`, or was written without its summary".into()
            );
        }
        let mut conditions = std::mem::take(&mut self.conditions);
        let bucket = conditions.command.as_deref().and_then(|command| option(command, 'b', "bucket-size"));
        let (width, known) = self.width(bucket);
        let mut recordings: BTreeMap<Part, Recording> = BTreeMap::new();
        for (number, (part, cpu)) in self.columns.iter().enumerate() {
            let series =
                self.series(number, width, known).map_err(|what| format!("{part:?} of CPU {cpu}: {what}"))?;
            let recording = recordings.entry(*part).or_insert_with(|| self.recording(*part, width, known));
            recording.series.push(series.at(*cpu, Some(*cpu)));
        }
        if recordings.is_empty() && self.noise {
            let command = conditions.command.as_deref();
            let above = command.and_then(|command| option(command, 'T', "threshold"));
            let above = above.map_or_else(|| "its threshold".into(), |us| format!("{us} us"));
            let mut recording = self.recording(Part::Noise, 1, true);
            recording.found_nothing = Some(format!("it saw no noise above {above}"));
            recordings.insert(Part::Noise, recording);
        }
        let mut recordings: Vec<Recording> = recordings.into_values().collect();
        let command = conditions.command.take();
        for recording in &mut recordings {
            // `-p` of rtla is a period.
            recording.command.clone_from(&command);
            self.stop.tell(recording, recording.part == Some("thread"));
            recording.remark();
        }
        Ok(recordings)
    }

    /// The width of its rows, in units, and whether it is known. Empty rows are not in the file, so rows that
    /// lie far apart say nothing. They are wider than one unit only if the file says so, or if nothing else
    /// is possible.
    fn width(&self, bucket: Option<u64>) -> (u64, bool) {
        if let Some(bucket) = bucket.filter(|bucket| *bucket > 0) {
            return (bucket, true);
        }
        let common = self.indices.iter().fold(0, |width, index| divisor(width, *index));
        let by_chance = u32::try_from(self.indices.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let sure = common > 1 && common.saturating_pow(by_chance) >= 1_000;
        match (self.is_coarse(), common) {
            (true, 2..) => (common, true),
            (true, _) => (u64::MAX, false),
            (false, _) if sure => (common, true),
            (false, _) => (1, common <= 1),
        }
    }

    /// Whether a column has a maximum that is in none of its rows, though none of its values is beyond them.
    fn is_coarse(&self) -> bool {
        let unit_ns = self.unit_ns.unwrap_or(1_000);
        (0..self.columns.len()).any(|number| {
            let figure = |name: &str| {
                self.figures.get(name).and_then(|numbers| numbers.get(number).copied().flatten())
            };
            let mut own = self.indices.iter().zip(&self.rows).filter(|(_, counts)| counts[number] > 0);
            let last = own.next_back().map(|(index, _)| index.saturating_mul(unit_ns));
            figure("over") == Some(0) && figure("count") > Some(0) && last.is_some() && figure("max") > last
        })
    }

    fn series(&self, number: usize, width: u64, known: bool) -> Result<Series, String> {
        let unit_ns = self.unit_ns.unwrap_or(1_000);
        let figure = |name: &str| self.figures.get(name).and_then(|numbers| numbers[number]);
        if figure("count").is_none() || figure("over").is_none() {
            return Err("`over:` or `count:` has no number of it".into());
        }
        let counted = figure("count") > Some(0);
        let max = figure("max").filter(|_| counted);
        let (mut rows, mut least_sum) = (Rows::default(), 0_u128);
        for (at, counts) in self.rows.iter().enumerate().filter(|(_, counts)| counts[number] > 0) {
            // A row counts all values from its own to the next: the largest of them, or no quantile is true.
            let index = self.indices[at];
            let time = |index: u64| index.checked_mul(unit_ns).ok_or("a row is longer than any measurement");
            let end = match known {
                true => index.saturating_add(width - 1),
                false if width == 1 => index,
                false => self.indices.get(at + 1).map_or(u64::MAX / unit_ns, |next| next - 1),
            };
            let (first, last) = (time(index)?, time(end)?);
            let value_ns = max.filter(|max| *max >= first).map_or(last, |max| last.min(max));
            least_sum += u128::from(first) * u128::from(counts[number]);
            rows.add(value_ns, counts[number])?;
        }
        let cycles = figure("count").unwrap_or(0);
        // It is cut to whole units. Where the rows give more it is not theirs.
        let mean = figure("avg").filter(|avg| {
            let most = (u128::from(*avg) + u128::from(unit_ns)) * u128::from(cycles);
            counted && least_sum < most.max(1)
        });
        let mean = mean.map(tactus_model::number::float);
        let min = figure("min").filter(|_| counted);
        let max = max.max(rows.most());
        let coarse = width > 1;
        let stated = Stated { cycles: Some(cycles), over: figure("over"), min, mean, max, coarse };
        let mut series = rows.series(stated)?;
        if let (Some(least), Some(last)) = (&mut series.least_beyond_ns, self.indices.last()) {
            *least = (*least).max(last.saturating_mul(unit_ns)).min(series.totals.max_ns);
        }
        Ok(series)
    }

    fn recording(&self, part: Part, width: u64, known: bool) -> Recording {
        let (name, values) = match part {
            Part::Noise => ("rtla osnoise", Values::Gaps),
            _ => ("rtla timerlat", Values::Wakeups),
        };
        let mut recording = Recording::of(name, values);
        recording.part = match part {
            Part::Irq => Some("IRQ"),
            Part::Thread => Some("thread"),
            Part::User => Some("user"),
            Part::Noise => None,
        };
        recording.duration_ns = self.duration_ns;
        if !known {
            recording.notes.push(match width {
                1 => "it does not contain the width of its rows (rtla -b): they are taken as one unit wide"
                    .into(),
                _ => {
                    "it does not contain the width of its rows (rtla -b): a value is counted as the largest \
that its row can have, so that no quantile is too small"
                        .into()
                }
            });
        }
        if known && width > 1 {
            recording.notes.push(format!(
                "its rows lie {width} apart: each value is counted as the largest of its row, so that no quantile is \
too small"
            ));
        }
        if known && width > 1 && part == Part::Noise {
            let (more, unit) = (width - 1, if self.unit_ns == Some(1) { "ns" } else { "us" });
            recording.notes.push(format!(
                "rtla osnoise rounds what it saw down to its rows: a maximum may be up to {more} {unit} larger"
            ));
        }
        if self.strange > 0 {
            let (lines, first) = (self.strange, &self.first);
            recording.notes.push(format!("{lines} lines of it are not a histogram; the first is `{first}`"));
        }
        recording
    }
}

/// The greatest common divisor.
fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// `  0 00:10:00`: days and a clock, as ns.
pub(super) fn duration_of(text: &str) -> Option<u64> {
    let (days, clock) = text.trim().split_once(' ')?;
    let mut seconds: u64 = days.parse().ok()?;
    for (part, most) in clock.trim().split(':').zip([24, 60, 60]) {
        seconds = seconds.checked_mul(most)?.checked_add(part.parse().ok()?)?;
    }
    seconds.checked_mul(1_000_000_000)
}

/// The output of rtla when a latency above `-a`, `-i`, `-T` or `-s` stops it.
#[derive(Default)]
pub(super) struct Stop {
    said: Option<String>,
    cpu: Option<u32>,
    thread_ns: Option<u64>,
}

impl Stop {
    /// `rtla timerlat hit stop tracing`, `## CPU 3 hit stop tracing, analyzing it ##`, `Thread latency: 31.34 us (100%)`.
    pub fn line(&mut self, text: &str) -> bool {
        let text = text.trim_start_matches(['#', ' ']);
        if text.contains("hit stop tracing") {
            let cpu = text.strip_prefix("CPU ").and_then(|rest| rest.split(' ').next()?.parse().ok());
            self.cpu = self.cpu.or(cpu);
            self.said.get_or_insert_with(|| short(text.trim_end_matches([' ', '#'])));
            return true;
        }
        let Some(latency) = text.strip_prefix("Thread latency:").filter(|_| self.said.is_some()) else {
            return false;
        };
        let latency = latency.split_whitespace().next().and_then(|us| decimal(us, 1_000));
        self.thread_ns = self.thread_ns.or(latency);
        true
    }

    /// Tells a recording; the latency that it measured is of threads.
    pub fn tell(&self, recording: &mut Recording, is_thread: bool) {
        if let Some(said) = &self.said {
            let value_ns = self.thread_ns.filter(|_| is_thread && self.cpu.is_some());
            recording.ended(self.cpu, value_ns, said.clone());
        }
    }
}
