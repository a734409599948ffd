//! The table that oslat prints, and `tactus oslat`.

use std::collections::BTreeMap;
use std::io::Read;

use tactus_model::scheduling::Policy;

use super::conditions::{Conditions, is_command};
use super::recording::{Rows, Stated, policy_of};
use super::text::{Lines, MOST_IDLE, decimal, short, too_idle};
use super::{ImportError, Recording, Values, runs};
use crate::lines::MOST_THREADS;

const SECOND_NS: u64 = 1_000_000_000;

/// Whether a line is oslat's.
pub(super) fn is_line(line: &str) -> bool {
    let text = line.trim();
    let version = text
        .strip_prefix("oslat V ")
        .is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()));
    version || bucket(text).is_some()
}

/// `001 (us):\t 426829052 426240622`
fn bucket(text: &str) -> Option<(u64, &str)> {
    let (value, counts) = text.split_once(" (us):")?;
    let sound = value.len() >= 3 && value.bytes().all(|byte| byte.is_ascii_digit());
    Some((value.parse().ok().filter(|_| sound)?, counts.trim().trim_end_matches("(including overflows)")))
}

#[derive(Default)]
struct Table {
    version: Option<String>,
    cpus: Vec<u32>,
    rows: Vec<(u64, Vec<u64>)>,
    /// Those of the last lines, by their names.
    figures: BTreeMap<&'static str, Vec<u64>>,
    policy: Option<(Policy, Option<u32>)>,
    overflows: bool,
    idle: u64,
}

const FIGURES: [&str; 4] = ["Minimum", "Average", "Maximum", "Duration"];

/// Reads one.
pub(super) fn read<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, one)
}

fn one<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let (mut table, mut conditions) = (Table::default(), Conditions::default());
    while let Some(line) = lines.next()? {
        if table.is_whole() && begins(line.trim()) {
            lines.again();
            break;
        }
        table.line(line, &mut conditions).map_err(|what| lines.error(what))?;
    }
    table.recording(conditions).map(|recording| vec![recording]).map_err(|what| lines.error(what))
}

/// Whether a line is one of those before a table.
fn begins(text: &str) -> bool {
    const FIRST: [&str; 10] = [
        "oslat V ",
        "Total runtime:",
        "Thread priority:",
        "CPU list:",
        "CPU for main thread:",
        "Workload:",
        "Workload mem:",
        "Preheat cores:",
        "Pre-heat for",
        "Core:",
    ];
    FIRST.iter().any(|first| text.starts_with(first)) || bucket(text).is_some() || is_command("oslat", text)
}

impl Table {
    /// Whether its last figures have been read.
    fn is_whole(&self) -> bool {
        FIGURES.iter().all(|figure| *figure == "Duration" || self.figures.contains_key(figure))
    }

    fn line(&mut self, line: &str, conditions: &mut Conditions) -> Result<(), String> {
        let text = line.trim();
        let damaged = || format!("cut or damaged: `{}`", short(line));
        if let Some(version) = text.strip_prefix("oslat V ") {
            if self.version.replace(short(version)).is_some() {
                return Err("the table before this line is not complete".into());
            }
        } else if let Some(cpus) = text.strip_prefix("Core:") {
            let cpus: Option<Vec<u32>> =
                cpus.split_whitespace().map(|cpu| cpu.parse().ok().filter(|cpu| *cpu < 4096)).collect();
            let cpus = cpus.filter(|cpus| !cpus.is_empty() && cpus.len() <= MOST_THREADS as usize);
            self.cpus = cpus.filter(|_| self.cpus.is_empty()).ok_or_else(damaged)?;
        } else if let Some((value, counts)) = bucket(text) {
            let counts: Option<Vec<u64>> =
                counts.split_whitespace().map(|count| count.parse().ok()).collect();
            let counts = counts.filter(|counts| counts.len() == self.cpus.len()).ok_or_else(damaged)?;
            if self.rows.last().is_some_and(|(last, _)| *last >= value) || self.rows.len() > 1 << 16 {
                return Err(damaged());
            }
            self.overflows |= text.ends_with("(including overflows)");
            self.rows.push((value, counts));
        } else if let Some((figure, numbers)) = FIGURES
            .into_iter()
            .find_map(|figure| Some((figure, text.strip_prefix(figure)?.strip_prefix(':')?)))
        {
            let unit_ns = if figure == "Duration" { SECOND_NS } else { 1_000 };
            let numbers = numbers.trim().trim_end_matches("(us)").trim_end_matches("(sec)");
            let numbers: Option<Vec<u64>> =
                numbers.split_whitespace().map(|one| decimal(one, unit_ns)).collect();
            let numbers = numbers.filter(|numbers| numbers.len() == self.cpus.len()).ok_or_else(damaged)?;
            if self.figures.insert(figure, numbers).is_some() {
                return Err(damaged());
            }
        } else {
            self.header(text, conditions);
            self.idle += 1;
            if self.idle > MOST_IDLE {
                return Err(too_idle());
            }
        }
        Ok(())
    }

