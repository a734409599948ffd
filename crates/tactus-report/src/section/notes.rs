//! Changes by measuring, obstacles to it, and other notes for the reader.

use tactus_model::bundle::Contents;
use tactus_model::message::NoteKind;

use super::Section;
use crate::part::{Item, List, Part, Reader, Tone};
use crate::row::{Remark, remarks};
use crate::units::clean;

/// A kind of notes. A terminal shows a word before each note and explains it; other formats show a heading.
/// `none` is the text for no notes, because it matters that nothing was changed.
struct Kind {
    kind: NoteKind,
    lead: &'static str,
    tone: Tone,
    heading: &'static str,
    none: &'static str,
}

const OBSTACLES: Kind = Kind {
    kind: NoteKind::Obstacle,
    lead: "limitation:",
    tone: Tone::Doubt,
    heading: "Limitations",
    none: "",
};
const CHANGES: Kind = Kind {
    kind: NoteKind::SideEffect,
    lead: "changed for the measurement:",
    tone: Tone::Quiet,
    heading: "Changes made for the measurement",
    none: "Nothing was reported as changed.",
};
const REMARKS: Kind =
    Kind { kind: NoteKind::Info, lead: "note:", tone: Tone::Quiet, heading: "Remarks", none: "" };

/// The section.
pub struct Notes;
/// Its entry.
pub static ENTRY: Notes = Notes;

impl Section for Notes {
    fn name(&self) -> &'static str {
        "notes"
    }

    fn heading(&self) -> &'static str {
        "Notes"
    }

    fn about(&self) -> &'static str {
        "What limited the measurements and how to fix it, what was changed on the machine for them, and remarks \
         on the numbers."
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        let said =
            [(OBSTACLES, "limitation"), (CHANGES, "change"), (REMARKS, "remark")].map(|(kind, word)| {
                let count = remarks(contents, kind.kind).len();
                format!("{count} {word}{}", if count == 1 { "" } else { "s" })
            });
        Some(said.join(", "))
    }

    fn applies(&self, _: &Contents) -> bool {
        true
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        match reader {
            Reader::Terminal => {
                let items = [OBSTACLES, CHANGES, REMARKS].iter().flat_map(|kind| brief(contents, kind));
                let items: Vec<Item> = items.chain(damage(contents)).collect();
                if items.is_empty() { Vec::new() } else { vec![Part::List(List { items, led: true })] }
            }
            Reader::Markdown | Reader::Page => {
                let mut parts: Vec<Part> = [OBSTACLES, CHANGES, REMARKS]
                    .iter()
                    .flat_map(|kind| full(contents, kind, reader == Reader::Page))
                    .collect();
                // A page says it at its head.
                if reader == Reader::Markdown && !contents.damage.is_empty() {
                    parts.push(Part::Heading("Damage to the bundle".into(), None));
                    let items: Vec<Item> = contents.damage.iter().map(Item::said).collect();
                    parts.push(Part::List(items.into()));
                }
                parts
            }
        }
    }
}

/// The obstacles alone: `tactus prove` prints them below its answers.
#[must_use]
pub fn obstacles(contents: &Contents) -> List {
    List { items: brief(contents, &OBSTACLES).into_iter().chain(damage(contents)).collect(), led: true }
}

fn damage(contents: &Contents) -> impl Iterator<Item = Item> {
    contents.damage.iter().map(|sentence| Item::led("damage:", Tone::Bad, sentence))
}

/// The notes of a kind, with its word before each.
fn brief(contents: &Contents, kind: &Kind) -> Vec<Item> {
    // The number of an activity means nothing without the plan: only other readers see it.
    let telling = |remark: &Remark| !remark.note.text.starts_with("the load of activity ");
    let item = |remark: Remark| {
        let places = remark.environments.join(", ");
        let places = if places.is_empty() { String::new() } else { format!(" ({places})") };
        let text = format!("{}{places}", shortened(&remark.note.text));
        let hint = remark.note.hint.as_deref().map(shortened);
        Item { hint, ..Item::led(kind.lead, kind.tone, text) }
    };
    remarks(contents, kind.kind).into_iter().filter(telling).map(item).collect()
}

/// The notes of a kind below their heading.
fn full(contents: &Contents, kind: &Kind, page: bool) -> Vec<Part> {
    let item = |remark: Remark| Item {
        text: clean(&remark.note.text),
        place: clean(&remark.environments.join(", ")),
        hint: remark.note.hint.as_deref().map(clean),
        ..Item::default()
    };
    let items: Vec<Item> = remarks(contents, kind.kind).into_iter().map(item).collect();
    let said = match items.is_empty() {
        false => Part::List(items.into()),
        true if page && !kind.none.is_empty() => Part::Remark(kind.none.into()),
        true => return Vec::new(),
    };
    vec![Part::Heading(kind.heading.into(), None), said]
}

/// Longest note that a terminal is given, in characters.
const NOTE: usize = 420;

/// A note without the end of its list, should that be long.
fn shortened(text: &str) -> String {
    if text.chars().count() <= NOTE {
        return text.to_owned();
    }
    let cut: String = text.chars().take(NOTE).collect();
    let end = cut.rfind(", ").unwrap_or(cut.len());
    format!("{}, ... (the report has all of it)", &cut[..end])
}
