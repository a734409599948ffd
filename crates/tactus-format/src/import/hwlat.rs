//! The output of hwlatdetect: the gaps that the kernel's detector saw with interrupts off.

use std::io::Read;

use super::conditions::{Conditions, is_command};
use super::recording::{Rows, Stated};
use super::text::{Lines, MOST_IDLE, decimal, short, too_idle};
use super::{ImportError, Recording, Series, Values, runs};

/// Whether a line is its.
pub(super) fn is_line(line: &str) -> bool {
    line.trim_start().starts_with("hwlatdetect:  test duration ")
        || line.starts_with("Samples exceeding threshold:")
}

/// `1646837340.346151918, inner:5, outer:9[, cpu:3]`: the larger of the two.
fn sample(text: &str) -> Option<u64> {
    let number = |name: &str| {
        text.split(", ").find_map(|word| word.strip_prefix(name)).and_then(|n| decimal(n, 1_000))
    };
    Some(number("inner:")?.max(number("outer:")?))
}

/// Reads one.
pub(super) fn read<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, one)
}

fn one<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let mut recording = Recording::of("hwlatdetect", Values::Gaps);
    let mut conditions = Conditions::default();
    let (mut rows, mut max, mut recorded, mut threshold, mut below, mut idle) =
        (Rows::default(), None, None, None, false, 0);
    while let Some(line) = lines.next()? {
        let text = line.trim();
        let begins = text.starts_with("hwlatdetect:  test duration ");
        if recorded.is_some() && (begins || is_command("hwlatdetect", text)) {
            lines.again();
            break;
        }
        let damaged = || format!("cut or damaged: `{}`", short(text));
        let us = |text: &str| text.trim().strip_suffix("us").and_then(|us| decimal(us.trim(), 1_000));
        let what = if let Some(rest) = text.strip_prefix("hwlatdetect:  test duration ") {
            let seconds = rest.strip_suffix(" seconds").and_then(|seconds| decimal(seconds, 1_000_000_000));
            match recording.duration_ns.is_some() {
                true => Err("a second run begins: put each run into a separate file".into()),
                false => seconds.map(|ns| recording.duration_ns = Some(ns)).ok_or_else(damaged),
            }
        } else if let Some(rest) = text.strip_prefix("Max Latency:") {
            below = rest.trim() == "Below threshold";
            max = us(rest);
            if below || max.is_some() { Ok(()) } else { Err(damaged()) }
        } else if let Some(rest) = text.strip_prefix("Samples recorded:") {
            rest.trim().parse::<u64>().map(|count| recorded = Some(count)).map_err(|_| damaged())
        } else if let Some(rest) = text.strip_prefix("ts:") {
            sample(rest).ok_or_else(damaged).and_then(|value_ns| rows.add(value_ns, 1))
        } else {
            if let Some(rest) = text.strip_prefix("Latency threshold:") {
                threshold = us(rest);
            }
            let facts = [
                "detector:",
                "CPU list:",
                "Latency threshold:",
                "Sample window:",
                "Sample width:",
                "SMIs during run:",
            ];
            if facts.iter().any(|fact| text.starts_with(fact)) {
                conditions.say(short(&text.split_whitespace().collect::<Vec<_>>().join(" ")));
            } else {
                conditions.line("hwlatdetect", text);
            }
            idle += 1;
            if idle > MOST_IDLE { Err(too_idle()) } else { Ok(()) }
        };
        what.map_err(|what| lines.error(what))?;
    }
    let series = series(rows, max, recorded, below).map_err(|what| lines.error(what))?;
    match series {
        Some(series) => recording.series.push(series),
        None => {
            let above = threshold.map_or_else(|| "its threshold".into(), |ns| format!("{} us", ns / 1_000));
            recording.found_nothing = Some(format!("it saw no gap above {above}"));
        }
    }
    conditions.tell(&mut recording);
    recording
        .notes
        .push("gaps below its threshold are not in it, nor those outside of its sample windows".into());
    Ok(vec![recording])
}

/// None: there was nothing above the threshold.
fn series(
    rows: Rows,
    max: Option<u64>,
    recorded: Option<u64>,
    below: bool,
) -> Result<Option<Series>, String> {
    let recorded = recorded.ok_or("the file ends before `Samples recorded:`")?;
    if below && (recorded > 0 || rows.values() > 0) {
        return Err("it has samples, but its maximum is below the threshold".into());
    }
    if below {
        return Ok(None);
    }
    let max = max.ok_or("it has no line `Max Latency:`")?;
    if rows.values() == recorded && rows.most() != Some(max) {
        return Err(format!("its samples have another maximum than {} us", max / 1_000));
    }
    // Samples are listed where they are few, or with --report.
    let rows = if rows.values() == recorded { rows } else { Rows::default() };
    let stated = Stated { cycles: Some(recorded), max: Some(max), ..Stated::default() };
    rows.series(stated).map(Some)
}
