//! Text of `rtla timerlat top` and `rtla osnoise top`: a table that is printed again and again, of which the last counts.

use std::collections::BTreeMap;
use std::io::Read;

use super::conditions::Conditions;
use super::recording::{Rows, Stated};
use super::rtla::{Stop, duration_of};
use super::text::{Lines, MOST_IDLE, decimal, short, too_idle};
use super::{ImportError, Recording, Values, runs};
use crate::lines::{MOST_THREADS, plain};

/// Whether a line is of one.
pub(super) fn is_line(line: &str) -> bool {
    let line = plain(line);
    kind(&line).is_some()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `CPU COUNT      |      cur       min       avg       max |      cur ...`
    Timerlat,
    /// `CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW ...`
    Osnoise,
}

fn kind(line: &str) -> Option<Kind> {
    let mut words = line.split_whitespace();
    match (words.next()?, words.next()?) {
        ("CPU", "COUNT") if line.contains("cur") && line.contains("max") => Some(Kind::Timerlat),
        ("CPU", "Period") if line.contains("Max Noise") => Some(Kind::Osnoise),
        _ => None,
    }
}

/// Count, minimum, mean and maximum of a CPU in each part.
type Figures = Vec<Option<(u64, Option<u64>, f64, u64)>>;

struct Table {
    kind: Option<Kind>,
    unit_ns: u64,
    duration_ns: Option<u64>,
    rows: BTreeMap<u32, Figures>,
    /// The largest noise that was seen at once.
    single: BTreeMap<u32, u64>,
}

/// Reads one: the last table of each run.
pub(super) fn read<R: Read>(mut lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let (mut all, mut conditions, mut idle) = (Tables::default(), Conditions::default(), 0);
    while let Some(line) = lines.next()? {
        let line = plain(line);
        if let Some(kind) = kind(&line) {
            all.begin(&mut conditions).map_err(|what| lines.error(what))?;
            all.next.kind = Some(kind);
            continue;
        }
        let is_row = line.trim_start().split_once(' ').is_some_and(|(cpu, rest)| {
            cpu.bytes().all(|byte| byte.is_ascii_digit()) && rest.trim_start().starts_with('#')
        });
        if is_row {
            let taken = all.next.row(&line).ok_or_else(|| format!("cut or damaged: `{}`", short(&line)));
            taken.map_err(|what| lines.error(what))?;
            continue;
        }
        if let Some((duration_ns, unit_ns)) = time(&line) {
            all.begin(&mut conditions).map_err(|what| lines.error(what))?;
            (all.next.duration_ns, all.next.unit_ns) = (Some(duration_ns), unit_ns);
        }
        if !all.stop.line(line.trim()) {
            conditions.line("rtla", &line);
        }
        idle += 1;
        if idle > MOST_IDLE {
            return Err(lines.error(too_idle()));
        }
    }
    all.end(conditions).map_err(|what| lines.error(what))
}

/// The tables read so far.
#[derive(Default)]
struct Tables {
    /// The last complete table of a run.
    last: Option<Table>,
    /// The one that is being read.
    next: Table,
    stop: Stop,
    runs: runs::Runs,
}

impl Tables {
    /// A table begins.
    fn begin(&mut self, conditions: &mut Conditions) -> Result<(), String> {
        if self.next.rows.is_empty() {
            return Ok(());
        }
        let next = std::mem::take(&mut self.next);
        if let Some(last) = self.last.take().filter(|last| !next.follows(last)) {
            let stop = std::mem::take(&mut self.stop);
            self.runs.add(last.recordings(&stop, conditions)?)?;
        }
        self.last = Some(next);
        Ok(())
    }

    fn end(mut self, mut conditions: Conditions) -> Result<Vec<Recording>, String> {
        let fewer = self.last.as_ref().is_some_and(|last| {
            self.next.kind.is_some() && self.next.follows(last) && self.next.rows.len() < last.rows.len()
        });
        if fewer {
            return Err("the file ends within its last table".into());
        }
        self.begin(&mut conditions)?;
        let last = self.last.take().unwrap_or_default();
        self.runs.add(last.recordings(&self.stop, &mut conditions)?)?;
        Ok(self.runs.all)
    }
}

impl Default for Table {
    fn default() -> Self {
        Self { kind: None, unit_ns: 1_000, duration_ns: None, rows: BTreeMap::new(), single: BTreeMap::new() }
    }
}

/// `duration:   0 00:01:00 | time is in us`, `  0 00:00:01   |          IRQ Timer Latency (us) ...`: duration and unit, in ns.
fn time(line: &str) -> Option<(u64, u64)> {
    let (first, rest) = line.split_once('|')?;
    let first = first.trim();
    let duration_ns = duration_of(first.strip_prefix("duration:").unwrap_or(first))?;
    let ns = rest.contains("(ns)") || rest.contains("time is in ns");
    Some((duration_ns, if ns { 1 } else { 1_000 }))
}

