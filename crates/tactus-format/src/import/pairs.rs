//! Text of those of rt-tests whose threads wake each other: pmqtest, ptsematest, svsematest, sigwaittest. They print the
//! totals of each pair again and again; the last ones count.

use std::collections::BTreeMap;
use std::io::Read;

use tactus_model::scheduling::Policy;

use super::conditions::{Conditions, is_command};
use super::recording::{Rows, Stated};
use super::text::{Lines, MOST_IDLE, short, too_idle};
use super::{ImportError, Recording, Values, runs};
use crate::lines::{MOST_THREADS, plain};

/// The line of a pair: its sender is `#0`, its receiver `#1`.
#[derive(Clone, Copy)]
struct Pair {
    /// The id of the sender.
    id: u64,
    priority: u32,
    cpu: Option<u32>,
    interval_us: u64,
    cycles: u64,
}

/// Whether a line is theirs.
pub(super) fn is_line(line: &str) -> bool {
    let line = plain(line);
    pair(&line).is_some() || totals(&line).is_some()
}

/// `#0: ID2227, P0, CPU1, I1000; #1: ID2228, P0, CPU1, TO 0, Cycles 44`
fn pair(line: &str) -> Option<(u32, Pair)> {
    let (sender, receiver) = line.trim().strip_prefix('#')?.split_once("; #")?;
    let (number, sender) = sender.split_once(": ID")?;
    let mut words = sender.split(", ");
    let id = words.next()?.parse().ok()?;
    let priority = words.next()?.strip_prefix('P')?.parse().ok().filter(|priority| *priority < 100)?;
    let interval_us = words.nth(1)?.strip_prefix('I')?.parse().ok()?;
    let receiver = receiver.split_once(": ID")?.1;
    let cpu = receiver.split(", ").find_map(|word| word.strip_prefix("CPU"))?;
    let cpu = cpu.parse().ok().filter(|cpu| *cpu < 4096);
    let cycles = receiver.split(", ").find_map(|word| word.strip_prefix("Cycles "))?.trim().parse().ok()?;
    let number = number.parse::<u32>().ok()?;
    (number.is_multiple_of(2) && number / 2 < MOST_THREADS)
        .then_some((number / 2, Pair { id, priority, cpu, interval_us, cycles }))
}

/// Minimum, mean and maximum.
type Figures = (u64, u64, u64);

/// `#1 -> #0, Min    5, Cur    6, Avg   14, Max  161`: minimum, mean and maximum; before its first value the minimum is -1.
fn totals(line: &str) -> Option<(u32, Option<Figures>)> {
    let (receiver, rest) = line.trim().strip_prefix('#')?.split_once(" -> #")?;
    let (_, rest) = rest.split_once(',')?;
    let number = |name: &str| -> Option<i64> {
        let (_, behind) = rest.split_once(name)?;
        behind.split(',').next()?.trim().parse().ok()
    };
    let (min, mean, max) = (number("Min ")?, number("Avg ")?, number("Max ")?);
    let figures = match min {
        -1 => None,
        _ => Some((min.try_into().ok()?, mean.try_into().ok()?, max.try_into().ok()?)),
    };
    let receiver: u32 = receiver.parse().ok()?;
    (receiver % 2 == 1 && receiver / 2 < MOST_THREADS).then_some((receiver / 2, figures))
}

/// The names of these tools.
const TOOLS: [&str; 4] = ["pmqtest", "ptsematest", "svsematest", "sigwaittest"];

/// Reads one.
pub(super) fn read<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, one)
}

fn one<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let mut conditions = Conditions::default();
    let (mut pending, mut idle, mut times_out) = (BTreeMap::new(), 0, false);
    let mut done: BTreeMap<u32, (Pair, (u64, u64, u64))> = BTreeMap::new();
    while let Some(line) = lines.next()? {
        let line = plain(line);
        let damaged = || format!("cut or damaged: `{}`", short(&line));
        let text = line.trim();
        let found = pair(text);
        // The threads of the next run have other ids, or start counting again.
        let next = match &found {
            Some((number, own)) => {
                done.get(number).is_some_and(|(before, _)| before.id != own.id || before.cycles > own.cycles)
            }
            None => !done.is_empty() && TOOLS.iter().any(|name| is_command(name, text)),
        };
        if next {
            lines.again();
            break;
        }
        let what = if let Some((number, own)) = found {
            times_out |= text.contains(", TO ");
            pending.insert(number, own);
            Ok(())
        } else if let Some((number, figures)) = totals(text) {
            match (pending.remove(&number), figures) {
                (None, _) => Err(damaged()),
                (Some(_), None) => Ok(()),
                (Some(own), Some(figures)) => {
                    done.insert(number, (own, figures));
                    Ok(())
                }
            }
        } else if text.starts_with('#') && text.contains(|c: char| c.is_ascii_digit()) {
            Err(damaged())
        } else {
            TOOLS.iter().any(|name| conditions.line(name, text));
            idle += 1;
            if idle > MOST_IDLE { Err(too_idle()) } else { Ok(()) }
        };
        what.map_err(|what| lines.error(what))?;
    }
    let named = conditions.command.as_deref().and_then(|command| command.split_whitespace().next());
    let name = named.unwrap_or(if times_out { "pmqtest" } else { "ptsematest, svsematest or sigwaittest" });
    let mut recording = Recording::of(name, Values::Wakeups);
    for (number, (own, (min, mean, max))) in done {
        let wrong = |what: String| ImportError::whole(format!("pair {number}: {what}"));
        let us =
            |value: u64| value.checked_mul(1_000).ok_or_else(|| wrong(format!("{value} us is impossible")));
        let stated = Stated {
            cycles: Some(own.cycles),
            min: Some(us(min)?),
            mean: Some(tactus_model::number::float(us(mean)?)),
            max: Some(us(max)?),
            ..Stated::default()
        };
        let mut series = Rows::default().series(stated).map_err(wrong)?.at(number, own.cpu);
        series.priority = Some(own.priority);
        if number == 0 {
            recording.interval_ns = own.interval_us.checked_mul(1_000);
            recording.policy = Some(if own.priority > 0 { Policy::Fifo } else { Policy::Other });
        }
        recording.series.push(series);
    }
    conditions.tell(&mut recording);
    recording.remark();
    recording.notes.push("it has totals but no histogram: quantiles are unknown".into());
    Ok(vec![recording])
}
