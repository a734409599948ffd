//! The output of `stress-ng --cyclic`.

use std::collections::BTreeMap;
use std::io::Read;

use super::conditions::Conditions;
use super::recording::{Rows, Stated, policy_of};
use super::text::{Lines, MOST_IDLE, decimal, short, too_idle};
use super::{ImportError, Policy, Recording, Values};
use crate::lines::MOST_THREADS;

#[derive(Default)]
struct Stressor {
    policy: Option<Policy>,
    samples: Option<u64>,
    mean: Option<f64>,
    bounds: Option<(u64, u64)>,
    percentiles: Vec<String>,
}

/// Whether a line is one of it.
pub(super) fn is_line(line: &str) -> bool {
    line.contains("stress-ng") && line.contains("] cyclic: ")
}

/// The number behind a word, in ns.
fn ns(text: &str, word: &str) -> Option<u64> {
    decimal(text.split_once(word)?.1.split_whitespace().next()?, 1)
}

/// Takes a line of a stressor: its id stands before it.
fn cyclic(
    stressors: &mut BTreeMap<u64, Stressor>,
    conditions: &mut Conditions,
    before: &str,
    text: &str,
) -> Result<(), String> {
    let damaged = || format!("cut or damaged: `{}`", short(text));
    let id = before.rsplit_once('[').and_then(|(_, id)| id.trim().parse().ok()).ok_or_else(damaged)?;
    if !stressors.contains_key(&id) && stressors.len() >= MOST_THREADS as usize {
        return Err("more stressors than there can be threads".into());
    }
    let own = stressors.entry(id).or_default();
    if let Some(rest) = text.strip_prefix("sched ") {
        own.policy = rest.split(':').next().and_then(policy_of);
        own.samples =
            rest.split(", ").find_map(|word| word.strip_suffix(" samples")).and_then(|n| n.parse().ok());
        conditions.say(short(rest));
    } else if text.starts_with("mean: ") {
        let mean = text.split_whitespace().nth(1).and_then(|mean| mean.parse::<f64>().ok());
        own.mean = Some(mean.filter(|mean| mean.is_finite()).ok_or_else(damaged)?);
    } else if text.starts_with("min: ") {
        own.bounds = Some(ns(text, "min: ").zip(ns(text, "max: ")).ok_or_else(damaged)?);
    } else if let Some((percent, value)) = text.split_once("%:").filter(|_| own.percentiles.len() < 16) {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        own.percentiles.push(format!("{}% {}", short(percent), short(&value)));
    }
    Ok(())
}

/// Reads one.
pub(super) fn read<R: Read>(mut lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let mut conditions = Conditions::default();
    let (mut stressors, mut idle): (BTreeMap<u64, Stressor>, u64) = (BTreeMap::new(), 0);
    while let Some(line) = lines.next()? {
        let what = match line.split_once("] cyclic: ") {
            Some((before, text)) => cyclic(&mut stressors, &mut conditions, before, text.trim()),
            None => {
                conditions.line("stress-ng", line);
                idle += 1;
                if idle > MOST_IDLE { Err(too_idle()) } else { Ok(()) }
            }
        };
        what.map_err(|what| lines.error(what))?;
    }
    let mut recording = Recording::of("stress-ng --cyclic", Values::Wakeups);
    for (number, (_, own)) in (0..).zip(stressors) {
        let wrong = |what: &str| ImportError::whole(format!("stressor {number}: {what}"));
        let (min, max) = own.bounds.ok_or_else(|| wrong("it has no line `min:`, `max:`"))?;
        let cycles = own.samples.ok_or_else(|| wrong("it does not contain the number of samples"))?;
        let stated = Stated {
            cycles: Some(cycles),
            min: Some(min),
            mean: own.mean,
            max: Some(max),
            ..Stated::default()
        };
        let series = Rows::default().series(stated).map_err(|what| wrong(&what))?;
        recording.series.push(series.at(number, None));
        recording.policy = recording.policy.or(own.policy);
        if !own.percentiles.is_empty() {
            conditions.say(format!("percentiles of stressor {number}: {}", own.percentiles.join(", ")));
        }
    }
    conditions.tell(&mut recording);
    recording.notes.push("it has totals but no histogram: its percentiles are in the notes".into());
    Ok(vec![recording])
}
