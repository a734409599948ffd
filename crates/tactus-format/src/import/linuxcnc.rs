//! The lines of LinuxCNC's `latency-histogram --nox`: how much the intervals between two wake-ups of its threads differed
//! from their period. They are printed again and again; the last ones count.

use std::io::Read;

use tactus_model::scheduling::Policy;

use super::conditions::{Conditions, is_command};
use super::recording::{Rows, Stated};
use super::text::{Lines, MOST_IDLE, short, too_idle};
use super::{ImportError, Recording, Values, runs};

/// Its threads, and their periods in ns if the command names no others.
const THREADS: [(&str, &str, u64); 2] = [("base", "--base", 25_000), ("servo", "--servo", 1_000_000)];

/// The figures of a thread since it began: by how many ns its shortest interval was too short, its longest too long.
#[derive(Clone, Copy)]
struct Figures {
    seconds: u64,
    early: u64,
    late: u64,
}

/// Whether a line is one of it.
pub(super) fn is_line(line: &str) -> bool {
    figures(line).is_some()
}

/// `-999.800 us`: the ns, and whether they are below zero.
fn deviation(text: &str) -> Option<(u64, bool)> {
    let text = text.trim();
    let below = text.strip_prefix('-');
    Some((super::text::decimal(below.unwrap_or(text), 1_000)?, below.is_some()))
}

/// `   11 s  servo min:-999.800 us max:2963.000 us sdev:  27.900 us`
fn figures(line: &str) -> Option<(usize, Figures)> {
    let (seconds, rest) = line.trim().split_once(" s ")?;
    let (name, rest) = rest.trim_start().split_once(" min:")?;
    let (min, rest) = rest.split_once(" us max:")?;
    let (max, rest) = rest.split_once(" us sdev:")?;
    deviation(rest.strip_suffix(" us")?)?;
    let thread = THREADS.iter().position(|(known, ..)| *known == name)?;
    let ((min, below), (max, none_late)) = (deviation(min)?, deviation(max)?);
    let figures = Figures {
        seconds: seconds.parse().ok()?,
        early: if below { min } else { 0 },
        late: if none_late { 0 } else { max },
    };
    // Both are of the same intervals.
    (below || none_late || min <= max).then_some((thread, figures))
}

/// Reads one.
pub(super) fn read<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, one)
}

fn one<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let mut threads: [Option<Figures>; THREADS.len()] = [None; THREADS.len()];
    let (mut conditions, mut policy, mut idle) = (Conditions::default(), None, 0);
    while let Some(line) = lines.next()? {
        if let Some((thread, own)) = figures(line) {
            // Its figures only grow.
            let grows = |before: Figures| {
                before.seconds <= own.seconds && before.early <= own.early && before.late <= own.late
            };
            if threads[thread].is_some_and(|before| !grows(before)) {
                lines.again();
                break;
            }
            threads[thread] = Some(own);
            continue;
        }
        let text = line.trim();
        let says = text.strip_prefix("Note: Using ");
        let begins = says.is_some() || text.starts_with("Running with fallback_uid");
        let begins = begins || is_command("latency-histogram", text);
        if threads.iter().any(Option::is_some) && begins {
            lines.again();
            break;
        }
        if text.contains(" s ") && text.contains("min:") {
            let what = format!("cut or damaged: `{}`", short(text));
            return Err(lines.error(what));
        }
        if let Some(says) = says {
            conditions.say(short(text));
            policy = says.ends_with("non-realtime").then_some(Policy::Other);
        }
        conditions.line("latency-histogram", text);
        idle += 1;
        if idle > MOST_IDLE {
            return Err(lines.error(too_idle()));
        }
    }
    recording(threads, conditions, policy).map(|recording| vec![recording]).map_err(ImportError::whole)
}

/// The number behind a word of a command.
fn number(command: &str, option: &str) -> Option<u64> {
    let mut words = command.split_whitespace();
    words.find(|word| *word == option)?;
    words.next()?.parse().ok()
}

fn recording(
    threads: [Option<Figures>; THREADS.len()],
    conditions: Conditions,
    policy: Option<Policy>,
) -> Result<Recording, String> {
    let mut recording = Recording::of("LinuxCNC latency-histogram", Values::Wakeups);
    let command = conditions.command.clone();
    let mut seconds = 0;
    for (number_of, (figures, (name, option, usual))) in (0..).zip(threads.into_iter().zip(THREADS)) {
        let Some(own) = figures else { continue };
        let period_ns = command.as_deref().map(|command| number(command, option).unwrap_or(usual));
        let took = own.seconds.checked_mul(1_000_000_000).ok_or("it is longer than any measurement")?;
        let by_time = period_ns.and_then(|period_ns| took.checked_div(period_ns));
        // Two intervals at least: one that was too short, and one that was too long.
        let least = 1 + u64::from(own.early > 0 && own.late > 0);
        // An interval that is too short shows that the wake-up before it was late by as much, or by more.
        let largest = own.early.max(own.late);
        let stated =
            Stated { cycles: Some(by_time.unwrap_or(0).max(least)), max: Some(largest), ..Stated::default() };
        let mut series = Rows::default().series(stated)?.at(number_of, None);
        series.interval_ns = period_ns;
        recording.interval_ns = recording.interval_ns.or(period_ns);
        recording.series.push(series);
        recording.notes.push(format!(
            "thread {number_of} is `{name}`: its intervals were up to {} us too long and {} us too short",
            us(own.late),
            us(own.early)
        ));
        seconds = seconds.max(own.seconds);
    }
    recording.duration_ns = seconds.checked_mul(1_000_000_000).filter(|ns| *ns > 0);
    recording.policy = policy;
    conditions.tell(&mut recording);
    recording.notes.push(
        "each value is how much an interval between two wake-ups differed from the period, as LinuxCNC's jitter: a \
wake-up was late by as much, or by more"
            .into(),
    );
    recording.notes.push(match command {
        Some(_) => "it does not contain the number of values: as many as its time has periods".into(),
        None => "it contains neither the number of values nor the period: the number shown is the smallest \
             possible"
            .into(),
    });
    recording.notes.push("it has totals but no histogram: quantiles, minimum and mean are unknown".into());
    Ok(recording)
}

/// Microseconds with a decimal place, as the tool has them.
fn us(ns: u64) -> String {
    format!("{}.{}", ns / 1_000, ns % 1_000 / 100)
}
