//! The parts of a section as the template takes them: every value as it is to be read, every word with its class.

use serde::Serialize;
use tactus_model::Evidence;
use tactus_model::document::Outcome;

use crate::figure::{Figure, Hover, Plot, themed};
use crate::part::{
    Answer, Card, Cell, Finding, Grid, GridLine, Group, Item, Length, LineKind, List, Mark, Part, Readings,
    Stacked, Table, Tone,
};
use crate::units::{beginning, clean, unbroken};

/// A part.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Block {
    Answer(AnswerBox),
    Heading { text: String, id: Option<String> },
    Remark { text: String },
    List(Listed),
    Table(TableBox),
    Tables { tables: Vec<TableBox> },
    Grid(GridBox),
    Cards { cards: Vec<CardBox> },
    Figure(Drawn),
    Finding(Found),
    Readings { of: Vec<ReadingsOf> },
    Source { summary: String, text: String },
    Folded { summary: String, blocks: Vec<Block> },
}

impl Block {
    /// Whether a script draws it.
    pub fn is_live(&self) -> bool {
        match self {
            Self::Figure(drawn) => drawn.plot.is_some(),
            Self::Folded { blocks, .. } => blocks.iter().any(Self::is_live),
            _ => false,
        }
    }
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct AnswerBox {
    word: &'static str,
    class: &'static str,
    sentence: String,
    evidence: Vec<(String, &'static str)>,
    next: Option<NextBox>,
}

#[derive(Debug, Serialize)]
struct NextBox {
    title: String,
    command: String,
    why: String,
}

/// Sentences.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// `notes`, `verdicts` or `evidence`: what is before each sentence.
    shape: &'static str,
    items: Vec<ItemBox>,
}

#[derive(Debug, Serialize)]
struct ItemBox {
    lead: String,
    class: &'static str,
    name: String,
    text: String,
    place: String,
    hint: Option<String>,
}

/// A table.
#[derive(Debug, Serialize)]
pub struct TableBox {
    title: String,
    head: Vec<(String, bool)>,
    /// Short names of its columns, for every cell on a screen without room for columns.
    short: Vec<String>,
    rows: Vec<Vec<CellBox>>,
    remarks: Vec<String>,
    long: bool,
    /// Whether it is folded without what is remarked.
    drawn: bool,
}

/// A cell: its first line, and what stands below it in small letters.
#[derive(Debug, Serialize)]
struct CellBox {
    first: String,
    below: Vec<String>,
    id: Option<String>,
    link: Option<String>,
    class: &'static str,
    number: bool,
}

/// Rows of the bundle.
#[derive(Debug, Serialize)]
pub struct GridBox {
    corner: String,
    head: Vec<(String, bool)>,
    telling: Option<usize>,
    /// Whether its rows have nothing but lines below them: each is folded.
    folded: bool,
    groups: Vec<GroupBox>,
}

#[derive(Debug, Serialize)]
struct GroupBox {
    id: String,
    name: String,
    how: String,
    conditions: Option<(String, String)>,
    evidence: Option<(String, &'static str)>,
    verdict: Option<&'static str>,
    instead: Option<(&'static str, String, &'static str)>,
    values: Vec<(String, String)>,
    lines: Vec<LineBox>,
}

#[derive(Debug, Serialize)]
struct LineBox {
    class: &'static str,
    label: String,
    unlike: bool,
    values: Vec<(String, String)>,
    text: String,
}

/// An answer.
#[derive(Debug, Serialize)]
pub struct CardBox {
    title: String,
    pair: String,
    quote: Option<String>,
    answer: String,
    class: &'static str,
    plain: Vec<String>,
    sentences: Vec<String>,
    caution: Option<String>,
    method: Option<String>,
}

/// A drawing.
#[derive(Debug, Serialize)]
pub struct Drawn {
    title: String,
    about: String,
    /// Made by this program; texts in it are escaped.
    svg: String,
    hover: Option<Hover>,
    plot: Option<Plot>,
}

/// A finding in full.
#[derive(Debug, Serialize)]
pub struct Found {
    severity: String,
    class: &'static str,
    name: String,
    said: String,
    parts: Vec<(&'static str, String)>,
}

/// All readings of a place.
#[derive(Debug, Serialize)]
pub struct ReadingsOf {
    summary: String,
    readings: Vec<(String, String, &'static str)>,
}

/// The parts of a section.
pub fn blocks(parts: Vec<Part>) -> Vec<Block> {
    parts.into_iter().map(block).collect()
}

fn block(part: Part) -> Block {
    match part {
        Part::Answer(answer) => Block::Answer(answer_box(answer)),
        Part::Heading(text, id) => Block::Heading { text, id },
        Part::Remark(text) => Block::Remark { text: clean(&text) },
        Part::List(list) => Block::List(listed(list)),
        Part::Table(table) => Block::Table(table_box(table)),
        Part::Tables(tables) => Block::Tables { tables: tables.into_iter().map(table_box).collect() },
        Part::Grid(grid) => Block::Grid(grid_box(grid)),
        Part::Cards(cards) => Block::Cards { cards: cards.into_iter().map(card_box).collect() },
        Part::Figure(figure) => Block::Figure(drawn(figure)),
        Part::Finding(finding) => Block::Finding(found(finding)),
        Part::Readings(all) => Block::Readings { of: all.into_iter().map(readings_of).collect() },
        Part::Source(summary, text) => Block::Source { summary, text },
        Part::Folded(summary, parts) => Block::Folded { summary: clean(&summary), blocks: blocks(parts) },
    }
}

/// The class of a kind of evidence in the style sheet.
const fn evidence_class(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::BareMetal => "tag bare",
        Evidence::VirtualHost => "tag virtual",
        Evidence::Emulated => "tag emulated",
        Evidence::Imported => "tag imported",
    }
}

/// The class of a word by how good its news is.
const fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "badge pass",
        Tone::Bad => "badge fail",
        Tone::Doubt => "badge inconclusive",
        Tone::Quiet => "badge quiet",
        Tone::Heading => "strong",
    }
}

const fn mark_class(mark: Mark) -> &'static str {
    match mark {
        Mark::None => "",
        Mark::Tone(tone) => tone_class(tone),
        Mark::Evidence(evidence) => evidence_class(evidence),
    }
}

