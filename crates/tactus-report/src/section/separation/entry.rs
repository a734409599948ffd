//! The section.

use tactus_model::bundle::Contents;
use tactus_model::document::Document;
use tactus_model::plan::{Page, Shown};

use super::leak::separation;
use super::separation_figure::leaks;
use super::separation_summary::reach;
use super::separation_tables::{disturbance, separation_tables};
use crate::part::{Part, Reader};
use crate::section::{Section, on_a_page};

/// The section.
pub struct Separated;
/// Its entry.
pub static ENTRY: Separated = Separated;

impl Section for Separated {
    fn name(&self) -> &'static str {
        "separation"
    }

    fn heading(&self) -> &'static str {
        "Separation"
    }

    fn about(&self) -> &'static str {
        "Which environments a disturbance in one of them reaches: measured at rest and with it, on the CPU where it is \
         and on others. The test is in docs/design/separation.md."
    }

    fn draws(&self) -> bool {
        true
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.plan.separation.is_some() && !on_a_page(contents, Shown::Separation)
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        shown(contents, reader == Reader::Page)
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.separation = separation(contents);
    }

    fn headline(&self, contents: &Contents) -> Vec<String> {
        separation(contents).map(|entry| reach(&entry)).unwrap_or_default()
    }

    fn on_page(&self, contents: &Contents, page: &Page, asked: Shown) -> Vec<Part> {
        match asked {
            Shown::Separation => shown(contents, true),
            Shown::Disturbance => disturbance(contents, page).into_iter().map(Part::Table).collect(),
            _ => Vec::new(),
        }
    }
}

fn shown(contents: &Contents, drawn: bool) -> Vec<Part> {
    let figures = if drawn { leaks(contents) } else { Vec::new() };
    let tables = separation_tables(contents).into_iter().map(Part::Table);
    figures.into_iter().map(Part::Figure).chain(tables).collect()
}
