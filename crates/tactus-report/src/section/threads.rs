//! The measuring threads one by one, as cyclictest prints them.

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::event::RowStatus;
use tactus_model::number::float;
use tactus_model::plan::{Page, Shown};

use super::Section;
use crate::part::{Cell, Head, Part, Reader, Table};
use crate::row::{MOST_ROWS, named, published, reason, title};
use crate::units::{clean, column, count, latency};

/// The section.
pub struct Threads;
/// Its entry.
pub static ENTRY: Threads = Threads;

impl Section for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn heading(&self) -> &'static str {
        "Measuring threads"
    }

    fn about(&self) -> &'static str {
        "Every measuring thread of a scenario, as cyclictest prints them, beside the threads of the document."
    }

    /// Only a page of a plan says of which scenarios.
    fn applies(&self, _: &Contents) -> bool {
        false
    }

    fn parts(&self, _: &Contents, _: Reader) -> Vec<Part> {
        Vec::new()
    }

    fn on_page(&self, contents: &Contents, page: &Page, shown: Shown) -> Vec<Part> {
        match shown {
            Shown::Threads => threads(contents, page).into_iter().map(Part::Table).collect(),
            _ => Vec::new(),
        }
    }
}

/// Every measuring thread of a page's rows.
fn threads(contents: &Contents, page: &Page) -> Vec<Table> {
    let rows: Vec<&Row> = named(contents, &page.scenarios).collect();
    let mut tables: Vec<Table> =
        rows.iter().take(MOST_ROWS).map(|row| table(contents, &row.result)).collect();
    if let Some(first) = tables.first_mut().filter(|_| rows.len() > MOST_ROWS) {
        first.remarks.push(format!("The first {MOST_ROWS} of {} rows; the JSON has them all.", rows.len()));
    }
    tables
}

/// The threads of a row, as cyclictest prints them, and the document's beside it.
fn table(contents: &Contents, result: &RowResult) -> Table {
    let published = published(&contents.plan, &result.name, &result.environment);
    let evidence = result.evidence.map(|evidence| format!(", {evidence}")).unwrap_or_default();
    let title = format!("{}{evidence}", clean(&title(contents, result)));
    let mut remarks: Vec<String> = Vec::new();
    if let Some(why) = reason(contents, result) {
        let word = match result.status {
            RowStatus::Measured => "",
            RowStatus::Skipped => "skipped: ",
            RowStatus::Failed => "failed: ",
        };
        remarks.push(format!("{word}{}", clean(&why)));
    }
    let theirs = published.as_ref().map_or(&[][..], |all| all.threads_ns.as_slice());
    let three = |values: [Option<f64>; 3]| values.map(|value| column(value, 1));
    let cells = result.series().iter().enumerate().map(|(n, series)| {
        let s = &series.summary;
        let own = three([s.min_ns.map(float), s.mean_ns, s.max_ns.map(float)]);
        let key = &series.key;
        let head = [format!("T:{n}"), key.cpu.to_string(), key.priority.to_string(), count(s.cycles)];
        let mut cells: Vec<String> = head.into_iter().chain(own).collect();
        if !theirs.is_empty() {
            let three_of = theirs.get(n).map(|three| three.map(|ns| Some(float(ns)))).unwrap_or_default();
            cells.extend(three(three_of));
        }
        cells.into_iter().map(Cell::from).collect()
    });
    let rows: Vec<Vec<Cell>> = cells.collect();
    let mut head: Vec<String> = ["thread", "CPU", "P", "C", "Min", "Avg", "Max"].map(str::to_owned).to_vec();
    if !theirs.is_empty() && !rows.is_empty() {
        head.extend(["document Min", "Avg", "Max"].map(str::to_owned));
    }
    let more = theirs.get(result.series().len()..).unwrap_or_default();
    if let (Some(low), Some(high)) =
        (more.iter().map(|three| three[2]).min(), more.iter().map(|three| three[2]).max())
    {
        let more_words = if result.series().is_empty() { "" } else { " more" };
        remarks.push(format!(
            "The document has {}{more_words} threads, with maxima from {} to {}.",
            more.len(),
            latency(float(low)),
            latency(float(high))
        ));
    }
    if let Some(published) = &published {
        if theirs.is_empty() {
            let figures =
                [("minimum", published.min_ns), ("mean", published.mean_ns), ("maximum", published.max_ns)];
            let said: Vec<String> = figures
                .into_iter()
                .filter_map(|(word, ns)| Some(format!("{word} {}", latency(float(ns?)))))
                .collect();
            remarks.push(format!("Document: {} ({}).", said.join(", "), clean(&published.source)));
        } else {
            remarks.push(format!("In us. Document: {}.", clean(&published.source)));
        }
    }
    let head = head.into_iter().map(Head::number).collect();
    Table { remarks, ..Table::whole(title, head, rows) }
}
