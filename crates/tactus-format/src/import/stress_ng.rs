//! The log of `stress-ng --cyclic`, also where its YAML (`--yaml`) is in the same file. The YAML alone has no latency.

use std::io::Read;

use super::conditions::Conditions;
use super::recording::{Rows, Stated, policy_of};
use super::text::{Lines, MOST_IDLE, short, too_idle};
use super::{ImportError, Policy, Recording, Values, runs};

/// The most rows that `--cyclic-dist` prints.
const MOST_ROWS: u32 = 250;

/// A run. Only the first stressor of a run prints its latencies.
#[derive(Default)]
struct Run {
    /// The stressor that prints.
    id: Option<u64>,
    policy: Option<Policy>,
    samples: Option<u64>,
    /// Wake-ups in all, if more than were kept.
    wakeups: Option<u64>,
    mean: Option<f64>,
    bounds: Option<(u64, u64)>,
    percentiles: Vec<String>,
    distribution: Option<Distribution>,
    negative: bool,
    /// Whether lines of the YAML follow, and its release and version of the kernel.
    is_yaml: bool,
    node: Option<String>,
    release: Option<String>,
    version: Option<String>,
    date: Option<String>,
}

/// The rows of `--cyclic-dist`: each counts the values from its own to the next.
#[derive(Default)]
struct Distribution {
    width: u64,
    /// The number of rows with the leading ones, and that of all rows there would be.
    sizes: Option<(u64, u64)>,
    rows: Vec<(u64, u64)>,
    /// The row that must come next, if no zeros are left out before it.
    next: Option<u64>,
}

/// Whether a line is one of it.
pub(super) fn is_line(line: &str) -> bool {
    line.contains("stress-ng") && line.contains("] cyclic: ")
}

/// Whether a line begins a run.
fn begins(line: &str) -> bool {
    line.contains("stress-ng: ") && (line.contains("] setting to a") || line.contains("] dispatching hogs:"))
}

/// The whole number behind a word, in ns; one below zero is 0.
fn ns(text: &str, word: &str, negative: &mut bool) -> Option<u64> {
    let number: i64 = text.split_once(word)?.1.split_whitespace().next()?.parse().ok()?;
    *negative |= number < 0;
    Some(u64::try_from(number).unwrap_or(0))
}

impl Run {
    /// Whether a line of the stressor belongs to the next run.
    fn is_over(&self, id: Option<u64>, text: &str) -> bool {
        let of_another = self.samples.is_some() && id.is_some() && id != self.id;
        of_another || (text.starts_with("sched ") && self.samples.is_some())
    }

    /// Takes a line of the stressor.
    fn cyclic(&mut self, id: Option<u64>, text: &str, conditions: &mut Conditions) -> Result<(), String> {
        let damaged = || format!("cut or damaged: `{}`", short(text));
        let negative = &mut self.negative;
        if let Some(rest) = text.strip_prefix("sched ") {
            self.id = Some(id.ok_or_else(damaged)?);
            self.policy = rest.split([':', ' ']).next().and_then(policy_of);
            let samples = rest.split(", ").find_map(|word| word.strip_suffix(" samples"));
            self.samples = Some(samples.and_then(|n| n.parse().ok()).ok_or_else(damaged)?);
            conditions.say(short(rest));
        } else if text.starts_with("mean: ") {
            let mean = text.split_whitespace().nth(1).and_then(|mean| mean.parse::<f64>().ok());
            self.mean = Some(mean.filter(|mean| mean.is_finite()).ok_or_else(damaged)?);
        } else if text.starts_with("min: ") {
            let bounds = ns(text, "min: ", negative).zip(ns(text, "max: ", negative));
            self.bounds = Some(bounds.ok_or_else(damaged)?);
        } else if let Some((percent, value)) = text.split_once("%:").filter(|_| self.percentiles.len() < 16) {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            self.percentiles.push(format!("{}% {}", short(percent), short(&value)));
        } else if let Some(rest) = text.strip_prefix("Note: --cyclic-samples needed to be ") {
            self.wakeups = Some(rest.split(' ').next().and_then(|n| n.parse().ok()).ok_or_else(damaged)?);
        } else if let Some(rest) = text.strip_prefix("latency distribution (") {
            let width = rest.strip_suffix(" ns intervals):").and_then(|width| width.parse().ok());
            let width = width.filter(|width| *width > 0 && self.distribution.is_none());
            let width = width.ok_or_else(damaged)?;
            self.distribution = Some(Distribution { width, next: Some(0), ..Distribution::default() });
        } else if let Some(distribution) = &mut self.distribution {
            distribution.line(text).ok_or_else(damaged)?;
        }
        Ok(())
    }

    /// Takes a line of the YAML.
    fn yaml(&mut self, line: &str) {
        self.is_yaml |= line.trim_end() == "system-info:";
        let Some((name, value)) = line.trim().split_once(": ").filter(|_| self.is_yaml) else { return };
        let field = match name {
            "nodename" => &mut self.node,
            "release" => &mut self.release,
            "version" => &mut self.version,
            "date-yyyy-mm-dd" => &mut self.date,
            _ => return,
        };
        field.get_or_insert_with(|| short(value.trim().trim_matches('\'')));
    }

