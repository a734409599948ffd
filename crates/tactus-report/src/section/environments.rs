//! Every environment by itself: the distributions and the course of its latencies, and its threads.

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::TimerlatValue;
use tactus_model::number::float;
use tactus_model::outcome::SeriesResult;
use tactus_model::scheduling::Policy;

use super::Section;
use crate::figure::{Figure, Lines, Reference, SERIES, histograms, over_time};
use crate::part::{Cell, Head, Length, Part, Reader, Table};
use crate::row::{figures, policy, title, worst_runs};
use crate::units::{NONE, clean, count, duration, latency, latency_or_none, listed};

/// The section.
pub struct Environments;
/// Its entry.
pub static ENTRY: Environments = Environments;

impl Section for Environments {
    fn name(&self) -> &'static str {
        "environments"
    }

    fn heading(&self) -> &'static str {
        "Each environment"
    }

    fn about(&self) -> &'static str {
        "The distribution of the latencies of each environment, their maximum and p99 over time, and its \
         measuring threads one by one."
    }

    fn draws(&self) -> bool {
        true
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        Some(format!(
            "distributions, values over time and threads of {}",
            listed(&names(contents).into_iter().map(clean).collect::<Vec<_>>(), ", ")
        ))
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(has_samples)
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        match reader {
            Reader::Page => names(contents).into_iter().flat_map(|name| of(contents, name)).collect(),
            Reader::Terminal | Reader::Markdown => Vec::new(),
        }
    }
}

fn has_samples(row: &Row) -> bool {
    figures(&row.result).is_some()
}

/// The environments in which something was measured, in the order of the rows.
fn names(contents: &Contents) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in contents.rows.iter().filter(|row| has_samples(row)) {
        if !names.contains(&row.result.environment.as_str()) {
            names.push(&row.result.environment);
        }
    }
    names
}

fn of(contents: &Contents, name: &str) -> Vec<Part> {
    let rows: Vec<&Row> = contents.rows.iter().filter(|row| row.result.environment == name).collect();
    let mut kinds: Vec<String> =
        rows.iter().filter_map(|row| Some(row.result.evidence?.to_string())).collect();
    kinds.dedup();
    let heading = format!("{} ({})", clean(&place(contents, name)), kinds.join(", "));
    let mut parts = vec![Part::Heading(heading, None)];
    if let Some(ms) = rows.iter().filter_map(|row| row.result.start_up_ms).max() {
        let within = duration(ms.saturating_mul(1_000_000));
        parts.push(Part::Remark(format!("The probe answered within {within} of the environment's start.")));
    }
    parts.extend(drawn(contents, name).into_iter().map(Part::Figure));
    parts.push(Part::Table(threads(contents, &rows)));
    parts
}

/// The name of an environment, and of the one around it.
fn place(contents: &Contents, environment: &str) -> String {
    let of = contents.plan.environment.get(environment);
    match of.and_then(|of| Some((&of.kind, of.inside.as_ref()?))) {
        Some((kind, outer)) => format!("{environment} ({kind} in {outer})"),
        None => environment.to_owned(),
    }
}

/// Distribution and course of its rows; several pairs if it has more rows than one picture can distinguish.
fn drawn(contents: &Contents, name: &str) -> Vec<Figure> {
    let shown = |row: &&Row| has_samples(row) && row.result.environment == name;
    let mut rows: Vec<&Row> = worst_runs(contents).into_iter().filter(shown).collect();
    // Gaps and wake-ups do not belong on one axis.
    rows.sort_by_key(|row| row.result.measurement.kind());
    let alike = rows.chunk_by(|a, b| a.result.measurement.kind() == b.result.measurement.kind());
    alike.flat_map(|rows| rows.chunks(SERIES)).flat_map(|rows| pair(name, rows)).collect()
}

