//! The table itself: columns as wide as their values, in the richest layout that fits.

use tactus_model::Evidence;

use super::Page;
use crate::part::{Grid, GridLine, Group, Head, LineKind, Stacked, Tone};
use crate::units::{columns, wrapped};

/// Widest column of names.
const NAME: usize = 30;

/// Above the marks of evidence, which the kinds below the table explain.
const EVIDENCE: &str = "ev";

/// A line of the table: a label and its values.
struct Entry {
    label: String,
    evidence: String,
    values: Vec<String>,
    tone: Option<Tone>,
    /// Instead of values.
    words: Option<String>,
    /// Whether it explains the line above it.
    below: bool,
}

impl Entry {
    /// The label in lines of at most `most` columns.
    fn labels(&self, most: usize) -> Vec<String> {
        let indent = if self.below { "  " } else { "" };
        wrapped(&self.label, most.saturating_sub(indent.len()))
            .into_iter()
            .map(|line| format!("{indent}{line}"))
            .collect()
    }
}

/// Where the kind of evidence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// In a separate column.
    Wide,
    /// Behind the name.
    Medium,
    /// Behind the name on a separate line, with the values below.
    Narrow,
}

/// Writes the table.
pub fn write(page: &mut Page, grid: &Grid) {
    let mut rows: Vec<Vec<Entry>> =
        grid.groups.iter().map(|group| entries(group, grid.columns.len())).collect();
    let width = |(n, head): (usize, &Head)| {
        let values =
            rows.iter().flatten().filter_map(|entry| entry.values.get(n)).map(|value| columns(value));
        values.chain([columns(&head.name)]).max().unwrap_or(0) + 2
    };
    let mut widths: Vec<usize> = grid.columns.iter().enumerate().map(width).collect();
    if widths.iter().sum::<usize>() >= page.style.width {
        // One space between columns will do.
        widths.iter_mut().for_each(|width| *width -= 1);
    }
    let fields: Vec<(&Head, usize)> = grid.columns.iter().zip(widths).collect();
    let figures: usize = fields.iter().map(|(_, width)| width).sum();
    let longest =
        |of: fn(&Entry) -> &str| rows.iter().flatten().map(|entry| columns(of(entry))).max().unwrap_or(0);
    let name = (longest(|entry| &entry.label) + 2).clamp(15, NAME);
    let evidence = longest(|entry| &entry.evidence).max(columns(EVIDENCE)) + 2;
    let room = page.style.width;
    let marked = |entry: &Entry| {
        let mark = if entry.evidence.is_empty() { 0 } else { " [V]".len() };
        columns(&entry.label) + mark + if entry.below { 2 } else { 0 }
    };
    let marked = rows.iter().flatten().map(marked).max().unwrap_or(0).clamp(15, NAME);
    let layout = if name + evidence + figures <= room {
        Layout::Wide
    } else if marked + figures <= room {
        Layout::Medium
    } else {
        Layout::Narrow
    };
    let name = if layout == Layout::Wide { name } else { marked };
    for entry in rows.iter_mut().flatten().filter(|entry| !entry.evidence.is_empty()) {
        let inline = layout != Layout::Wide || entry.values.iter().all(String::is_empty);
        if inline {
            entry.label = format!("{} [{}]", entry.label, std::mem::take(&mut entry.evidence));
        }
    }
    let lead = match layout {
        Layout::Wide => name + evidence,
        Layout::Medium => name,
        Layout::Narrow => room.saturating_sub(figures).clamp(1, name),
    };
    header(page, grid, layout, (name, lead), &fields);
    for entries in &rows {
        for entry in entries {
            row(page, entry, layout, (name, lead), &fields);
        }
    }
}

fn header(
    page: &mut Page,
    grid: &Grid,
    layout: Layout,
    (name, lead): (usize, usize),
    fields: &[(&Head, usize)],
) {
    let mut text = match layout {
        Layout::Wide => format!("{}  {EVIDENCE}", padded(&grid.corner, name)),
        Layout::Medium | Layout::Narrow if lead >= columns(&grid.corner) => grid.corner.clone(),
        Layout::Medium | Layout::Narrow => {
            page.line(&grid.corner);
            String::new()
        }
    };
    text = padded(&text, lead);
    for (head, width) in fields {
        text.push_str(&field(head, &head.name, *width));
    }
    let painted = page.style.paint(Tone::Heading, text.trim_end());
    page.line(&painted);
}

