//! Tables that a plan asks for: maxima by state of the machine and environment, and what the interrupts
//! and timers of every environment run on.

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::{CellEntry, MatrixEntry};
use tactus_model::plan::{Environment, Figure, FigureKind, OTHER_STATE};
use tactus_model::topology::Topology;

use super::document::{figures, reason};
use super::published::published;

/// The matrices of a plan: a cell for every measurement of the scenarios that each names.
#[must_use]
pub fn matrices(contents: &Contents) -> Vec<MatrixEntry> {
    asked(contents, FigureKind::Matrix)
        .map(|figure| MatrixEntry {
            title: figure.title.clone(),
            cells: rows(contents, figure).map(|row| cell(contents, &row.result)).collect(),
        })
        .collect()
}

/// The figures of a kind that the plan asks for.
pub(crate) fn asked(contents: &Contents, kind: FigureKind) -> impl Iterator<Item = &Figure> {
    contents.plan.figure.iter().filter(move |figure| figure.kind == kind)
}

/// The rows of a figure.
pub(crate) fn rows<'a>(contents: &'a Contents, figure: &'a Figure) -> impl Iterator<Item = &'a Row> {
    contents.rows.iter().filter(|row| figure.scenarios.contains(&row.result.name))
}

fn cell(contents: &Contents, result: &RowResult) -> CellEntry {
    CellEntry {
        host: result.host.clone(),
        environment: result.environment.clone(),
        scenario: result.name.clone(),
        status: result.status,
        evidence: result.evidence,
        max_ns: figures(result).and_then(|all| all.max_ns),
        published_max_ns: published(&contents.plan, &result.name, &result.environment)
            .and_then(|published| published.max_ns),
        reason: reason(contents, result),
        left_out: left_out(contents, result),
    }
}

/// The CPUs of a row's environment that were not measured, as a cpulist; empty where it is not known.
#[must_use]
pub fn left_out(contents: &Contents, result: &RowResult) -> String {
    let Some(facts) = contents.facts.get(&result.environment_key()) else { return String::new() };
    if result.series().is_empty() {
        return String::new();
    }
    let measured = result.series().iter().map(|series| series.key.cpu).collect();
    Topology::of(facts).online.minus(&measured).to_string()
}

/// A state of the machine in words.
#[must_use]
pub fn state(host: Option<&str>) -> &str {
    match host {
        None | Some(OTHER_STATE) => "as it is now",
        Some(name) => name,
    }
}

/// What an environment of the plan is, in words: `kernel rt, profile realtime-virtual-guest`.
#[must_use]
pub fn described(environment: &Environment) -> String {
    let of = |key: &str| {
        let value = environment.options.get(key).and_then(|value| value.as_str());
        value.map(|value| format!("{key} {value}"))
    };
    let words: Vec<String> = ["kernel", "profile", "isolate", "cmdline"].into_iter().filter_map(of).collect();
    if words.is_empty() { environment.kind.clone() } else { words.join(", ") }
}
