//! The output of `latency` of Xenomai, and of `latmus` of EVL.

use std::io::Read;

use tactus_model::scheduling::Policy;

use super::conditions::Conditions;
use super::recording::{Rows, Stated};
use super::text::{Lines, MOST_IDLE, decimal, short, too_idle};
use super::{ImportError, Recording, Values, runs};

/// Whether a line is theirs.
pub(super) fn is_line(line: &str) -> bool {
    ["RTT|", "RTH|", "RTD|", "RTS|"].iter().any(|word| line.starts_with(word))
}

/// The values of a row: minimum, mean, maximum in ns and overruns; then other words.
struct Row<'a> {
    min: u64,
    mean: u64,
    max: u64,
    overruns: u64,
    rest: Vec<&'a str>,
}

/// A time that may be negative: the tool subtracts an estimate of its delay.
fn time(text: &str, negative: &mut bool) -> Option<u64> {
    match text.strip_prefix('-') {
        Some(less) => decimal(less, 1_000).map(|_| {
            *negative = true;
            0
        }),
        None => decimal(text, 1_000),
    }
}

fn row<'a>(text: &'a str, negative: &mut bool) -> Option<Row<'a>> {
    let words: Vec<&str> = text.split('|').map(str::trim).collect();
    let [min, mean, max, overruns, rest @ ..] = words.as_slice() else { return None };
    Some(Row {
        min: time(min, negative)?,
        mean: time(mean, negative)?,
        max: time(max, negative)?,
        overruns: overruns.parse().ok()?,
        rest: rest.to_vec(),
    })
}

/// `00:00:04`
fn clock(text: &str) -> Option<u64> {
    let mut seconds = 0_u64;
    for part in text.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    seconds.checked_mul(1_000_000_000)
}

/// The number behind a word, as `99` of `priority 99)`.
fn behind(text: &str, word: &str) -> Option<u64> {
    let rest = text.split_once(word)?.1.trim_start();
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

/// Reads one.
pub(super) fn read<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, one)
}

fn one<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let mut recording = Recording::of("latency of Xenomai, or latmus of EVL", Values::Wakeups);
    let mut conditions = Conditions::default();
    let mut at_ns = None;
    let (mut period_us, mut priority, mut cpu, mut idle, mut negative) = (None, None, None, 0, false);
    // Totals of the rows so far, and the last line.
    let mut so_far: Option<(u64, u64, u64)> = None;
    let mut last: Option<(u64, u64, u64, u64)> = None;
    let mut seconds: u64 = 0;
    while let Some(line) = lines.next()? {
        let text = line.trim();
        let is_title = text.starts_with("== ");
        let clocked = text.strip_prefix("RTT|").and_then(|rest| clock(rest.split_whitespace().next()?));
        // A run that is cut has no last line: the title of the next one, or its time, shows that.
        let is_row = ["RTT|", "RTD|", "RTS|"].iter().any(|word| text.starts_with(word));
        let goes_back = clocked.is_some() && clocked < at_ns;
        at_ns = clocked.or(at_ns);
        if (last.is_some() && (is_title || is_row)) || (so_far.is_some() && (is_title || goes_back)) {
            lines.again();
            break;
        }
        let damaged = || format!("cut or damaged: `{}`", short(text));
        let what = if let Some(rest) = text.strip_prefix("RTD|") {
            row(rest, &mut negative)
                .and_then(|row| {
                    let [.., best, worst] = row.rest.as_slice() else { return None };
                    let (best, worst) = (time(best, &mut negative)?, time(worst, &mut negative)?);
                    let (min, max, overruns) = so_far.unwrap_or((u64::MAX, 0, 0));
                    so_far = Some((
                        min.min(row.min).min(best),
                        max.max(row.max).max(worst),
                        overruns.max(row.overruns),
                    ));
                    seconds += 1;
                    Some(())
                })
                .ok_or_else(damaged)
        } else if let Some(rest) = text.strip_prefix("RTS|") {
            match row(rest, &mut negative) {
                Some(row) => {
                    let took = row.rest.last().and_then(|took| clock(took.split('/').next()?));
                    recording.duration_ns = took;
                    last = Some((row.min, row.mean, row.max, row.overruns));
                    Ok(())
                }
                None => Err(damaged()),
            }
        } else {
            let period = text.strip_prefix("== Sampling period:").and_then(|rest| behind(rest, ""));
            period_us = period.or(period_us);
            if text.starts_with("RTT|") {
                let period = text.split(['(', ',']).find_map(|word| word.trim().strip_suffix(" us period"));
                period_us = period.and_then(|us| us.parse().ok()).or(period_us);
                priority = behind(text, "priority ").or(priority);
                cpu = behind(text, "CPU").or(cpu);
            }
            if let Some(mode) = text.strip_prefix("== Test mode:") {
                conditions.say(format!("test mode: {}", short(mode)));
                if mode.contains("in-kernel timer handler") {
                    recording.values = Values::Interrupts;
                }
            }
            let other_unit = text.starts_with("== All results in") && !text.ends_with("microseconds");
            idle += 1;
            match idle > MOST_IDLE {
                true => Err(too_idle()),
                false if other_unit => Err(damaged()),
                false => Ok(()),
            }
        };
        what.map_err(|what| lines.error(what))?;
    }
    let period_ns = period_us.and_then(|us| us.checked_mul(1_000)).filter(|ns| *ns > 0);
    let took = recording.duration_ns.unwrap_or_else(|| seconds.saturating_mul(1_000_000_000));
    let Some(period_ns) = period_ns else {
        return Err(ImportError::whole(
            "it does not contain its period: neither `== Sampling period:` nor `RTT|` is in it",
        ));
    };
    let (min, mean, max, overruns) = match (last, so_far) {
        (Some((min, mean, max, overruns)), rows) => {
            let rows = rows.unwrap_or((min, max, overruns));
            (min.min(rows.0), Some(mean), max.max(rows.1), overruns.max(rows.2))
        }
        (None, Some((min, max, overruns))) => {
            recording.notes.push("it ends before its last line, `RTS|`: the mean is unknown".into());
            (min, None, max, overruns)
        }
        (None, None) => return Err(ImportError::whole("it has no measured values")),
    };
    let stated = Stated {
        cycles: Some((took / period_ns).max(1)),
        min: Some(min),
        mean: mean.map(tactus_model::number::float),
        max: Some(max),
        ..Stated::default()
    };
    let cpu = cpu.and_then(|cpu| u32::try_from(cpu).ok()).filter(|cpu| *cpu < 4096);
    let mut series = Rows::default().series(stated).map_err(ImportError::whole)?.at(0, cpu);
    series.totals.overruns = overruns;
    series.priority =
        priority.and_then(|priority| u32::try_from(priority).ok()).filter(|priority| *priority < 100);
    recording.policy = series.priority.filter(|priority| *priority > 0).map(|_| Policy::Fifo);
    (recording.interval_ns, recording.counts_missed) = (Some(period_ns), true);
    recording.series.push(series);
    conditions.tell(&mut recording);
    recording.notes.push("it does not contain the number of values: as many as its time has periods".into());
    if negative {
        recording
            .notes
            .push("it has latencies below zero, as the tool corrects its timer: they are shown as 0".into());
    }
    recording.notes.push("it has totals but no histogram: quantiles are unknown".into());
    Ok(vec![recording])
}
