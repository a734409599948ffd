//! Maxima by state of the machine and environment.

use tactus_model::bundle::{Contents, RowResult};
use tactus_model::dependence::{Dependence, dependence};
use tactus_model::document::{CellEntry, Document, MatrixEntry};
use tactus_model::number::float;
use tactus_model::plan::{Environment, FigureKind};

use super::Section;
use crate::part::{Head, Part, Reader, Table};
use crate::row::{asked, figures, left_out, published, reason, rows_of, state, title_of};
use crate::units::{clean, latency};

/// The section.
pub struct Matrices;
/// Its entry.
pub static ENTRY: Matrices = Matrices;

impl Section for Matrices {
    fn name(&self) -> &'static str {
        "matrices"
    }

    fn heading(&self) -> &'static str {
        "Maxima by host profile and environment"
    }

    fn about(&self) -> &'static str {
        "The largest latency of each environment in each state of the machine, beside the published one. A \
         cell has no verdict: its evidence decides what may be concluded."
    }

    fn applies(&self, contents: &Contents) -> bool {
        asked(contents, FigureKind::Matrix).next().is_some()
    }

    fn parts(&self, contents: &Contents, _: Reader) -> Vec<Part> {
        matrices(contents).iter().map(|entry| Part::Table(matrix(contents, entry))).collect()
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.matrices = matrices(contents);
    }
}

/// The matrices of a plan: a cell for every measurement of the scenarios that each names.
#[must_use]
pub fn matrices(contents: &Contents) -> Vec<MatrixEntry> {
    asked(contents, FigureKind::Matrix)
        .map(|figure| MatrixEntry {
            title: title_of(contents, &figure.title, &figure.scenarios),
            cells: rows_of(contents, &figure.scenarios).map(|row| cell(contents, &row.result)).collect(),
        })
        .collect()
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

/// An environment of the plan, in words: `kernel rt, profile realtime-virtual-guest`.
#[must_use]
pub fn described(environment: &Environment) -> String {
    let of = |key: &str| {
        let value = environment.options.get(key).and_then(|value| value.as_str());
        value.map(|value| format!("{key} {value}"))
    };
    let words: Vec<String> = ["kernel", "profile", "isolate", "cmdline"].into_iter().filter_map(of).collect();
    if words.is_empty() { environment.kind.clone() } else { words.join(", ") }
}

fn is_host(of: &Environment) -> bool {
    dependence(&of.kind) == Some(Dependence::Itself)
}

fn matrix(contents: &Contents, entry: &MatrixEntry) -> Table {
    let (mut hosts, mut environments): (Vec<Option<&str>>, Vec<&str>) = (Vec::new(), Vec::new());
    for cell in &entry.cells {
        if !hosts.contains(&cell.host.as_deref()) {
            hosts.push(cell.host.as_deref());
        }
        if !environments.contains(&cell.environment.as_str()) {
            environments.push(&cell.environment);
        }
    }
    let mut reasons: Vec<String> = Vec::new();
    let rows = hosts
        .iter()
        .map(|host| {
            let own = |environment: &&str| {
                let cells: Vec<&CellEntry> = entry
                    .cells
                    .iter()
                    .filter(|cell| cell.host.as_deref() == *host && cell.environment == *environment)
                    .collect();
                match cells.as_slice() {
                    [] => vec!["not requested".to_owned()],
                    cells => cells.iter().flat_map(|cell| lines(cell, &mut reasons)).collect(),
                }
            };
            let cells: Vec<Vec<String>> = environments.iter().map(own).collect();
            std::iter::once(vec![clean(state(*host))]).chain(cells).map(Into::into).collect()
        })
        .collect();
    let name = |environment: &&str| {
        let of = contents.plan.environment.get(*environment);
        if of.is_some_and(is_host) { "host alone".to_owned() } else { clean(environment) }
    };
    let guests: Vec<String> = environments
        .iter()
        .filter_map(|environment| Some((environment, contents.plan.environment.get(*environment)?)))
        .filter(|(_, of)| !is_host(of))
        .map(|(environment, of)| format!("{}: {}", clean(environment), clean(&described(of))))
        .collect();
    let mut remarks = if guests.is_empty() { Vec::new() } else { vec![format!("{}.", guests.join("; "))] };
    remarks.extend(system_cores(entry));
    remarks.extend(reasons.iter().enumerate().map(|(n, reason)| format!("[{}] {reason}", n + 1)));
    let heads = std::iter::once("host profile".to_owned()).chain(environments.iter().map(name));
    Table { remarks, ..Table::whole(clean(&entry.title), heads.map(Head::words).collect(), rows) }
}

/// A cell of the matrix; why it has no number goes into `reasons`.
fn lines(cell: &CellEntry, reasons: &mut Vec<String>) -> Vec<String> {
    let mut lines = match (cell.max_ns, cell.evidence) {
        (Some(max), Some(evidence)) => vec![latency(float(max)), evidence.to_string()],
        (Some(max), None) => vec![latency(float(max))],
        (None, _) => {
            let reason = clean(cell.reason.as_deref().unwrap_or("no reason was recorded"));
            let at = reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            vec![format!("not measured [{}]", at + 1)]
        }
    };
    lines.extend(cell.published_max_ns.map(|max| format!("published {}", latency(float(max)))));
    lines
}

/// Names the cores that were left out, so that the maxima are not taken for those of the whole system.
fn system_cores(entry: &MatrixEntry) -> Option<String> {
    let mut left: Vec<String> = Vec::new();
    for cell in entry.cells.iter().filter(|cell| cell.max_ns.is_some() && !cell.left_out.is_empty()) {
        let words = format!("CPU {} of {}", cell.left_out, clean(&cell.environment));
        if !left.contains(&words) {
            left.push(words);
        }
    }
    (!left.is_empty()).then(|| {
        format!("The system cores are for housekeeping; they were not measured: {}.", left.join(", "))
    })
}
