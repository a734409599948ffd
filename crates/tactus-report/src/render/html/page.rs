//! Input of the template: the head of the page, the pages of its document, its sections.

use serde::Serialize;
use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row};
use tactus_model::event::RunStatus;

use super::blocks::{Block, blocks};
use crate::part::{Chapter, Chapters, Part, Reader};
use crate::section::{self, Section as _};
use crate::units::{clean, moment, unbroken};
use crate::walkthrough::{Told, headline, pages, sections};

/// The whole page.
#[derive(Debug, Serialize)]
pub struct Page {
    title: String,
    plan: String,
    about: Option<String>,
    machine: Vec<(String, String)>,
    interrupted: bool,
    headline: Vec<String>,
    damage: Vec<String>,
    /// The answer to the first question.
    answer: Option<Section>,
    /// Sections that stand at the head.
    opening: Vec<Section>,
    pages: Vec<PageBox>,
    sections: Vec<Section>,
    tactus: String,
}

/// A page of the document.
#[derive(Debug, Serialize)]
struct PageBox {
    title: String,
    words: Vec<String>,
    blocks: Vec<Block>,
}

#[derive(Debug, Serialize)]
struct Section {
    id: &'static str,
    heading: &'static str,
    /// In pieces, every second one of which is something to type.
    about: Vec<(String, bool)>,
    /// The line that replaces it until it is unfolded; `None` if it is always open.
    folded: Option<String>,
    blocks: Vec<Block>,
}

impl Section {
    fn of(contents: &Contents, Told { section, heading, parts }: Told) -> Self {
        let folded = section.folded(contents, &parts).map(|line| unbroken(&line));
        Self { folded, ..Chapter { id: section.name(), heading, about: section.about(), parts }.into() }
    }
}

impl From<Chapter> for Section {
    fn from(Chapter { id, heading, about, parts }: Chapter) -> Self {
        let about = unbroken(about)
            .split('`')
            .zip([false, true].into_iter().cycle())
            .map(|(piece, typed)| (piece.to_owned(), typed))
            .collect();
        Self { id, heading, about, folded: None, blocks: blocks(parts) }
    }
}

impl Page {
    /// The page of a bundle.
    pub fn of(contents: &Contents) -> Self {
        let manifest = &contents.manifest;
        let (opening, below): (Vec<Told>, Vec<Told>) =
            sections(contents, Reader::Page).into_iter().partition(|told| told.section.opens());
        let (answer, opening): (Vec<Told>, Vec<Told>) =
            opening.into_iter().partition(|told| told.section.name() == section::answer::ENTRY.name());
        let own = |told| Section::of(contents, told);
        let page_box = |shows: crate::walkthrough::Shows| PageBox {
            title: clean(&shows.page.title),
            words: shows.page.words.iter().flat_map(|words| words.trim().lines()).map(clean).collect(),
            blocks: blocks(shows.parts),
        };
        Self {
            title: clean(contents.plan.title.as_deref().unwrap_or(&manifest.plan)),
            plan: clean(&manifest.plan),
            about: contents.plan.about.as_deref().map(|about| clean(about.trim())),
            machine: machine(contents),
            interrupted: manifest.status == RunStatus::Interrupted,
            headline: headline(contents).iter().map(|sentence| unbroken(&clean(sentence))).collect(),
            damage: contents.damage.iter().map(|sentence| clean(sentence)).collect(),
            answer: answer.into_iter().next().map(own),
            opening: opening.into_iter().map(own).collect(),
            pages: pages(contents).into_iter().map(page_box).collect(),
            sections: below.into_iter().map(own).collect(),
            tactus: clean(&manifest.tactus),
        }
    }

    /// Whether it has figures that answer to a pointer.
    pub fn is_live(&self) -> bool {
        let sections = self.answer.iter().chain(&self.opening).chain(&self.sections).map(|of| &of.blocks);
        sections.chain(self.pages.iter().map(|page| &page.blocks)).flatten().any(Block::is_live)
    }

    /// A page of chapters.
    pub fn of_chapters(of: Chapters) -> Self {
        Self {
            title: clean(&of.title),
            plan: of.kind.to_owned(),
            about: None,
            machine: of.about.into_iter().map(|(name, value)| (clean(&name), clean(&value))).collect(),
            interrupted: false,
            // The first sentence is the answer.
            headline: of
                .headline
                .iter()
                .skip(usize::from(of.answer.is_some()))
                .map(|sentence| unbroken(&clean(sentence)))
                .collect(),
            damage: Vec::new(),
            answer: of.answer.map(|answer| Section {
                id: "answer",
                heading: "Is it worse?",
                about: Vec::new(),
                folded: None,
                blocks: blocks(vec![Part::Answer(answer)]),
            }),
            opening: Vec::new(),
            pages: Vec::new(),
            sections: of.chapters.into_iter().map(Section::from).collect(),
            tactus: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

fn machine(contents: &Contents) -> Vec<(String, String)> {
    let manifest = &contents.manifest;
    let machine = &manifest.machine;
    let imported = |row: &Row| row.result.evidence == Some(Evidence::Imported);
    let imported = !contents.rows.is_empty() && contents.rows.iter().all(imported);
    // A file of another tool need not say when it was measured.
    let (begun, ended) = match (imported, &manifest.finished) {
        (true, _) => ("Imported", String::new()),
        (false, None) => ("Started", "it did not end".into()),
        (false, Some(at)) => ("Started", moment(at)),
    };
    let all = [
        ("Machine", machine.name.clone()),
        ("Processor", machine.processor.clone()),
        ("CPUs", machine.cpus.clone()),
        ("Kernel", machine.kernel.clone()),
        ("System", machine.system.clone()),
        (begun, moment(&manifest.started)),
        ("Ended", ended),
    ];
    all.into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), clean(&value)))
        .collect()
}