fn pair(name: &str, rows: &[&Row]) -> [Figure; 2] {
    let name = clean(name);
    let mut limits: Vec<u64> =
        rows.iter().filter_map(|row| row.result.require.as_ref()?.max).map(|limit| limit.0).collect();
    limits.sort_unstable();
    limits.dedup();
    let limits: Vec<Reference> = limits
        .into_iter()
        .map(|ns| Reference { text: format!("required maximum {}", latency(float(ns))), ns })
        .collect();
    [
        histograms(&format!("{name}: distribution of latencies"), rows),
        over_time(&format!("{name}: maximum and p99 over time"), rows, Lines::MaximumAndP99, &limits),
    ]
}

/// A column of the table of threads.
struct Column {
    name: &'static str,
    value: fn(&SeriesResult) -> String,
    /// Left out where no thread has anything in it.
    seldom: bool,
}

fn number(value: Option<u64>) -> String {
    value.map_or_else(|| NONE.into(), count)
}

/// The columns behind scenario, thread and schedule.
const COLUMNS: &[Column] = &[
    Column { name: "min", value: |of| latency_or_none(of.summary.min_ns), seldom: false },
    Column {
        name: "mean",
        value: |of| of.summary.mean_ns.map_or_else(|| NONE.into(), latency),
        seldom: false,
    },
    Column { name: "corrected p99", value: |of| latency_or_none(of.summary.corrected.p99_ns), seldom: false },
    Column {
        name: "corrected p99.9",
        value: |of| latency_or_none(of.summary.corrected.p999_ns),
        seldom: false,
    },
    Column { name: "max", value: |of| latency_or_none(of.summary.max_ns), seldom: false },
    Column { name: "overruns", value: |of| number(of.summary.overruns), seldom: false },
    Column { name: "cycles", value: |of| count(of.summary.cycles), seldom: false },
    Column { name: "lost", value: |of| count(of.summary.lost), seldom: false },
    Column { name: "minor faults", value: |of| number(of.counters.minor_faults), seldom: true },
    Column { name: "major faults", value: |of| number(of.counters.major_faults), seldom: true },
    Column { name: "preempted", value: |of| number(of.counters.involuntary_switches), seldom: true },
    Column { name: "steal", value: |of| latency_or_none(of.counters.steal_ns), seldom: true },
    Column { name: "SMI", value: |of| number(of.counters.smi), seldom: true },
    Column { name: "cache misses", value: |of| number(of.counters.llc_misses), seldom: true },
];

/// How a thread ran. The policy of a row that reads what a tracer writes is the reader's.
fn scheduled(result: &RowResult, one: &SeriesResult) -> String {
    match &result.measurement {
        Measure::Timerlat(table) if table.value() == TimerlatValue::Thread => {
            format!("{} {} (the kernel's)", Policy::Fifo, result.priority)
        }
        Measure::Timerlat(_) => "an interrupt".into(),
        _ => match policy(result) {
            Some(policy) => format!("{policy} {}", one.key.priority),
            None => NONE.into(),
        },
    }
}

fn threads(contents: &Contents, rows: &[&Row]) -> Table {
    let series = || rows.iter().flat_map(|row| row.result.series().iter().map(move |one| (&row.result, one)));
    let has = |column: &&Column| !column.seldom || series().any(|(_, one)| (column.value)(one) != NONE);
    let columns: Vec<&Column> = COLUMNS.iter().filter(has).collect();
    let row = |(result, one): (&RowResult, &SeriesResult)| {
        let head = [clean(&title(contents, result)), clean(&one.key.to_string()), scheduled(result, one)];
        head.into_iter().chain(columns.iter().map(|column| (column.value)(one))).map(Cell::from).collect()
    };
    let words = ["scenario", "thread", "scheduled"].map(Head::words);
    let head = words.into_iter().chain(columns.iter().map(|column| Head::number(column.name))).collect();
    let rows: Vec<Vec<Cell>> = series().map(row).collect();
    Table { length: Length::Behind, ..Table::whole("Measuring threads", head, rows) }
}
