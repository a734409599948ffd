//! The report in a terminal: its head, the pages of its document, its sections.

use tactus_model::bundle::Contents;
use tactus_model::document::FitnessEntry;
use tactus_model::event::RunStatus;
use tactus_model::plan::Class;

use super::page::{Page, Style};
use super::{grid, table};
use crate::answer::answer;
use crate::part::{Card, Chapters, Part, Reader, Tone};
use crate::section::{self, Section, notes, proofs};
use crate::units::{clean, duration, moment, wrapped};
use crate::walkthrough::{Told, headline, pages, sections};

/// The report of a bundle, for a terminal.
#[must_use]
pub fn render(contents: &Contents, style: Style) -> String {
    let mut page = Page::new(style);
    opening(&mut page, contents);
    head(&mut page, contents);
    paged(&mut page, contents);
    for (n, told) in sections(contents, Reader::Terminal).iter().enumerate() {
        if n > 0 && matches!(told.parts.first(), Some(Part::Grid(_))) {
            page.gap();
        }
        section(&mut page, told);
    }
    page.out
}

/// The benefit of each setting under test, alone: the output of `tactus prove`.
#[must_use]
pub fn worth(contents: &Contents, style: Style) -> String {
    let mut page = Page::new(style);
    opening(&mut page, contents);
    interrupted(&mut page, contents);
    let proofs = &proofs::ENTRY;
    let parts = proofs.parts(contents, Reader::Terminal);
    let told = Told { section: proofs, heading: proofs.heading(), parts };
    section(&mut page, &told);
    page.list(&notes::obstacles(contents));
    page.out
}

/// The classes of applications that each environment is fit for, and the thresholds of the classes: the
/// output of `tactus report --class`.
#[must_use]
pub fn fitness(contents: &Contents, entries: &[FitnessEntry], classes: &[Class], style: Style) -> String {
    let mut page = Page::new(style);
    page.painted(Tone::Heading, &clean(&contents.manifest.plan));
    table::write(&mut page, &section::fitness::judged(contents, classes, entries, Reader::Terminal));
    table::write(&mut page, &section::fitness::definitions(classes));
    page.out
}

/// A page of chapters.
#[must_use]
pub fn chapters(of: &Chapters, style: Style) -> String {
    let mut page = Page::new(style);
    for line in wrapped(&clean(&of.title), page.style.width) {
        page.painted(Tone::Heading, &line);
    }
    for (name, value) in &of.about {
        page.item(&format!("{name}: "), Some(Tone::Quiet), value);
    }
    page.gap();
    for sentence in &of.headline {
        page.item("", None, sentence);
    }
    for chapter in &of.chapters {
        if !chapter.parts.first().is_some_and(Part::names_itself) {
            page.heading(chapter.heading);
        }
        parts(&mut page, &chapter.parts);
    }
    page.out
}

/// The answer is the first line, for readers who read no further.
fn opening(page: &mut Page, contents: &Contents) {
    let answer = answer(contents);
    page.led(answer.tone, &answer.led(), &answer.sentence, usize::MAX);
    if let Some(next) = &answer.next {
        page.item("next: ", Some(Tone::Heading), &next.line());
    }
    page.gap();
}

fn head(page: &mut Page, contents: &Contents) {
    let manifest = &contents.manifest;
    let name = match &contents.plan.title {
        Some(title) => format!("{}: {title}", manifest.plan),
        None => manifest.plan.clone(),
    };
    for line in wrapped(&clean(&name), page.style.width) {
        page.painted(Tone::Heading, &line);
    }
    let machine = &manifest.machine;
    let parts = [&machine.name, &machine.processor, &machine.system, &machine.kernel];
    let parts: Vec<&str> = parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    for line in wrapped(&clean(&parts.join(" · ")), page.style.width) {
        page.painted(Tone::Quiet, &line);
    }
    let longest = contents.rows.iter().map(|row| row.result.measured_ns).max().unwrap_or(0);
    let mut about = format!("{} · tactus {}", clean(&moment(&manifest.started)), clean(&manifest.tactus));
    if longest > 0 {
        about = format!("{about} · up to {} for each row", duration(longest));
    }
    page.painted(Tone::Quiet, &about);
    interrupted(page, contents);
    page.gap();
}

fn interrupted(page: &mut Page, contents: &Contents) {
    if contents.manifest.status == RunStatus::Interrupted {
        page.item(
            "interrupted: ",
            Some(Tone::Doubt),
            "the run did not end; this shows what had been measured",
        );
    }
}

/// The document page by page: its heading and words, and the measurements made here. The results come first,
/// because the pages are long.
fn paged(page: &mut Page, contents: &Contents) {
    let pages = pages(contents);
    if pages.is_empty() {
        return;
    }
    for sentence in headline(contents) {
        page.item("- ", Some(Tone::Quiet), &sentence);
    }
    page.gap();
    for shows in &pages {
        let rule = "-".repeat(page.style.width.min(60));
        page.painted(Tone::Quiet, &rule);
        page.painted(Tone::Heading, &clean(&shows.page.title));
        for line in shows.page.words.iter().flat_map(|words| words.trim().lines()) {
            page.item("  | ", Some(Tone::Quiet), line);
        }
        parts(page, &shows.parts);
        page.gap();
    }
    page.painted(Tone::Heading, "All measurements");
}

fn section(page: &mut Page, told: &Told) {
    if !told.parts.first().is_some_and(Part::names_itself) {
        page.heading(told.heading);
    }
    parts(page, &told.parts);
}

fn parts(page: &mut Page, parts: &[Part]) {
    for (n, part) in parts.iter().enumerate() {
        match part {
            Part::Grid(grid) if n > 0 => {
                page.gap();
                grid::write(page, grid);
            }
            Part::Heading(text, _) => page.heading(text),
            Part::Remark(text) => page.item("  ", Some(Tone::Quiet), text),
            Part::List(list) => page.list(list),
            Part::Table(table) => table::write(page, table),
            Part::Tables(tables) => tables.iter().for_each(|table| table::write(page, table)),
            Part::Grid(grid) => grid::write(page, grid),
            Part::Cards(cards) => cards.iter().for_each(|answer| card(page, answer)),
            Part::Folded(_, folded) => self::parts(page, folded),
            // The answer opens a report; the others need more room than a terminal has.
            Part::Answer(_) | Part::Figure(_) | Part::Finding(_) | Part::Readings(_) | Part::Source(..) => {}
        }
    }
}

fn card(page: &mut Page, card: &Card) {
    if card.sentences.is_empty() {
        page.heading(&card.title);
        page.item("  ", None, &card.answer);
        return;
    }
    page.heading(&format!("{}: {}", card.title, card.answer));
    if let Some(words) = &card.quote {
        page.item("  claim: ", Some(Tone::Quiet), words);
    }
    for sentence in card.sentences.iter().chain(&card.caution) {
        page.item("  ", None, &sentence.replace('\u{a0}', " "));
    }
}
