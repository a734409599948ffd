//! Which figures a bundle has: those that its plan asks for, and two for every environment.

use tactus_model::bundle::{Contents, Row};
use tactus_model::number::float;
use tactus_model::plan::{FigureKind, Page, Shown};

use super::canvas::Figure;
use super::histogram::histograms;
use super::over_time::{Lines, Reference, over_time};
use super::per_core::per_core;
use super::separation::leaks;
use super::theme::SERIES;
use crate::analysis::published;
use crate::units::{clean, latency};

/// The figures of one environment.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvironmentFigures {
    /// Its name.
    pub environment: String,
    /// Distribution and course of its rows; several pairs when it has more rows than one picture can
    /// tell apart.
    pub figures: Vec<Figure>,
}

fn has_samples(row: &&Row) -> bool {
    row.result.all().is_some_and(|all| all.cycles > 0)
}

/// The figures of a page, in its order.
#[must_use]
pub fn of_page(contents: &Contents, page: &Page) -> Vec<Figure> {
    let named = |row: &&Row| page.scenarios.contains(&row.result.name);
    let rows: Vec<&Row> = contents.rows.iter().filter(named).filter(has_samples).collect();
    let title = clean(&page.title);
    let drawn = |shown: &Shown| match shown {
        Shown::Histogram => rows.chunks(SERIES).map(|rows| histograms(&title, rows)).collect(),
        Shown::PerCore => per_core(&title, contents, &rows),
        Shown::Separation => leaks(contents),
        Shown::Threads | Shown::Disturbance | Shown::Caches | Shown::Technologies => Vec::new(),
    };
    page.show.iter().flat_map(drawn).collect()
}

/// The figures of the plan beside its pages, drawn from what was measured. One whose rows all have no
/// numbers is drawn empty: its place in the document stays.
#[must_use]
pub fn requested(contents: &Contents) -> Vec<Figure> {
    let mut figures = Vec::new();
    for figure in &contents.plan.figure {
        if matches!(figure.kind, FigureKind::Matrix | FigureKind::Threads) {
            // Tables, not pictures.
            continue;
        }
        let named = |row: &&Row| figure.scenarios.contains(&row.result.name);
        let rows: Vec<&Row> = contents.rows.iter().filter(named).filter(has_samples).collect();
        if figure.kind == FigureKind::PerCore {
            figures.extend(per_core(&clean(&figure.title), contents, &rows));
            continue;
        }
        let chunks: Vec<&[&Row]> = if rows.is_empty() { vec![&[]] } else { rows.chunks(SERIES).collect() };
        for rows in chunks {
            let title = clean(&figure.title);
            figures.push(match figure.kind {
                FigureKind::LatencyOverTime => {
                    over_time(&title, rows, Lines::Band, &references(contents, &figure.scenarios))
                }
                FigureKind::Histogram => histograms(&title, rows),
                FigureKind::PerCore | FigureKind::Matrix | FigureKind::Threads => continue,
            });
        }
    }
    if !contents.plan.page.iter().any(|page| page.show.contains(&Shown::Separation)) {
        figures.extend(leaks(contents));
    }
    figures
}

/// The published maxima of these scenarios; equal ones are one line.
fn references(contents: &Contents, scenarios: &[String]) -> Vec<Reference> {
    let mut references: Vec<Reference> = Vec::new();
    let rows = contents.rows.iter().map(|row| &row.result).filter(|row| scenarios.contains(&row.name));
    for published in rows.filter_map(|row| published(&contents.plan, &row.name, &row.environment)) {
        let Some(ns) = published.max_ns else { continue };
        if references.iter().all(|reference| reference.ns != ns) {
            let text = format!("published maximum {} ({})", latency(float(ns)), clean(&published.source));
            references.push(Reference { text, ns });
        }
    }
    references
}

/// Two figures for every environment in which something was measured, in the order of the rows.
#[must_use]
pub fn environments(contents: &Contents) -> Vec<EnvironmentFigures> {
    let mut names: Vec<&str> = Vec::new();
    for row in contents.rows.iter().filter(has_samples) {
        if !names.contains(&row.result.environment.as_str()) {
            names.push(&row.result.environment);
        }
    }
    names
        .into_iter()
        .map(|name| {
            let own = |row: &&Row| row.result.environment == name && has_samples(row);
            let mut rows: Vec<&Row> = contents.rows.iter().filter(own).collect();
            // Gaps and wake-ups do not belong on one axis.
            rows.sort_by_key(|row| row.result.measurement.kind());
            let alike = rows.chunk_by(|a, b| a.result.measurement.kind() == b.result.measurement.kind());
            let figures =
                alike.flat_map(|rows| rows.chunks(SERIES)).flat_map(|rows| pair(name, rows)).collect();
            EnvironmentFigures { environment: name.into(), figures }
        })
        .collect()
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
