//! The parts of the page below the comparison.

use serde::Serialize;
use tactus_model::bundle::{Contents, Row};
use tactus_model::event::RowStatus;
use tactus_model::facts::{Facts, Reading};
use tactus_model::message::NoteKind;
use tactus_model::number::float;

use super::page::{Drawn, class};
use crate::analysis::{control, control_sentence, remarks, title};
use crate::figure::environments;
use crate::units::{NONE, clean, count, duration, latency, latency_or_none};

/// An environment with its figures and threads.
#[derive(Debug, Serialize)]
pub struct Section {
    name: String,
    kinds: Vec<(String, &'static str)>,
    start_up: Option<String>,
    figures: Vec<Drawn>,
    threads: Vec<ThreadRow>,
    has_thread_counters: bool,
    /// Whether misses of the last-level cache were counted: seldom, so that the column would be empty.
    has_misses: bool,
}

/// A measuring thread.
#[derive(Debug, Serialize)]
struct ThreadRow {
    scenario: String,
    id: String,
    priority: String,
    values: Vec<String>,
    counters: Vec<String>,
    misses: String,
}

/// How the control of a row went.
#[derive(Debug, Serialize)]
pub struct ControlRow {
    name: String,
    thread: String,
    injected: String,
    seen: String,
    noise: String,
    proven: bool,
    sentence: Option<String>,
}

/// One of the largest values.
#[derive(Debug, Serialize)]
pub struct LargestRow {
    name: String,
    kind: &'static str,
    evidence: Option<String>,
    values: Vec<(String, String, String)>,
}

/// The notes of one kind.
#[derive(Debug, Serialize)]
pub struct Notes {
    title: &'static str,
    id: &'static str,
    none: &'static str,
    notes: Vec<(String, Option<String>, String)>,
}

/// The facts that matter most, an environment beside the other.
#[derive(Debug, Default, Serialize)]
pub struct SideBySide {
    environments: Vec<String>,
    rows: Vec<(&'static str, Vec<String>)>,
}

/// All facts of an environment.
#[derive(Debug, Serialize)]
pub struct FactsOf {
    name: String,
    count: usize,
    readings: Vec<(String, String, &'static str)>,
}

/// An entry for every environment in which something was measured.
pub fn sections(contents: &Contents) -> Vec<Section> {
    environments(contents)
        .into_iter()
        .map(|own| {
            let rows: Vec<&Row> =
                contents.rows.iter().filter(|row| row.result.environment == own.environment).collect();
            let mut kinds: Vec<_> = rows
                .iter()
                .filter_map(|row| Some((row.result.evidence?.to_string(), class(row.result.evidence))))
                .collect();
            kinds.dedup();
            let start_up: Vec<u64> = rows.iter().filter_map(|row| row.result.start_up_ms).collect();
            let threads: Vec<ThreadRow> = rows.iter().flat_map(|row| threads(contents, row)).collect();
            Section {
                name: clean(&place(contents, &own.environment)),
                kinds,
                start_up: start_up.iter().max().map(|ms| duration(ms * 1_000_000)),
                figures: own.figures.iter().map(Drawn::from).collect(),
                has_thread_counters: threads
                    .iter()
                    .any(|thread| thread.counters.iter().any(|value| value != NONE)),
                has_misses: threads.iter().any(|thread| thread.misses != NONE),
                threads,
            }
        })
        .collect()
}

/// The name of an environment, and what it lies inside.
fn place(contents: &Contents, environment: &str) -> String {
    let of = contents.plan.environment.get(environment);
    match of.and_then(|of| Some((&of.kind, of.inside.as_ref()?))) {
        Some((kind, outer)) => format!("{environment} ({kind} in {outer})"),
        None => environment.to_owned(),
    }
}

fn threads(contents: &Contents, row: &Row) -> Vec<ThreadRow> {
    let result = &row.result;
    let scenario = title(contents, result);
    let thread = |series: &tactus_model::outcome::SeriesResult| {
        let all = &series.summary;
        let number = |value: Option<u64>| value.map_or_else(|| NONE.into(), count);
        let thread = &series.counters;
        ThreadRow {
            scenario: clean(&scenario),
            id: clean(&series.key.to_string()),
            priority: format!("{} {}", result.policy, series.key.priority),
            values: vec![
                latency_or_none(all.min_ns),
                all.mean_ns.map_or_else(|| NONE.into(), latency),
                latency_or_none(all.p99_ns),
                latency_or_none(all.p999_ns),
                latency_or_none(all.max_ns),
                count(all.overruns),
                count(all.cycles),
                count(all.lost),
            ],
            counters: vec![
                number(thread.minor_faults),
                number(thread.major_faults),
                number(thread.involuntary_switches),
                thread.steal_ns.map_or_else(|| NONE.into(), |ns| latency(float(ns))),
                number(thread.smi),
            ],
            misses: number(thread.llc_misses),
        }
    };
    result.series().iter().map(thread).collect()
}

/// A line for every control, and one for a row without.
pub fn controls(contents: &Contents) -> Vec<ControlRow> {
    let measured =
        contents.rows.iter().map(|row| &row.result).filter(|result| result.status == RowStatus::Measured);
    measured
        .flat_map(|result| {
            let proven = control(result).is_some_and(|entry| entry.proven);
            let mut rows: Vec<ControlRow> = result
                .control
                .iter()
                .map(|control| ControlRow {
                    name: clean(&title(contents, result)),
                    thread: clean(&control.series.to_string()),
                    injected: latency(float(control.injected_ns)),
                    seen: latency(float(control.seen_ns)),
                    noise: latency(float(control.noise_ns)),
                    proven: control.proven,
                    sentence: None,
                })
                .collect();
            if !proven {
                rows.push(ControlRow {
                    name: clean(&title(contents, result)),
                    thread: String::new(),
                    injected: String::new(),
                    seen: String::new(),
                    noise: String::new(),
                    proven: false,
                    sentence: Some(control_sentence(result)),
                });
            }
            rows
        })
        .collect()
}

/// How many of the largest values of a row are shown.
const LARGEST: usize = 8;

/// The largest values of every row, largest first.
pub fn largest(contents: &Contents) -> Vec<LargestRow> {
    let row = |row: &Row| {
        let result = &row.result;
        let mut values: Vec<_> = result.series().iter().flat_map(|series| &series.outliers).collect();
        values.sort_by_key(|outlier| std::cmp::Reverse(outlier.value_ns));
        LargestRow {
            name: clean(&title(contents, result)),
            kind: class(result.evidence),
            evidence: result.evidence.map(|evidence| evidence.to_string()),
            values: values
                .into_iter()
                .take(LARGEST)
                .map(|outlier| {
                    let at = format!("{:.3} s", float(outlier.at_ns) / 1e9);
                    (latency(float(outlier.value_ns)), at, clean(&outlier.series.to_string()))
                })
                .collect(),
        }
    };
    contents.rows.iter().map(row).filter(|row| !row.values.is_empty()).collect()
}

/// Notes by kind. That nothing was changed is worth saying too.
pub fn notes(contents: &Contents) -> Vec<Notes> {
    let kinds = [
        (NoteKind::SideEffect, "What measuring changed", "changed", "Nothing was reported as changed."),
        (NoteKind::Obstacle, "Obstacles", "obstacles", ""),
        (NoteKind::Info, "Notes", "notes", ""),
    ];
    kinds
        .into_iter()
        .map(|(kind, title, id, none)| Notes {
            title,
            id,
            none,
            notes: remarks(contents, kind)
                .into_iter()
                .map(|remark| {
                    let hint = remark.note.hint.as_deref().map(clean);
                    (clean(&remark.note.text), hint, clean(&remark.environments.join(", ")))
                })
                .collect(),
        })
        .filter(|notes| !notes.notes.is_empty() || !notes.none.is_empty())
        .collect()
}

/// Facts that decide how a machine keeps time, and what they are called.
const TELLING: &[(&str, &[&str])] = &[
    ("kernel", &["uname:release", "/proc/sys/kernel/osrelease"]),
    ("kernel build", &["uname:version", "/proc/sys/kernel/version"]),
    ("PREEMPT_RT", &["/sys/kernel/realtime"]),
    ("command line", &["/proc/cmdline"]),
    ("CPUs that are on", &["/sys/devices/system/cpu/online"]),
    ("CPUs allowed", &["sched:affinity"]),
    ("isolated CPUs", &["/sys/devices/system/cpu/isolated"]),
    ("CPUs without tick", &["/sys/devices/system/cpu/nohz_full"]),
    ("hyper-threading", &["/sys/devices/system/cpu/smt/active"]),
    ("clock source", &["/sys/devices/system/clocksource/clocksource0/current_clocksource"]),
    ("idle driver", &["/sys/devices/system/cpu/cpuidle/current_driver"]),
    ("frequency governor", &["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"]),
    ("real-time throttling", &["/proc/sys/kernel/sched_rt_runtime_us"]),
    ("transparent huge pages", &["/sys/kernel/mm/transparent_hugepage/enabled"]),
];

/// The facts that matter most, side by side.
pub fn side_by_side(contents: &Contents) -> SideBySide {
    let value = |facts: &Facts, names: &[&str]| names.iter().find_map(|name| facts.text(name)).map(clean);
    let rows = TELLING
        .iter()
        .map(|(title, names)| {
            let values: Vec<Option<String>> =
                contents.facts.values().map(|facts| value(facts, names)).collect();
            (*title, values)
        })
        .filter(|(_, values)| values.iter().flatten().any(|value| !value.is_empty()))
        .map(|(title, values)| {
            (title, values.into_iter().map(|value| value.unwrap_or_else(|| NONE.into())).collect())
        })
        .collect();
    SideBySide { environments: contents.facts.keys().map(|name| clean(name)).collect(), rows }
}

/// Every reading of every environment.
pub fn facts(contents: &Contents) -> Vec<FactsOf> {
    let reading = |(name, reading): (&String, &Reading)| {
        let (text, class) = match reading {
            Reading::Text(text) => (lines(text), ""),
            Reading::Cut(text) => (format!("{}\n(the rest was cut)", lines(text)), ""),
            Reading::Unreadable(reason) => (format!("unreadable: {}", clean(reason)), "gone"),
            Reading::Absent => ("absent".into(), "gone"),
        };
        (clean(name), text, class)
    };
    let of = |(name, facts): (&String, &Facts)| FactsOf {
        name: clean(name),
        count: facts.0.len(),
        readings: facts.0.iter().map(reading).collect(),
    };
    contents.facts.iter().map(of).collect()
}

/// A text of several lines, each of them clean.
fn lines(text: &str) -> String {
    let lines: Vec<String> =
        text.trim_end().lines().map(|line| clean(&line.replace('\t', "        "))).collect();
    lines.join("\n")
}
