//! The text of `perf sched latency` and `perf sched timehist`: how long tasks waited for a CPU after they were woken.

use std::collections::BTreeMap;
use std::io::Read;

use super::conditions::Conditions;
use super::recording::{Rows, Stated};
use super::text::{Lines, MOST_IDLE, decimal, short, too_idle};
use super::{ImportError, Recording, Values, runs};
use crate::lines::MOST_THREADS;

/// The unit of its numbers, in ns.
const MS: u64 = 1_000_000;

/// Whether a line is of `perf sched latency`.
pub(super) fn is_latency_line(line: &str) -> bool {
    is_heading(line) || task(line).is_some()
}

/// Whether a line is of `perf sched timehist`.
pub(super) fn is_timehist_line(line: &str) -> bool {
    is_timehist_heading(line) || matches!(event(line), Some(Event { delay: Some(_), .. }))
}

/// `Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | ...`
fn is_heading(line: &str) -> bool {
    let text = line.trim();
    text.starts_with("Task ") && text.contains("| ") && text.contains("Runtime ms")
}

/// The row of a task. The tool has no delay of tasks that were never woken.
struct Task<'a> {
    name: &'a str,
    count: u64,
    delay: Option<(u64, u64)>,
}

/// `cyclictest:25343  |  3.178 ms |  4 | avg:  1.595 ms | max:  6.348 ms | max start: 56948.201656 s | ...`
fn task(line: &str) -> Option<Task<'_>> {
    let mut columns = line.split('|').map(str::trim);
    let name = columns.next().filter(|name| !name.is_empty())?;
    decimal(columns.next()?.strip_suffix(" ms")?, MS)?;
    let count = columns.next()?.parse().ok()?;
    let ms = |column: &str, name: &str| decimal(column.strip_prefix(name)?.trim().strip_suffix(" ms")?, MS);
    let (mean, max) = (ms(columns.next()?, "avg:")?, ms(columns.next()?, "max:")?);
    // The time of the largest one; 0 if there was none.
    let at = columns.next()?;
    let at = at.strip_prefix("max start:").or_else(|| at.strip_prefix("max at:"))?;
    let at = decimal(at.trim().strip_suffix(" s")?, 1_000_000_000)?;
    let sound = mean <= max;
    sound.then_some(Task { name, count, delay: (count > 0 && (at > 0 || max > 0)).then_some((mean, max)) })
}

/// Reads a table of `perf sched latency`.
pub(super) fn latency<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, table)
}

fn table<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let mut recording = Recording::of("perf sched latency", Values::Wakeups);
    let mut conditions = Conditions::default();
    let (mut idle, mut ended, mut started, mut counted) = (0, false, false, 0_u64);
    let mut largest: Option<(u64, String)> = None;
    while let Some(line) = lines.next()? {
        if is_heading(line) {
            if std::mem::replace(&mut started, true) {
                lines.again();
                break;
            }
            continue;
        }
        let damaged = || format!("cut or damaged: `{}`", short(line));
        let what = if let Some(task) = task(line).filter(|_| !ended) {
            counted = counted.saturating_add(task.count);
            add(&mut recording, &task, &mut largest)
        } else if let Some(total) = line.trim().strip_prefix("TOTAL:") {
            ended = true;
            match total.split('|').nth(2).and_then(|count| count.trim().parse::<u64>().ok()) {
                Some(total) if total == counted => Ok(()),
                Some(total) => Err(format!("its rows have {counted} delays, but `TOTAL:` is {total}")),
                None => Err(damaged()),
            }
        } else if line.contains("| avg:") {
            Err(damaged())
        } else {
            let text = line.trim();
            // `INFO: 0.135% lost events (4 out of 2957, in 2 chunks)`
            if text.starts_with("INFO:") {
                conditions.say(short(text));
            }
            conditions.line("perf", text);
            idle += 1;
            if idle > MOST_IDLE { Err(too_idle()) } else { Ok(()) }
        };
        what.map_err(|what| lines.error(what))?;
    }
    if !ended {
        return Err(lines.error("the file ends before `TOTAL:`"));
    }
    if let Some((_, name)) = largest {
        recording.notes.push(format!("the largest delay is that of `{}`", short(&name)));
    }
    if recording.series.is_empty() {
        return Err(ImportError::whole("no task of it was woken: it has no delay"));
    }
    conditions.tell(&mut recording);
    finish(&mut recording);
    recording
        .notes
        .push("it has totals but no histogram: quantiles, minimum and mean of all are unknown".into());
    Ok(vec![recording])
}

fn add(
    recording: &mut Recording,
    task: &Task<'_>,
    largest: &mut Option<(u64, String)>,
) -> Result<(), String> {
    let Some((mean, max)) = task.delay else { return Ok(()) };
    let number = u32::try_from(recording.series.len()).unwrap_or(u32::MAX);
    if number >= MOST_THREADS {
        return Err(format!("more than {MOST_THREADS} tasks: choose some with `perf sched latency --pids`"));
    }
    let stated = Stated { cycles: Some(task.count), max: Some(max), ..Stated::default() };
    recording.series.push(Rows::default().series(stated)?.at(number, None));
    if number < 16 {
        let (us, name) = (mean / 1_000, short(task.name));
        recording.notes.push(format!("thread {number} is `{name}`: its mean delay is {us} us"));
    }
    if largest.as_ref().is_none_or(|(most, _)| *most < max) {
        *largest = Some((max, task.name.to_owned()));
    }
    Ok(())
}

