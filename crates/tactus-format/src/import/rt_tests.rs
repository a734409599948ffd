//! JSON of rt-tests: cyclictest, cyclicdeadline, signaltest and others, and oslat.

use super::cyclictest::default_of_cyclictest;
use super::json::{Document, Thread};
use super::recording::{Rows, Stated, option};
use super::text::{decimal, short};
use super::{ImportError, Policy, Recording, Series, Values};

/// Reads one.
pub(super) fn read(document: Document) -> Result<Vec<Recording>, ImportError> {
    let mut threads = document.thread.map_or_else(Vec::new, |threads| threads.0);
    threads.iter_mut().for_each(|(_, thread)| woken(thread));
    let command = document.command.unwrap_or_default();
    let program = command.split_whitespace().next().and_then(|word| word.rsplit('/').next());
    let program = program.unwrap_or("rt-tests").to_owned();
    // oslat alone says how long each of its threads polled.
    let polls = threads.iter().any(|(_, thread)| thread.duration.is_some());
    let unit_ns = if document.resolution_in_ns == Some(1) { 1 } else { 1_000 };
    let counted = |thread: &Thread| thread.histogram.as_ref().is_some_and(|rows| !rows.0.is_empty());
    let histogram = threads.iter().any(|(_, thread)| counted(thread));
    // If a thread, or all of them, have no row, every value was beyond the histogram.
    let size = option(&command, 'h', "histogram").or_else(|| option(&command, 'H', "histofall"));
    let asked = size.or(histogram.then_some(0));
    let instrument = match document.version {
        Some(version) => format!("{program} {version}"),
        None => program.clone(),
    };
    let mut recording = Recording::of(instrument, if polls { Values::Gaps } else { Values::Wakeups });
    for (number, thread) in &threads {
        let wrong = |what: String| ImportError::whole(format!("thread {number}: {what}"));
        let series = match polls {
            true => gaps(thread),
            false => wakeups(thread, unit_ns, asked),
        };
        let mut series = series.map_err(wrong)?.at(*number, thread.cpu);
        if let Some(sender) = &thread.sender {
            series.priority = sender.priority.filter(|priority| *priority < 100);
            let interval_ns = sender.interval.and_then(|us| us.checked_mul(1_000));
            recording.interval_ns = recording.interval_ns.or(interval_ns);
        }
        recording.series.push(series);
    }
    if let Some(priority) = recording.series.first().and_then(|series| series.priority) {
        recording.policy = Some(if priority > 0 { Policy::Fifo } else { Policy::Other });
    }
    if let Some(time) = document.start_time {
        recording.conditions.push(format!("measured on {}", short(&time)));
    }
    let durations = threads.iter().filter_map(|(_, thread)| thread.duration);
    recording.duration_ns = durations
        .fold(None, |most: Option<f64>, one| Some(most.map_or(one, |most| most.max(one))))
        .map(seconds);
    if !command.is_empty() {
        recording.called(&command);
    }
    default_of_cyclictest(&mut recording);
    if let Some(machine) = document.sysinfo {
        if let Some(realtime) = machine.realtime {
            let yes = if realtime > 0 { "yes" } else { "no" };
            recording.conditions.push(format!("kernel with PREEMPT_RT: {yes}"));
        }
        recording.node = machine.nodename;
        recording.kernel =
            machine.release.map(|release| format!("{release} {}", machine.version.unwrap_or_default()));
    }
    recording.remark();
    if asked.is_none() && !polls {
        recording.notes.push("it has totals but no histogram: quantiles are unknown".into());
    }
    Ok(vec![recording])
}

/// pmqtest and its kin have pairs; they measure the wake-up of the receiver.
fn woken(thread: &mut Thread) {
    let Some(receiver) = thread.receiver.take() else { return };
    (thread.min, thread.max, thread.avg) = (receiver.min, receiver.max, receiver.avg);
    thread.cpu = receiver.cpu.and_then(|cpu| u32::try_from(cpu).ok());
    thread.cycles = thread.sender.as_ref().and_then(|sender| sender.samples);
}

/// Seconds as ns.
fn seconds(seconds: f64) -> u64 {
    tactus_model::number::whole((seconds * 1e9).clamp(0.0, 1e18))
}

/// The figures beside the rows.
pub(super) fn stated(thread: &Thread, unit_ns: u64) -> Result<Stated, String> {
    let number = |what: &str, number: &Option<serde_json::Number>| match number {
        None => Ok(None),
        Some(number) => decimal(&number.to_string(), unit_ns)
            .map(Some)
            .ok_or_else(|| format!("its {what}, {number}, cannot be a time")),
    };
    Ok(Stated {
        cycles: thread.cycles,
        over: None,
        min: number("min", &thread.min)?,
        mean: thread.avg.map(|mean| mean * tactus_model::number::float(unit_ns)),
        max: number("max", &thread.max)?,
        coarse: false,
    })
}

/// The rows of a histogram.
pub(super) fn rows(thread: &Thread, unit_ns: u64) -> Result<Rows, String> {
    let mut rows = Rows::default();
    for (value, count) in thread.histogram.iter().flat_map(|rows| &rows.0) {
        let value_ns = decimal(value, unit_ns).ok_or_else(|| format!("`{value}` is not a time"))?;
        rows.add(value_ns, *count)?;
    }
    Ok(rows)
}

/// `asked`: how many rows the histogram was to have (0: some), if there was to be one.
fn wakeups(thread: &Thread, unit_ns: u64, asked: Option<u64>) -> Result<Series, String> {
    let mut stated = stated(thread, unit_ns)?;
    let rows = rows(thread, unit_ns)?;
    if stated.cycles.is_none() {
        return Err("it does not contain the number of `cycles`".into());
    }
    if asked.is_some() && rows.values() == 0 {
        stated.over = stated.cycles;
    }
    let mut series = rows.series(stated)?;
    if let (Some(least), Some(size)) = (&mut series.least_beyond_ns, asked) {
        *least = size.saturating_mul(unit_ns).min(series.totals.max_ns).max(*least);
    }
    Ok(series)
}

/// oslat's last bucket counts whatever is as large or larger, and is known by the maximum: that is in no other.
fn gaps(thread: &Thread) -> Result<Series, String> {
    let mut stated = stated(thread, 1_000)?;
    let mut rows = rows(thread, 1_000)?;
    // A maximum in whole microseconds may lie below the row that it is in.
    stated.max = stated.max.max(rows.most());
    if rows.most() < stated.max {
        stated.over = Some(rows.open_end());
    }
    rows.series(stated)
}
