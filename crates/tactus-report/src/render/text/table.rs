//! The table itself: columns as wide as their values, in the richest layout that fits.

use tactus_model::Evidence;
use tactus_model::event::RowStatus;
use tactus_model::latency::Summary;
use tactus_model::number::float;

use super::{Page, Tone};
use crate::analysis::{Figures, Line};
use crate::units::{clean, column, column_signed, columns, count, places, relative, wrapped};

/// Names of the figures' columns, in order.
const FIGURES: [&str; 8] = ["min", "mean", "p50", "p99", "p99.9", "max", "overruns", "cycles"];

/// Widest column of names.
const NAME: usize = 30;

/// A line of the table: a label and its values.
struct Entry {
    label: String,
    evidence: String,
    values: [String; 8],
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
    /// In a column of its own.
    Wide,
    /// Below the name.
    Medium,
    /// Name and evidence on a line of their own, the values below.
    Narrow,
}

/// Writes the table.
pub fn write(page: &mut Page, lines: &[Line]) {
    if lines.is_empty() {
        page.line("The plan has no measurements.");
        return;
    }
    let places = places(lines.iter().filter_map(|line| line.figures.as_ref()?.min_ns.map(float)));
    let rows: Vec<Vec<Entry>> = lines.iter().map(|line| entries(line, places)).collect();
    let widths: [usize; 8] = std::array::from_fn(|n| {
        let values = rows.iter().flatten().map(|entry| columns(&entry.values[n]));
        values.chain([columns(FIGURES[n])]).max().unwrap_or(0) + 2
    });
    let figures: usize = widths.iter().sum();
    let longest =
        |of: fn(&Entry) -> &str| rows.iter().flatten().map(|entry| columns(of(entry))).max().unwrap_or(0);
    let name = (longest(|entry| &entry.label) + 2).clamp(15, NAME);
    let evidence = longest(|entry| &entry.evidence) + 2;
    let room = page.style.width;
    let layout = if name + evidence + figures <= room {
        Layout::Wide
    } else if name + figures <= room {
        Layout::Medium
    } else {
        Layout::Narrow
    };
    let lead = match layout {
        Layout::Wide => name + evidence,
        Layout::Medium => name,
        Layout::Narrow => room.saturating_sub(figures).clamp(1, name),
    };
    header(page, layout, name, lead, &widths);
    for entries in &rows {
        for (n, entry) in entries.iter().enumerate() {
            row(page, entry, n == 0, layout, (name, lead), &widths);
        }
    }
}

fn header(page: &mut Page, layout: Layout, name: usize, lead: usize, widths: &[usize; 8]) {
    let mut text = match layout {
        Layout::Wide => format!("{}  evidence", padded("latency in us", name)),
        Layout::Medium | Layout::Narrow if lead >= 13 => "latency in us".into(),
        Layout::Medium | Layout::Narrow => {
            page.line("latency in us");
            String::new()
        }
    };
    text = padded(&text, lead);
    for (title, width) in FIGURES.iter().zip(widths) {
        text.push_str(&format!("{title:>width$}"));
    }
    let painted = page.style.paint(Tone::Heading, text.trim_end());
    page.line(&painted);
}

