//! The section.

use tactus_model::bundle::Contents;
use tactus_model::document::Document;
use tactus_model::plan::{Page, Shown};

use super::judgement::technologies;
use super::technology_tables::{reasons_table, technology_table};
use crate::part::{Part, Reader};
use crate::section::{Section, on_a_page};

/// The section.
pub struct Technologies;
/// Its entry.
pub static ENTRY: Technologies = Technologies;

impl Section for Technologies {
    fn name(&self) -> &'static str {
        "technologies"
    }

    fn heading(&self) -> &'static str {
        "Technologies"
    }

    fn about(&self) -> &'static str {
        "Containers, virtual machines and partitions in the words of the document, and what was measured here for each \
         word. The rules behind the words are in docs/design/separation.md."
    }

    fn applies(&self, contents: &Contents) -> bool {
        !contents.plan.technology.is_empty() && !on_a_page(contents, Shown::Technologies)
    }

    fn parts(&self, contents: &Contents, _: Reader) -> Vec<Part> {
        let tables = [technology_table(contents), reasons_table(contents)];
        tables.into_iter().flatten().map(Part::Table).collect()
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.technologies = technologies(contents);
    }

    fn on_page(&self, contents: &Contents, _: &Page, asked: Shown) -> Vec<Part> {
        if asked == Shown::Technologies { self.parts(contents, Reader::Page) } else { Vec::new() }
    }
}