    fn header(&mut self, text: &str, conditions: &mut Conditions) {
        if let Some(priority) = text.strip_prefix("Thread priority:") {
            let (policy, priority) = priority.trim().split_once(':').unwrap_or((priority.trim(), ""));
            match policy_of(policy).filter(|_| policy != "default") {
                Some(policy) => self.policy = Some((policy, priority.parse().ok().filter(|own| *own < 100))),
                None => conditions.say("it set no priority of its threads".into()),
            }
        } else if text.starts_with("Workload:") || text.starts_with("CPU for main thread:") {
            conditions.say(short(&text.split_whitespace().collect::<Vec<_>>().join(" ")));
        } else {
            conditions.line("oslat", text);
        }
    }

    fn recording(self, conditions: Conditions) -> Result<Recording, String> {
        let name = self.version.map_or_else(|| "oslat".into(), |version| format!("oslat {version}"));
        let mut recording = Recording::of(name, Values::Gaps);
        let figure =
            |name: &str| self.figures.get(name).ok_or_else(|| format!("the file ends before `{name}:`"));
        let (min, mean, max) = (figure("Minimum")?, figure("Average")?, figure("Maximum")?);
        if !self.overflows {
            return Err("its last row, `(including overflows)`, is not in it".into());
        }
        let first = self.rows.first().map_or(0, |(value, _)| *value);
        // `oslat -z` prints no row without a count: then missing rows are empty.
        let omits = self.rows.iter().all(|(_, counts)| counts.iter().any(|count| *count > 0));
        let gaps = if omits { &[][..] } else { &self.rows };
        let missing = gaps.windows(2).map(|two| (two[0].0 + 1, two[1].0)).find(|(next, value)| value > next);
        for (column, cpu) in self.cpus.iter().enumerate() {
            let wrong = |what: String| format!("CPU {cpu}: {what}");
            // Rows that are not there are empty only where the largest value is smaller.
            let (least, largest) = (min[column] / 1_000, max[column] / 1_000);
            let lacks = missing.filter(|(row, _)| largest >= *row).map(|(row, _)| row);
            if let Some(row) = lacks.or((!omits && least > 0 && least < first).then_some(least)) {
                return Err(wrong(format!("the row of {row} us is missing")));
            }
            let mut rows = Rows::default();
            for (value, counts) in &self.rows {
                let value_ns = value.checked_mul(1_000).ok_or("a row is longer than any measurement")?;
                rows.add(value_ns, counts[column]).map_err(wrong)?;
            }
            let mut stated = Stated {
                min: Some(min[column]),
                mean: Some(tactus_model::number::float(mean[column])),
                max: Some(max[column]).max(rows.most()),
                ..Stated::default()
            };
            if rows.most() < stated.max {
                stated.over = Some(rows.open_end());
            }
            let mut series = rows.series(stated).map_err(wrong)?;
            (series.thread, series.cpu) = (u32::try_from(column).unwrap_or(u32::MAX), Some(*cpu));
            series.priority = self.policy.and_then(|(_, priority)| priority);
            recording.series.push(series);
        }
        recording.policy = self.policy.map(|(policy, _)| policy);
        recording.duration_ns = self.figures.get("Duration").and_then(|all| all.iter().max().copied());
        conditions.tell(&mut recording);
        recording.remark();
        Ok(recording)
    }
}