fn row(
    page: &mut Page,
    entry: &Entry,
    first: bool,
    layout: Layout,
    (name, lead): (usize, usize),
    widths: &[usize; 8],
) {
    let paint = |page: &Page, text: &str| {
        entry.tone.map_or_else(|| text.to_owned(), |tone| page.style.paint(tone, text))
    };
    let doubtful = entry.evidence == Evidence::Emulated.to_string();
    let evidence_tone = if doubtful { Tone::Doubt } else { Tone::Quiet };
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
    let mut values = String::new();
    for (value, width) in entry.values.iter().zip(widths) {
        values.push_str(&" ".repeat(width.saturating_sub(columns(value))));
        values.push_str(value);
    }
    let painted = |page: &mut Page, text: &str| {
        let text = paint(page, text);
        page.line(&text);
    };
    if layout == Layout::Narrow {
        // What explains a line stands before its values where there is room, a name always above them.
        let fits = entry.below && columns(&entry.label) + 2 <= lead;
        if !fits {
            let mut labels = entry.labels(page.style.width);
            let last = labels.pop().unwrap_or_default();
            for label in labels {
                painted(page, &label);
            }
            let evidence =
                if entry.evidence.is_empty() { String::new() } else { format!(" ({})", entry.evidence) };
            let line = paint(page, &last) + &page.style.paint(evidence_tone, &evidence);
            page.line(&line);
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
            page.style.paint(evidence_tone, &padded(&format!("  {}", entry.evidence), lead - name));
        let line = paint(page, &label) + &evidence + &paint(page, &values);
        page.line(&line);
    } else {
        painted(page, &(label + &values));
    }
    for label in labels {
        painted(page, &label);
    }
    if layout == Layout::Medium && first && !entry.evidence.is_empty() {
        let evidence = page.style.paint(evidence_tone, &format!("  {}", entry.evidence));
        page.line(&evidence);
    }
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// A row of the bundle as lines of the table: its figures, then what explains them.
fn entries(line: &Line, places: usize) -> Vec<Entry> {
    let evidence = line.evidence.map(|evidence| evidence.to_string()).unwrap_or_default();
    let reason = line.reason.as_deref().map(clean);
    let Some(all) = &line.figures else {
        let (word, tone) = match line.status {
            RowStatus::Failed => ("failed", Tone::Bad),
            RowStatus::Skipped => ("skipped", Tone::Doubt),
            RowStatus::Measured => ("no numbers", Tone::Doubt),
        };
        let words = format!("{word}: {}", reason.unwrap_or_default());
        return vec![Entry { evidence, tone: Some(tone), ..told(clean(&line.name), words) }];
    };
    let mut entries = vec![Entry {
        label: clean(&line.name),
        evidence,
        values: values(Figures::from(all), all, places),
        tone: None,
        words: None,
        below: false,
    }];
    if let Some(corrected) = line.corrected() {
        let ns = |value: Option<u64>| column(value.map(float), places);
        let mut values: [String; 8] = Default::default();
        values[2] = ns(corrected.p50_ns);
        values[3] = ns(corrected.p99_ns);
        values[4] = ns(corrected.p999_ns);
        values[7] = count(corrected.count);
        entries.push(quiet("with swallowed periods", values));
    }
    if let Some(published) = &line.published {
        let ns = |value: Option<u64>| value.map(|ns| column(Some(float(ns)), places)).unwrap_or_default();
        let mut values: [String; 8] = Default::default();
        values[0] = ns(published.min_ns);
        values[1] = ns(published.mean_ns);
        values[5] = ns(published.max_ns);
        entries.push(quiet("published", values));
    }
    if let Some(against) = &line.against {
        let deltas = against.figures.each();
        let row =
            |of: &dyn Fn(usize) -> String| std::array::from_fn(|n| if n < 6 { of(n) } else { String::new() });
        let absolute = |n: usize| column_signed(deltas[n].map(|delta| delta.absolute_ns), places);
        let part = |n: usize| relative(deltas[n].and_then(|delta| delta.relative));
        entries.push(quiet(&format!("against {}", clean(&against.name)), row(&absolute)));
        entries.push(quiet("", row(&part)));
    }
    if all.lost > 0 {
        let lost = format!(
            "{} samples did not reach the histogram: min, mean and max are exact, quantiles lack them",
            count(all.lost)
        );
        entries.push(Entry { tone: Some(Tone::Doubt), ..told(String::new(), lost) });
    }
    if let Some(reason) = reason {
        entries.push(Entry { tone: Some(Tone::Doubt), ..told(String::new(), reason) });
    }
    entries
}

fn told(label: String, words: String) -> Entry {
    Entry {
        label,
        evidence: String::new(),
        values: Default::default(),
        tone: None,
        words: Some(words),
        below: false,
    }
}

fn quiet(label: &str, values: [String; 8]) -> Entry {
    Entry {
        label: label.into(),
        evidence: String::new(),
        values,
        tone: Some(Tone::Quiet),
        words: None,
        below: true,
    }
}

fn values(six: Figures<Option<f64>>, all: &Summary, places: usize) -> [String; 8] {
    let six = six.each().map(|ns| column(*ns, places));
    let [min, mean, p50, p99, p999, max] = six;
    [min, mean, p50, p99, p999, max, count(all.overruns), count(all.cycles)]
}
