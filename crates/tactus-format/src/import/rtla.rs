//! Text of `rtla timerlat hist` and `rtla osnoise hist`.

use std::collections::BTreeMap;
use std::io::Read;

use super::recording::{Rows, Stated};
use super::text::{Lines, MOST_IDLE, decimal, short, too_idle};
use super::{ImportError, Recording, Values};
use crate::lines::MOST_THREADS;

/// Most columns: three of each CPU.
const MOST_COLUMNS: usize = 3 * MOST_THREADS as usize;

/// Whether a line is rtla's.
pub(super) fn is_line(line: &str) -> bool {
    line.starts_with("# RTLA ") || heading(line).is_some()
}

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Irq,
    Thread,
    User,
    Noise,
}

/// `Index   IRQ-000   Thr-000`
fn heading(line: &str) -> Option<Vec<(Part, u32)>> {
    let words = line.trim().strip_prefix("Index ")?.split_whitespace();
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
    (!columns.is_empty() && columns.len() <= MOST_COLUMNS).then_some(columns)
}

#[derive(Default)]
struct Table {
    unit_ns: Option<u64>,
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
pub(super) fn read<R: Read>(mut lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let mut table = Table::default();
    while let Some(line) = lines.next()? {
        table.line(line).map_err(|what| lines.error(what))?;
    }
    table.recordings().map_err(|what| lines.error(what))
}

impl Table {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let text = line.trim();
        let damaged = || format!("cut or damaged: `{}`", short(line));
        if let Some(comment) = text.strip_prefix('#') {
            self.idle()?;
            return self.comment(comment.trim()).ok_or_else(damaged);
        }
        if let Some(columns) = heading(text) {
            if !self.columns.is_empty() {
                return Err("a second histogram: put each run into a file of its own".into());
            }
            let mut sorted = columns.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() < columns.len() {
                return Err("a column stands in it twice".into());
            }
            self.columns = columns;
            return Ok(());
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
            return match self.figures.insert(figure, numbers) {
                Some(_) => Err(format!("`{figure}:` stands in it twice")),
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
        if let Some(unit) = comment.strip_prefix("Time unit is ") {
            self.unit_ns = Some(match unit.split_whitespace().next()? {
                "microseconds" => 1_000,
                "nanoseconds" => 1,
                _ => return None,
            });
        } else if let Some(duration) = comment.strip_prefix("Duration:") {
            let (days, clock) = duration.trim().split_once(' ')?;
            let mut seconds: u64 = days.parse().ok()?;
            for (part, most) in clock.trim().split(':').zip([24, 60, 60]) {
                seconds = seconds.checked_mul(most)?.checked_add(part.parse().ok()?)?;
            }
            self.duration_ns = Some(seconds.checked_mul(1_000_000_000)?);
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

    fn recordings(self) -> Result<Vec<Recording>, String> {
        if self.columns.is_empty() {
            return Err("the file ends before the line `Index`".into());
        }
        let unit_ns = self.unit_ns.unwrap_or(1_000);
        let width = self.indices.iter().fold(0, |width, index| divisor(width, *index)).max(1);
        let mut recordings: BTreeMap<Part, Recording> = BTreeMap::new();
        for (number, (part, cpu)) in self.columns.iter().enumerate() {
            let wrong = |what: String| format!("{part:?} of CPU {cpu}: {what}");
            let figure = |name: &str| self.figures.get(name).and_then(|numbers| numbers[number]);
            if figure("count").is_none() || figure("over").is_none() {
                return Err(
                    "the file ends before `over:` and `count:`, or was written without its summary".into()
                );
            }
            let counted = figure("count") > Some(0);
            let max = figure("max").filter(|_| counted);
            let mut rows = Rows::default();
            for (index, counts) in
                self.indices.iter().zip(&self.rows).filter(|(_, counts)| counts[number] > 0)
            {
                // A row counts all values from its own to the next: the largest of them, or no quantile is true.
                let time =
                    |index: u64| index.checked_mul(unit_ns).ok_or("a row is longer than anybody measures");
                let (first, last) = (time(*index)?, time(index.saturating_add(width - 1))?);
                let value_ns = max.filter(|max| *max >= first).map_or(last, |max| last.min(max));
                rows.add(value_ns, counts[number]).map_err(wrong)?;
            }
            let mean = figure("avg").filter(|_| counted).map(tactus_model::number::float);
            let min = figure("min").filter(|_| counted);
            let max = max.max(rows.most());
            let coarse = width > 1;
            let stated = Stated { cycles: figure("count"), over: figure("over"), min, mean, max, coarse };
            let mut series = rows.series(stated).map_err(wrong)?;
            if let (Some(least), Some(last)) = (&mut series.least_beyond_ns, self.indices.last()) {
                *least = (*least).max(last.saturating_mul(unit_ns));
            }
            let recording = recordings.entry(*part).or_insert_with(|| self.recording(*part, width));
            recording.series.push(series.at(*cpu, Some(*cpu)));
        }
        let mut recordings: Vec<Recording> = recordings.into_values().collect();
        recordings.iter_mut().for_each(Recording::remark);
        Ok(recordings)
    }

    fn recording(&self, part: Part, width: u64) -> Recording {
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
        if width > 1 {
            recording.notes.push(format!(
                "its rows lie {width} apart: each value is counted as the largest of its row, so that no quantile is \
too small"
            ));
        }
        if width > 1 && part == Part::Noise {
            let (more, unit) = (width - 1, if self.unit_ns == Some(1) { "ns" } else { "us" });
            recording.notes.push(format!(
                "rtla osnoise rounds what it saw down to its rows: a maximum may be up to {more} {unit} larger"
            ));
        }
        if self.strange > 0 {
            let (lines, first) = (self.strange, &self.first);
            recording.notes.push(format!("{lines} lines of it are no histogram; the first is `{first}`"));
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