fn answer_box(answer: Answer) -> AnswerBox {
    let next = answer.next.map(|next| NextBox {
        title: clean(&next.title),
        command: clean(&next.command),
        why: unbroken(&clean(&next.why)),
    });
    AnswerBox {
        word: answer.word,
        class: match answer.tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Doubt => "doubt",
            Tone::Quiet | Tone::Heading => "calm",
        },
        sentence: unbroken(&clean(&answer.sentence)),
        evidence: answer.evidence.iter().map(|kind| (kind.to_string(), evidence_class(*kind))).collect(),
        next,
    }
}

fn listed(list: List) -> Listed {
    let shape = match list.items.first().map(|item| (item.mark, item.name.is_empty())) {
        Some((Mark::Evidence(_), _)) => "evidence",
        Some((_, false)) => "verdicts",
        _ => "notes",
    };
    let item = |item: Item| ItemBox {
        lead: item.lead.trim_end_matches(':').to_owned(),
        class: mark_class(item.mark),
        name: item.name,
        text: clean(&item.text),
        place: item.place,
        hint: item.hint.map(|hint| clean(&hint)),
    };
    Listed { shape, items: list.items.into_iter().map(item).collect() }
}

/// Characters of a column's name in each of its cells.
const SHORT: usize = 80;

fn table_box(table: Table) -> TableBox {
    let numbers: Vec<bool> = table.head.iter().map(|head| head.number).collect();
    let cell = |(n, cell): (usize, Cell)| {
        let mut lines = cell.lines.into_iter();
        let first = lines.next().unwrap_or_default();
        CellBox {
            first,
            below: lines.collect(),
            id: cell.id,
            link: cell.link,
            class: mark_class(cell.mark),
            number: numbers.get(n).copied().unwrap_or_default(),
        }
    };
    let row = |cells: Vec<Cell>| cells.into_iter().enumerate().map(cell).collect();
    let drawn = table.length == Length::Drawn;
    TableBox {
        title: match drawn {
            true if table.title.ends_with(['.', '?']) => format!("{} The same as a table", table.title),
            true => format!("{}: the same as a table", table.title),
            false => table.title,
        },
        drawn,
        rows: table.rows.into_iter().map(row).collect(),
        short: table.head.iter().map(|head| beginning(&head.name, SHORT)).collect(),
        head: table.head.into_iter().map(|head| (head.name, head.number)).collect(),
        remarks: table.remarks,
        long: table.length != Length::Whole,
    }
}

