//! The contents of the report, for every format: the sentences at its head, the pages of a plan that follows
//! its document, and the sections in their order.

use tactus_model::bundle::Contents;
use tactus_model::event::RunStatus;
use tactus_model::plan::Page;

use crate::figure::Figure;
use crate::part::{Part, Reader};
use crate::section::{SECTIONS, Section};

/// A section as a reader gets it.
pub struct Told {
    /// The section.
    pub section: &'static (dyn Section + Sync),
    /// Its heading, or the question that it answers.
    pub heading: &'static str,
    /// Its parts.
    pub parts: Vec<Part>,
}

/// A page of the plan's document, with the measurements made here.
pub struct Shows<'a> {
    /// The page of the plan.
    pub page: &'a Page,
    /// Its parts.
    pub parts: Vec<Part>,
}

/// The sentences that stand above everything else: what was measured and how it went, and what the sections
/// have to say.
#[must_use]
pub fn headline(contents: &Contents) -> Vec<String> {
    let mut said = crate::answer::headline(contents);
    said.extend(SECTIONS.iter().flat_map(|section| section.headline(contents)));
    if contents.manifest.status == RunStatus::Interrupted {
        said.push("The run was interrupted: this shows what had been measured.".into());
    }
    said
}

/// The sections that have something to say to this reader.
pub fn sections(contents: &Contents, reader: Reader) -> Vec<Told> {
    let of = SECTIONS.iter().filter(|section| section.applies(contents));
    of.filter_map(|section| told(*section, contents, reader)).collect()
}

fn told(section: &'static (dyn Section + Sync), contents: &Contents, reader: Reader) -> Option<Told> {
    let parts = section.parts(contents, reader);
    (!parts.is_empty()).then(|| Told { section, heading: section.question(contents), parts })
}

/// Every page of the plan, in its order.
pub fn pages(contents: &Contents) -> Vec<Shows<'_>> {
    let shows = |page| {
        let mut parts = page_parts(contents, page);
        for part in &mut parts {
            // A heading is not said twice.
            if let Part::Table(table) = part
                && table.title == page.title
            {
                table.title.clear();
            }
        }
        Shows { page, parts }
    };
    contents.plan.page.iter().map(shows).collect()
}

/// Drawings first, then what is to be read.
fn page_parts(contents: &Contents, page: &Page) -> Vec<Part> {
    let of = |shown| SECTIONS.iter().flat_map(move |section| section.on_page(contents, page, shown));
    let parts = page.show.iter().flat_map(|shown| of(*shown));
    let (mut figures, rest): (Vec<Part>, Vec<Part>) = parts.partition(|part| matches!(part, Part::Figure(_)));
    figures.extend(rest);
    figures
}

/// Every drawing of the report: those of the pages, then those of the sections.
pub fn figures(contents: &Contents) -> Vec<Figure> {
    let of_pages = pages(contents).into_iter().flat_map(|shows| shows.parts);
    let drawing = SECTIONS.iter().filter(|section| section.draws() && section.applies(contents));
    let of_sections = drawing.flat_map(|section| section.parts(contents, Reader::Page));
    of_pages.chain(of_sections).flat_map(Part::figures).collect()
}
