//! Figures and tables that the plan asks for, and their rows.

use std::collections::BTreeSet;

use tactus_model::bundle::{Contents, Row};
use tactus_model::plan::{Figure, FigureKind, OTHER_STATE};

use super::repeats::worst_runs;

/// Most rows in one figure or on one page: a reader cannot tell more apart.
pub const MOST_ROWS: usize = 256;

/// The figures of a kind that the plan asks for.
pub fn asked(contents: &Contents, kind: FigureKind) -> impl Iterator<Item = &Figure> {
    contents.plan.figure.iter().filter(move |figure| figure.kind == kind)
}

/// The rows of these scenarios that a figure or a page shows: of the runs of a measurement the worst.
pub fn rows_of<'a>(contents: &'a Contents, scenarios: &'a [String]) -> impl Iterator<Item = &'a Row> {
    all_rows_of(contents, scenarios).take(MOST_ROWS)
}

/// A title, with what is left out below it.
pub fn title_of(contents: &Contents, title: &str, scenarios: &[String]) -> String {
    match all_rows_of(contents, scenarios).count() {
        rows if rows > MOST_ROWS => format!("{title} (the first {MOST_ROWS} of {rows} rows)"),
        _ => title.to_owned(),
    }
}

fn all_rows_of<'a>(contents: &'a Contents, scenarios: &'a [String]) -> impl Iterator<Item = &'a Row> {
    let names: BTreeSet<&str> = scenarios.iter().map(String::as_str).collect();
    worst_runs(contents).into_iter().filter(move |row| names.contains(row.result.name.as_str()))
}

/// The rows of these scenarios, of which there may be as many as rows.
pub fn named<'a>(contents: &'a Contents, scenarios: &'a [String]) -> impl Iterator<Item = &'a Row> {
    let names: BTreeSet<&str> = scenarios.iter().map(String::as_str).collect();
    contents.rows.iter().filter(move |row| names.contains(row.result.name.as_str()))
}

/// A state of the machine in words.
#[must_use]
pub fn state(host: Option<&str>) -> &str {
    match host {
        None | Some(OTHER_STATE) => "as it is now",
        Some(name) => name,
    }
}

/// Whether a scenario belongs to a separation, which has separate tables.
#[must_use]
pub fn apart(contents: &Contents, scenario: &str) -> bool {
    contents.plan.separation.as_ref().is_some_and(|all| {
        all.rest.iter().any(|rest| rest == scenario) || all.disturbed.iter().any(|at| at.scenario == scenario)
    })
}