fn grid_box(grid: Grid) -> GridBox {
    GridBox {
        corner: grid.corner,
        head: grid.columns.into_iter().map(|head| (head.name, head.number)).collect(),
        telling: grid.telling,
        folded: grid.groups.iter().all(|group| group.values.is_empty())
            && grid.groups.iter().any(|group| !group.lines.is_empty()),
        groups: grid.groups.into_iter().map(group_box).collect(),
    }
}

fn values(values: Vec<Stacked>) -> Vec<(String, String)> {
    values.into_iter().map(|value| (value.first, value.below)).collect()
}

fn group_box(group: Group) -> GroupBox {
    let line = |line: GridLine| LineBox {
        class: match line.kind {
            LineKind::Item => "item",
            LineKind::Published => "sub published",
            LineKind::Explains | LineKind::Against(_) | LineKind::Doubt => "sub",
        },
        label: line.label,
        unlike: line.kind == LineKind::Against(true),
        values: values(line.values),
        text: line.text,
    };
    GroupBox {
        id: group.id,
        name: group.name,
        how: group.how,
        conditions: group.conditions,
        evidence: group.evidence.map(|evidence| (evidence.to_string(), evidence_class(evidence))),
        verdict: group.verdict.map(Outcome::word),
        instead: group
            .instead
            .map(|(word, tone, why)| (word, why, if tone == Tone::Bad { "failed" } else { "skipped" })),
        values: values(group.values),
        lines: group.lines.into_iter().map(line).collect(),
    }
}

fn card_box(card: Card) -> CardBox {
    CardBox {
        title: card.title,
        pair: card.pair,
        quote: card.quote,
        answer: card.answer,
        class: match card.tone {
            Tone::Good => "none",
            Tone::Bad => "effect",
            Tone::Doubt | Tone::Quiet | Tone::Heading => "open",
        },
        plain: card.plain,
        sentences: card.sentences,
        caution: card.caution,
        method: card.method,
    }
}

fn drawn(figure: Figure) -> Drawn {
    let svg = themed(&figure.svg());
    let hover = (figure.plot.is_none() && !figure.hover.spots.is_empty()).then_some(figure.hover);
    Drawn { title: figure.title, about: figure.about, svg, hover, plot: figure.plot }
}

fn found(finding: Finding) -> Found {
    Found {
        severity: finding.severity,
        class: tone_class(finding.tone),
        name: finding.name,
        said: finding.said,
        parts: finding.parts,
    }
}

fn readings_of(of: Readings) -> ReadingsOf {
    let many = of.all.len();
    let summary = match of.same {
        None => format!("{}: all {many} readings", of.name),
        Some((same, place)) => format!(
            "{}: {many} of {} readings; the others are as in {place}",
            of.name,
            many.saturating_add(same)
        ),
    };
    let reading = |one: crate::part::Reading| (one.name, one.text, if one.there { "" } else { "gone" });
    ReadingsOf { summary, readings: of.all.into_iter().map(reading).collect() }
}