fn row(
    page: &mut Page,
    entry: &Entry,
    layout: Layout,
    (name, lead): (usize, usize),
    fields: &[(&Head, usize)],
) {
    let paint = |page: &Page, text: &str| {
        entry.tone.map_or_else(|| text.to_owned(), |tone| page.style.paint(tone, text))
    };
    if let Some(words) = &entry.words {
        let label_lines = entry.labels(if layout == Layout::Narrow { page.style.width } else { name });
        let beside = page.style.width.saturating_sub(name + 2).max(24);
        let mut words = wrapped(words, beside).into_iter();
        for line in &label_lines {
            let text =
                if layout == Layout::Narrow { String::new() } else { words.next().unwrap_or_default() };
            let line = padded(line, if layout == Layout::Narrow { 0 } else { name });
            page.line(&format!("{line}  {}", paint(page, &text)));
        }
        for text in words {
            page.line(&format!(
                "{}  {}",
                " ".repeat(if layout == Layout::Narrow { 0 } else { name }),
                paint(page, &text)
            ));
        }
        return;
    }
    if entry.values.iter().all(String::is_empty) {
        named(page, entry);
        return;
    }
    let mut values = String::new();
    for (value, (head, width)) in entry.values.iter().zip(fields) {
        values.push_str(&field(head, value, *width));
    }
    let painted = |page: &mut Page, text: &str| {
        let text = paint(page, text);
        page.line(&text);
    };
    if layout == Layout::Narrow {
        // An explaining line has its label before the values if there is room; a name always stands above
        // them.
        let fits = entry.below && columns(&entry.label) + 2 <= lead;
        if !fits {
            let mut labels = entry.labels(page.style.width);
            let last = labels.pop().unwrap_or_default();
            for label in labels {
                painted(page, &label);
            }
            painted(page, &last);
        }
        let label = if fits { entry.labels(lead).concat() } else { String::new() };
        painted(page, &(padded(&label, lead) + &values));
        return;
    }
    // The values stand beside the first line of a label that needs several.
    let mut labels = entry.labels(name).into_iter();
    let label = padded(&labels.next().unwrap_or_default(), name);
    if layout == Layout::Wide {
        let evidence =
            page.style.paint(evidence_tone(entry), &padded(&format!("  {}", entry.evidence), lead - name));
        let line = paint(page, &label) + &evidence + &paint(page, &values);
        page.line(&line);
    } else {
        painted(page, &(label + &values));
    }
    for label in labels {
        painted(page, &label);
    }
}

/// A line without numbers: those stand below it.
fn named(page: &mut Page, entry: &Entry) {
    let mut labels = entry.labels(page.style.width);
    let last = labels.pop().unwrap_or_default();
    for label in labels {
        page.line(&label);
    }
    let label = entry.tone.map_or_else(|| last.clone(), |tone| page.style.paint(tone, &last));
    page.line(&label);
}

fn evidence_tone(entry: &Entry) -> Tone {
    if entry.evidence == Evidence::Emulated.mark() { Tone::Doubt } else { Tone::Quiet }
}

/// A value in its column: numbers end below each other, words begin so.
fn field(head: &Head, value: &str, width: usize) -> String {
    let pad = " ".repeat(width.saturating_sub(columns(value)));
    if head.number { format!("{pad}{value}") } else { padded(&format!("  {value}"), width) }
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// A row of the bundle as lines of the table: its figures, then what explains them.
fn entries(group: &Group, columns: usize) -> Vec<Entry> {
    let evidence = group.evidence.map(|evidence| evidence.mark().to_owned()).unwrap_or_default();
    let first = match &group.instead {
        Some((word, tone, reason)) => {
            Entry { evidence, tone: Some(*tone), ..told(group.name.clone(), format!("{word}: {reason}")) }
        }
        None => Entry {
            label: group.name.clone(),
            evidence,
            values: firsts(&group.values, columns),
            tone: None,
            words: None,
            below: false,
        },
    };
    std::iter::once(first).chain(group.lines.iter().flat_map(|line| explained(line, columns))).collect()
}

fn explained(line: &GridLine, columns: usize) -> Vec<Entry> {
    if !line.text.is_empty() {
        return vec![Entry { tone: Some(Tone::Doubt), ..told(String::new(), line.text.clone()) }];
    }
    let entry = |label: &str, values| Entry {
        label: label.into(),
        evidence: String::new(),
        values,
        tone: (line.kind != LineKind::Item).then_some(Tone::Quiet),
        words: None,
        below: true,
    };
    let mut entries = vec![entry(&line.label, firsts(&line.values, columns))];
    if line.values.iter().any(|value| !value.below.is_empty()) {
        entries.push(entry("", line.values.iter().map(|value| value.below.clone()).collect()));
    }
    entries
}

/// The numbers alone, a field for each column.
fn firsts(values: &[Stacked], columns: usize) -> Vec<String> {
    let mut firsts: Vec<String> = values.iter().map(|value| value.first.clone()).collect();
    firsts.resize(columns, String::new());
    firsts
}

fn told(label: String, words: String) -> Entry {
    Entry { label, evidence: String::new(), values: Vec::new(), tone: None, words: Some(words), below: false }
}
