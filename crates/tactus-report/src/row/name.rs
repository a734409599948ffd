//! The name of a row, and the load beside it, in words.

use serde_json::Value;
use tactus_model::Evidence;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::TimerlatValue;
use tactus_model::device_card::DeviceCard;
use tactus_model::message::Unknowable;
use tactus_model::wire::row::Word;

use super::summary::unavailable;
use crate::units::{clean, shortened};

/// The name of a measurement: that of its scenario. The environment follows if there are several, then the
/// environment around it, and the number of the run if it is repeated.
#[must_use]
pub fn title(contents: &Contents, result: &RowResult) -> String {
    titled(contents, result, result.repeat.map(|run| format!("run {run}")))
}

/// The same for all runs of it.
#[must_use]
pub fn scenario_title(contents: &Contents, result: &RowResult) -> String {
    titled(contents, result, None)
}

/// Its name in at most `most` columns, and its evidence, which is never cut off.
#[must_use]
pub fn title_and_evidence(contents: &Contents, result: &RowResult, most: usize) -> String {
    let evidence = result.evidence.map(|evidence| format!(" ({evidence})")).unwrap_or_default();
    format!("{}{evidence}", shortened(&clean(&title(contents, result)), most))
}

fn titled(contents: &Contents, result: &RowResult, run: Option<String>) -> String {
    let same = |other: &RowResult| other.name == result.name && other.repeat == result.repeat;
    let several = contents.rows.iter().filter(|row| same(&row.result)).nth(1).is_some();
    let outer = inside(contents, &result.environment).map(|outer| format!("{} in {outer}", result.kind));
    let place = several.then(|| place(result));
    let words: Vec<String> =
        place.into_iter().chain(outer).chain(marked(result)).chain(device(result)).chain(run).collect();
    if words.is_empty() { result.name.clone() } else { format!("{} ({})", result.name, words.join(", ")) }
}

/// Where it was measured: the environment, and the guest at the other end of an interrupt card.
#[must_use]
pub fn place(result: &RowResult) -> String {
    let to = result.to.as_ref().map(|to| format!(" -> {to}"));
    format!("{}{}", result.environment, to.unwrap_or_default())
}

/// The measured part of the cycles of a program, or of the periods of a timer: a scenario may have several
/// rows of one.
fn marked(result: &RowResult) -> Option<String> {
    match &result.measurement {
        Measure::Application(table) => Some(table.value().word()),
        Measure::Timerlat(table) => Some(
            match table.value() {
                TimerlatValue::Irq => "timer interrupt of the kernel, by timerlat's IRQ column",
                TimerlatValue::Thread => {
                    "thread that a timer of the kernel wakes, by timerlat's thread column"
                }
            }
            .to_owned(),
        ),
        _ => None,
    }
}

/// The name on the card of the device that raised interrupts; `None` without a valid card.
#[must_use]
pub fn device(result: &RowResult) -> Option<String> {
    let Measure::Interrupt(table) = &result.measurement else { return None };
    let card: DeviceCard = toml::from_str(table.card.as_ref()?).ok()?;
    card.check().is_ok().then_some(card.name)
}

/// The environment that one lies inside.
#[must_use]
pub fn inside(contents: &Contents, environment: &str) -> Option<String> {
    contents.plan.environment.get(environment)?.inside.clone()
}

/// No name of a load is longer.
const LONGEST_LOAD: usize = 32;

/// Says that a load ended before its time; `None` if each ran to the end. The note says why, in words of the probe: an answer
/// takes none of them but the load's name.
#[must_use]
pub fn ended_load(result: &RowResult) -> Option<String> {
    let note = unavailable(result, Unknowable::Load)?;
    let name = note.text.strip_prefix('`').and_then(|text| text.split_once("` ended before its time"));
    let is_name = |name: &&str| {
        let is_of_it = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        (1..=LONGEST_LOAD).contains(&name.len()) && name.bytes().all(is_of_it)
    };
    Some(match name.map(|(name, _)| name).filter(is_name) {
        Some(name) => format!("the load `{name}` ended before its time"),
        None => "a load ended before its time".into(),
    })
}

/// The load or fault beside a measurement, in a few words: `idle`, `under scheduler and cpu load`,
/// `with a hog fault`. It is unknown for measurements of other tools.
#[must_use]
pub fn under(result: &RowResult) -> Option<String> {
    if result.evidence == Some(Evidence::Imported) {
        return None;
    }
    let kinds = |tables: &[Value]| {
        let mut kinds: Vec<String> = Vec::new();
        for table in tables {
            let kind = table.get("kind").and_then(Value::as_str).or_else(|| table.as_str());
            let kind = clean(kind.unwrap_or("unknown"));
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        match kinds.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            [some @ .., last] => Some(format!("{} and {last}", some.join(", "))),
        }
    };
    let ended = if ended_load(result).is_some() { ", which ended early" } else { "" };
    let load = kinds(&result.load).map(|kinds| format!("under {kinds} load{ended}"));
    let fault = kinds(&result.fault).map(|kinds| format!("with a {kinds} fault"));
    let all: Vec<String> = load.into_iter().chain(fault).collect();
    Some(if all.is_empty() { "idle".into() } else { all.join(" ") })
}

/// The load beside a measurement, in words: `scheduler load`, `cpu load in guest, hog fault`.
#[must_use]
pub fn load_words(result: &RowResult) -> String {
    let words = |tables: &[Value], family: &str| -> Vec<String> {
        tables
            .iter()
            .map(|table| {
                let text = |key: &str| table.get(key).and_then(Value::as_str);
                let kind = text("kind").or_else(|| table.as_str()).unwrap_or("unknown");
                let place = text("in").filter(|place| *place != result.environment);
                let place = place.map(|place| format!(" in {place}")).unwrap_or_default();
                let cpus = text("cpus").map(|cpus| format!(" on CPU {cpus}")).unwrap_or_default();
                format!("{kind} {family}{place}{cpus}")
            })
            .collect()
    };
    let all = [words(&result.load, "load"), words(&result.fault, "fault")].concat();
    match (all.is_empty(), result.evidence) {
        // A file of another tool does not say what ran beside it.
        (true, Some(Evidence::Imported)) => "unknown".into(),
        (true, _) => "idle".into(),
        (false, _) => all.join(", "),
    }
}

/// The mark behind the name of a measurement that says nothing about this machine.
#[must_use]
pub const fn mark(evidence: Option<Evidence>) -> &'static str {
    match evidence {
        Some(Evidence::Emulated) => " (emulated)",
        Some(Evidence::Imported) => " (imported)",
        _ => "",
    }
}
