//! The drawings that the plan asks for: those of its document, from the measurements made here.

use tactus_model::bundle::{Contents, Row};
use tactus_model::number::float;
use tactus_model::plan::{FigureKind, Page, Shown};

use super::Section;
use crate::figure::{Figure, Lines, Reference, SERIES, histograms, over_time, per_core};
use crate::part::{Part, Reader};
use crate::row::{figures, named, published, rows_of, title_of};
use crate::units::{clean, latency};

/// The section.
pub struct Drawings;
/// Its entry.
pub static ENTRY: Drawings = Drawings;

impl Section for Drawings {
    fn name(&self) -> &'static str {
        "drawings"
    }

    fn heading(&self) -> &'static str {
        "Figures of the study"
    }

    fn about(&self) -> &'static str {
        "The figures of the document, drawn from what was measured here. Dotted lines are the published values."
    }

    fn draws(&self) -> bool {
        true
    }

    fn applies(&self, contents: &Contents) -> bool {
        !contents.plan.figure.is_empty()
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        match reader {
            Reader::Page => requested(contents).into_iter().map(Part::Figure).collect(),
            Reader::Terminal | Reader::Markdown => Vec::new(),
        }
    }

    fn on_page(&self, contents: &Contents, page: &Page, shown: Shown) -> Vec<Part> {
        let rows = || rows_of(contents, &page.scenarios).filter(has_samples).collect::<Vec<&Row>>();
        let title = clean(&title_of(contents, &page.title, &page.scenarios));
        let drawn: Vec<Figure> = match shown {
            Shown::Histogram => rows().chunks(SERIES).map(|rows| histograms(&title, rows)).collect(),
            Shown::PerCore => per_core(&title, contents, &rows()),
            _ => Vec::new(),
        };
        drawn.into_iter().map(Part::Figure).collect()
    }
}

fn has_samples(row: &&Row) -> bool {
    figures(&row.result).is_some()
}

/// The figures of the plan beside its pages, drawn from the measurements. A figure whose rows all lack
/// numbers is drawn empty, to keep its place in the document.
#[must_use]
pub fn requested(contents: &Contents) -> Vec<Figure> {
    let mut drawn = Vec::new();
    for figure in &contents.plan.figure {
        let rows: Vec<&Row> = rows_of(contents, &figure.scenarios).filter(has_samples).collect();
        let chunks: Vec<&[&Row]> = if rows.is_empty() { vec![&[]] } else { rows.chunks(SERIES).collect() };
        let title = clean(&title_of(contents, &figure.title, &figure.scenarios));
        let course =
            |rows: &&[&Row]| over_time(&title, rows, Lines::Band, &references(contents, &figure.scenarios));
        match figure.kind {
            FigureKind::PerCore => drawn.extend(per_core(&title, contents, &rows)),
            FigureKind::LatencyOverTime => drawn.extend(chunks.iter().map(course)),
            FigureKind::Histogram => drawn.extend(chunks.iter().map(|rows| histograms(&title, rows))),
            // Tables, which have separate sections.
            FigureKind::Matrix | FigureKind::Threads => {}
        }
    }
    drawn
}

/// The published maxima of these scenarios; equal ones are one line.
fn references(contents: &Contents, scenarios: &[String]) -> Vec<Reference> {
    let mut references: Vec<Reference> = Vec::new();
    let rows = named(contents, scenarios).map(|row| &row.result);
    for published in rows.filter_map(|row| published(&contents.plan, &row.name, &row.environment)) {
        let Some(ns) = published.max_ns else { continue };
        if references.iter().all(|reference| reference.ns != ns) {
            let text = format!("published maximum {} ({})", latency(float(ns)), clean(&published.source));
            references.push(Reference { text, ns });
        }
    }
    references
}