    /// The rows as a series has them, and how many values are beyond them.
    fn rows(&self, samples: u64, largest: u64) -> Result<(Rows, Option<u64>), String> {
        let mut rows = Rows::default();
        let Some(distribution) = &self.distribution else { return Ok((rows, None)) };
        let lost = "rows of its distribution are missing";
        let (printed, all) = distribution.sizes.ok_or(lost)?;
        let last = distribution.rows.last().map(|(value, _)| *value);
        if last != (printed - 1).checked_mul(distribution.width) {
            return Err(lost.into());
        }
        for (value, count) in &distribution.rows {
            // The largest value that the row can have, so that no quantile is too small.
            rows.add(value.saturating_add(distribution.width - 1).min(largest), *count)?;
        }
        let over = samples.checked_sub(rows.values()).ok_or("its rows have more values than it measured")?;
        match over > 0 && printed == all {
            true => Err(lost.into()),
            false => Ok((rows, Some(over))),
        }
    }

    fn recording(mut self, mut conditions: Conditions) -> Result<Recording, String> {
        let mut recording = Recording::of("stress-ng --cyclic", Values::Wakeups);
        let (min, max) = self.bounds.ok_or("it has no line `min:`, `max:`")?;
        let cycles = self.samples.ok_or("it does not contain the number of samples")?;
        let (rows, over) = self.rows(cycles, max)?;
        let stated = Stated {
            cycles: Some(cycles),
            over,
            min: Some(min),
            mean: self.mean,
            max: Some(max),
            coarse: true,
        };
        recording.series.push(rows.series(stated)?);
        recording.policy = self.policy;
        if !self.percentiles.is_empty() {
            conditions.say(format!("percentiles: {}", self.percentiles.join(", ")));
        }
        if let Some(date) = self.date.take() {
            conditions.say(format!("measured on {date}"));
        }
        conditions.tell(&mut recording);
        recording.node = recording.node.or(self.node);
        let kernel = self.release.map(|release| format!("{release} {}", self.version.unwrap_or_default()));
        recording.kernel = recording.kernel.or(kernel);
        if let Some(wakeups) = self.wakeups {
            recording.notes.push(format!(
                "its figures are of the first {cycles} of {wakeups} wake-ups (--cyclic-samples {wakeups} keeps all)"
            ));
        }
        recording.notes.push(match &self.distribution {
            Some(distribution) => format!(
                "its rows are {} ns wide: each value is counted as the largest of its row, so that no quantile is too \
small",
                distribution.width
            ),
            None => "it has totals but no histogram (--cyclic-dist 1000): its percentiles are in the notes".into(),
        });
        if self.negative {
            recording.notes.push("it has latencies below zero: they are shown as 0".into());
        }
        recording.remark();
        Ok(recording)
    }
}

impl Distribution {
    /// `(for the first 250 buckets of 288)`, `latency (ns)  frequency`, `5000        830`, `..    .. (all zeros hereafter)`
    fn line(&mut self, text: &str) -> Option<()> {
        if let Some(rest) = text.strip_prefix("(for the first ") {
            let (printed, all) = rest.strip_suffix(')')?.split_once(" buckets of ")?;
            let (printed, all) = (printed.parse().ok()?, all.parse().ok()?);
            self.sizes =
                Some((printed, all)).filter(|_| (1..=u64::from(MOST_ROWS).min(all)).contains(&printed));
            return self.sizes.map(|_| ());
        }
        if text.starts_with("..") {
            self.next = None;
            return Some(());
        }
        let Some((value, count)) = text.split_once(char::is_whitespace) else { return Some(()) };
        let (Ok(value), Ok(count)) = (value.parse::<u64>(), count.trim().parse::<u64>()) else {
            return (!value.starts_with(|c: char| c.is_ascii_digit())).then_some(());
        };
        let ordered = self.rows.last().is_none_or(|(last, _)| *last < value);
        let sound = ordered && value.is_multiple_of(self.width) && self.next.is_none_or(|next| next == value);
        // Rows behind the omitted zeros have no count.
        if !sound || self.rows.len() >= MOST_ROWS as usize || (self.next.is_none() && count > 0) {
            return None;
        }
        self.rows.push((value, count));
        self.next = self.next.and_then(|next| next.checked_add(self.width));
        Some(())
    }
}

/// Reads one.
pub(super) fn read<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, one)
}

fn one<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let (mut run, mut conditions, mut idle) = (Run::default(), Conditions::default(), 0);
    while let Some(line) = lines.next()? {
        let found = line.split_once("] cyclic: ").filter(|(before, _)| before.contains("stress-ng"));
        let id = found.and_then(|(before, _)| before.rsplit_once('[')?.1.trim().parse().ok());
        let next = match found {
            Some((_, text)) => run.is_over(id, text.trim()),
            None => run.samples.is_some() && begins(line),
        };
        if next {
            lines.again();
            break;
        }
        let what = match found {
            Some((_, text)) => run.cyclic(id, text.trim(), &mut conditions),
            None => {
                conditions.line("stress-ng", line);
                run.yaml(line);
                idle += 1;
                if idle > MOST_IDLE { Err(too_idle()) } else { Ok(()) }
            }
        };
        what.map_err(|what| lines.error(what))?;
    }
    run.recording(conditions).map(|recording| vec![recording]).map_err(ImportError::whole)
}