/// Notes for both tables.
fn finish(recording: &mut Recording) {
    recording.notes.push(
        "each value is how long a woken task waited for a CPU: tasks of every policy are in it, not only those of an \
application"
            .into(),
    );
}

/// `time    cpu  task name                       wait time  sch delay   run time`
fn is_timehist_heading(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("time") && words.any(|word| word == "cpu") && line.contains("sch delay")
}

/// A line of the history.
struct Event {
    at_ns: u64,
    cpu: u32,
    /// How long the task waited for its CPU; `None` for a line of another kind.
    delay: Option<u64>,
}

/// A number of ms with three decimal places.
fn three_places(word: &str) -> Option<u64> {
    let (_, places) = word.split_once('.')?;
    (places.len() == 3).then(|| decimal(word, MS)).flatten()
}

/// `56948.198448 [0000]  migration/0[18]   0.000      0.005      0.014`
fn event(line: &str) -> Option<Event> {
    let (time, rest) = line.trim_start().split_once(" [")?;
    let (cpu, rest) = rest.split_once(']')?;
    let at_ns = decimal(time, 1_000_000_000).filter(|_| time.contains('.'))?;
    let cpu = cpu.parse().ok().filter(|cpu| *cpu < 4096)?;
    let words: Vec<&str> = rest.split_whitespace().take(64).collect();
    let triple = words.windows(3).skip(1).find_map(|three| {
        let [wait, delay, run] = three else { return None };
        three_places(wait).and(three_places(run)).and(three_places(delay))
    });
    // The idle task is not woken.
    let is_idle = words.first().is_some_and(|name| name.starts_with("<idle>"));
    let other = words.iter().any(|word| matches!(*word, "awakened:" | "migrated:"));
    match triple {
        Some(delay) if !is_idle => Some(Event { at_ns, cpu, delay: Some(delay) }),
        _ if is_idle || other => Some(Event { at_ns, cpu, delay: None }),
        _ => None,
    }
}

/// Reads the lines of `perf sched timehist`.
pub(super) fn timehist<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, history)
}

fn history<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let mut conditions = Conditions::default();
    let mut cpus: BTreeMap<u32, Rows> = BTreeMap::new();
    let mut span: Option<(u64, u64)> = None;
    let (mut idle, mut unknown, mut summary) = (0, 0_u64, false);
    while let Some(line) = lines.next()? {
        let text = line.trim();
        // The times of a history only grow.
        let found = if summary { None } else { event(line) };
        let back = found.as_ref().zip(span).is_some_and(|(event, (_, last))| event.at_ns < last);
        if back || (span.is_some() && is_timehist_heading(line)) {
            lines.again();
            break;
        }
        let what = if let Some(event) = found {
            span = Some((span.map_or(event.at_ns, |(first, _)| first), event.at_ns));
            match event.delay {
                Some(0) => {
                    unknown += 1;
                    Ok(())
                }
                Some(delay) if cpus.len() < MOST_THREADS as usize || cpus.contains_key(&event.cpu) => {
                    cpus.entry(event.cpu).or_default().add(delay, 1)
                }
                Some(_) => Err("more CPUs than possible".into()),
                None => Ok(()),
            }
        } else if !summary && text.split_once(" [").is_some_and(|(time, _)| decimal(time, 1).is_some()) {
            Err(format!("cut or damaged: `{}`", short(line)))
        } else {
            summary |= text == "Runtime summary";
            conditions.line("perf", text);
            idle += 1;
            if idle > MOST_IDLE { Err(too_idle()) } else { Ok(()) }
        };
        what.map_err(|what| lines.error(what))?;
    }
    let mut recording = Recording::of("perf sched timehist", Values::Wakeups);
    for (number, (cpu, rows)) in (0..).zip(cpus) {
        let series = rows.series(Stated::default()).map_err(ImportError::whole)?;
        recording.series.push(series.at(number, Some(cpu)));
    }
    if recording.series.is_empty() {
        let what = "it has no delay of a wake-up (`sch delay` is 0.000 everywhere)";
        return Err(ImportError::whole(what));
    }
    // A value of 0.000 may be one that was not measured: the smallest is not known.
    if unknown > 0 {
        recording.series.iter_mut().for_each(|series| series.knows_min = false);
        recording.notes.push(format!(
            "{unknown} lines have a `sch delay` of 0.000, which perf also prints where it does not know it: they are not \
counted, so that no quantile is too small"
        ));
    }
    recording.duration_ns = span.map(|(first, last)| last - first);
    conditions.tell(&mut recording);
    finish(&mut recording);
    Ok(vec![recording])
}