impl Table {
    /// Whether this can be a later table of the same run: its figures only grow.
    fn follows(&self, before: &Self) -> bool {
        let longer = self.duration_ns.zip(before.duration_ns).is_none_or(|(own, before)| own >= before);
        let grow = |cpu: &u32, own: &Figures| {
            before.rows.get(cpu).is_none_or(|before| {
                own.iter().zip(before).all(|two| match two {
                    (Some((count, min, _, max)), Some((count_before, min_before, _, max_before))) => {
                        let same = count == count_before && (min, max) != (min_before, max_before);
                        count >= count_before && min <= min_before && max >= max_before && !same
                    }
                    (None, Some(_)) => false,
                    _ => true,
                })
            })
        };
        longer
            && self.kind == before.kind
            && self.unit_ns == before.unit_ns
            && self.rows.iter().all(|(cpu, own)| grow(cpu, own))
    }

    fn row(&mut self, line: &str) -> Option<()> {
        let unit_ns = self.unit_ns;
        let mut words = line.split_whitespace();
        let cpu = words.next()?.parse().ok().filter(|cpu| *cpu < 4096)?;
        let count: u64 = words.next()?.strip_prefix('#')?.parse().ok()?;
        let figures: Figures = match self.kind? {
            Kind::Timerlat => {
                let words: Vec<&str> = words.filter(|word| *word != "|").collect();
                let (parts, rest) = words.as_chunks::<4>();
                if parts.is_empty() || parts.len() > 3 || !rest.is_empty() {
                    return None;
                }
                let part = |[cur, min, avg, max]: &[&str; 4]| {
                    if [min, avg, max].into_iter().all(|word| *word == "-") {
                        return Some(None);
                    }
                    let _ = decimal(cur, unit_ns)?;
                    let mean = tactus_model::number::float(decimal(avg, unit_ns)?);
                    Some(Some((count, Some(decimal(min, unit_ns)?), mean, decimal(max, unit_ns)?)))
                };
                parts.iter().map(part).collect::<Option<_>>()?
            }
            Kind::Osnoise => {
                let (_runtime, noise) = (words.next()?, decimal(words.next()?, unit_ns)?);
                let (_share, max) = (words.next()?, decimal(words.next()?, unit_ns)?);
                self.single.insert(cpu, decimal(words.next()?, unit_ns)?);
                // HW, NMI, IRQ, softirq, thread.
                let counts = words.map(|word| word.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
                if counts.len() < 4 || counts.len() > 5 {
                    return None;
                }
                let mean = tactus_model::number::float(noise) / tactus_model::number::float(count.max(1));
                vec![Some((count, None, mean, max))]
            }
        };
        let new = self.rows.insert(cpu, figures).is_none();
        (new && self.rows.len() <= MOST_THREADS as usize).then_some(())
    }

    fn recordings(self, stop: &Stop, conditions: &mut Conditions) -> Result<Vec<Recording>, String> {
        let parts: &[Option<&'static str>] = match self.kind {
            Some(Kind::Timerlat) => &[Some("IRQ"), Some("thread"), Some("user")],
            _ => &[None],
        };
        let command = conditions.command.take();
        let mut recordings = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let (name, values) = match self.kind {
                Some(Kind::Timerlat) => ("rtla timerlat top", Values::Wakeups),
                _ => ("rtla osnoise top", Values::Gaps),
            };
            let mut recording = Recording::of(name, values);
            (recording.part, recording.duration_ns) = (*part, self.duration_ns);
            recording.command.clone_from(&command);
            for (cpu, figures) in &self.rows {
                let Some((cycles, min, mean, max)) = figures.get(number).copied().flatten() else { continue };
                let mean = Some(mean);
                let stated = Stated { cycles: Some(cycles), min, mean, max: Some(max), ..Stated::default() };
                let series = Rows::default().series(stated).map_err(|what| format!("CPU {cpu}: {what}"))?;
                recording.series.push(series.at(*cpu, Some(*cpu)));
            }
            if recording.series.is_empty() {
                continue;
            }
            if self.kind == Some(Kind::Osnoise) {
                recording.notes.push("each value is the noise of one period in all (Max Noise)".into());
                if let Some(single) = self.single.values().max() {
                    recording
                        .notes
                        .push(format!("the largest single noise was {} us (Max Single)", single / 1_000));
                }
            }
            stop.tell(&mut recording, *part == Some("thread"));
            recording.notes.push("it has totals but no histogram: quantiles are unknown".into());
            recordings.push(recording);
        }
        Ok(recordings)
    }
}
