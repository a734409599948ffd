//! The table in the terminal, and what belongs below it.

mod table;

use tactus_model::bundle::{Contents, RowResult};
use tactus_model::document::Outcome;
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::message::NoteKind;
use tactus_model::number::float;

use crate::analysis::{Line, claims, comparison, control, control_sentence, remarks, seen};
use crate::units::{clean, duration, latency, wrapped};

/// How text may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences may be used. Everything is legible without.
    pub colour: bool,
    /// Columns that there are.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, width: 100 }
    }
}

/// What a colour stands for; nothing is said by colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Heading,
    Quiet,
    Good,
    Bad,
    Doubt,
}

impl Style {
    fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colour || text.trim().is_empty() {
            return text.into();
        }
        let code = match tone {
            Tone::Heading => "1",
            Tone::Quiet => "2",
            Tone::Good => "32",
            Tone::Bad => "1;31",
            Tone::Doubt => "33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// A page under construction.
struct Page {
    style: Style,
    out: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn gap(&mut self) {
        self.out.push('\n');
    }

    fn heading(&mut self, text: &str) {
        self.gap();
        let painted = self.style.paint(Tone::Heading, text);
        self.line(&painted);
    }

    /// A paragraph behind `lead`, whose further lines are indented as far.
    fn item(&mut self, lead: &str, tone: Option<Tone>, text: &str) {
        let indent = crate::units::columns(lead);
        let lines = wrapped(&clean(text), self.style.width.saturating_sub(indent).max(24));
        for (n, line) in lines.iter().enumerate() {
            let lead = if n > 0 {
                " ".repeat(indent)
            } else {
                tone.map_or_else(|| lead.to_owned(), |tone| self.style.paint(tone, lead))
            };
            self.line(&format!("{lead}{line}"));
        }
    }
}

/// What a bundle says, for a terminal.
#[must_use]
pub fn render(contents: &Contents, style: Style) -> String {
    let mut page = Page { style, out: String::new() };
    let lines = comparison(contents);
    head(&mut page, contents);
    table::write(&mut page, &lines);
    below_table(&mut page, &lines);
    verdicts(&mut page, &lines);
    claimed(&mut page, contents);
    controls(&mut page, contents);
    notes(&mut page, contents);
    page.out
}

fn head(page: &mut Page, contents: &Contents) {
    let manifest = &contents.manifest;
    let name = match &contents.plan.title {
        Some(title) => format!("{}: {title}", manifest.plan),
        None => manifest.plan.clone(),
    };
    for line in wrapped(&clean(&name), page.style.width) {
        let painted = page.style.paint(Tone::Heading, &line);
        page.line(&painted);
    }
    let machine = &manifest.machine;
    let parts = [&machine.name, &machine.processor, &machine.system, &machine.kernel];
    let parts: Vec<&str> = parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    for line in wrapped(&clean(&parts.join(" · ")), page.style.width) {
        let painted = page.style.paint(Tone::Quiet, &line);
        page.line(&painted);
    }
    let longest = contents.rows.iter().map(|row| row.result.measured_ns).max().unwrap_or(0);
    let mut about = format!("{} · tactus {}", clean(&manifest.started), clean(&manifest.tactus));
    if longest > 0 {
        about = format!("{about} · up to {} for each row", duration(longest));
    }
    let painted = page.style.paint(Tone::Quiet, &about);
    page.line(&painted);
    if manifest.status == RunStatus::Interrupted {
        page.item(
            "interrupted: ",
            Some(Tone::Doubt),
            "the run did not come to its end; what had been measured is shown",
        );
    }
    page.gap();
}

fn below_table(page: &mut Page, lines: &[Line]) {
    let mut cautions: Vec<&str> = lines.iter().filter_map(|line| line.against.as_ref()?.caution).collect();
    cautions.sort_unstable();
    cautions.dedup();
    let mut kinds: Vec<tactus_model::Evidence> = lines.iter().filter_map(|line| line.evidence).collect();
    kinds.sort_by_key(ToString::to_string);
    kinds.dedup();
    if !kinds.is_empty() {
        page.gap();
    }
    for kind in kinds {
        page.item(&format!("{kind}: "), Some(Tone::Quiet), kind.meaning());
    }
    for caution in cautions {
        page.item("note: ", Some(Tone::Quiet), caution);
    }
    let mut sources: Vec<&str> =
        lines.iter().filter_map(|line| Some(line.published.as_ref()?.source.as_str())).collect();
    sources.dedup();
    for source in sources {
        page.item("published: ", Some(Tone::Quiet), source);
    }
}

fn verdicts(page: &mut Page, lines: &[Line]) {
    let with: Vec<_> = lines.iter().filter_map(|line| Some((line, line.verdict.as_ref()?))).collect();
    if with.is_empty() {
        return;
    }
    page.heading("Requirements");
    for (line, verdict) in with {
        let (word, tone) = match verdict.outcome {
            Outcome::Pass => ("pass          ", Tone::Good),
            Outcome::Fail => ("FAIL          ", Tone::Bad),
            Outcome::Inconclusive => ("inconclusive  ", Tone::Doubt),
        };
        page.item(word, Some(tone), &format!("{}: {}", line.name, verdict.reason));
    }
}

fn claimed(page: &mut Page, contents: &Contents) {
    for claim in claims(contents) {
        let name = clean(&claim.name);
        match &claim.effect {
            Err(reason) => {
                page.heading(&name);
                page.item("  ", None, &format!("not answered: {reason}"));
            }
            Ok(effect) => {
                page.heading(&format!("{name}: {}", effect.answer()));
                if let Some(words) = &claim.claim {
                    page.item("  claim: ", Some(Tone::Quiet), words);
                }
                for sentence in effect.sentences() {
                    page.item("  ", None, &sentence);
                }
                if let Some(caution) = &effect.caution {
                    page.item("  ", None, caution);
                }
            }
        }
    }
}

/// One line for each kind of evidence where every control was seen, one for each row where not.
fn controls(page: &mut Page, contents: &Contents) {
    let measured = || {
        let results = contents.rows.iter().map(|row| &row.result);
        results.filter(|result| result.status == RowStatus::Measured && result.all.is_some())
    };
    if measured().next().is_none() {
        return;
    }
    page.gap();
    let is_proven = |result: &&RowResult| control(result).is_some_and(|entry| entry.proven);
    let mut kinds: Vec<_> = measured().filter(is_proven).map(|result| result.evidence).collect();
    kinds.dedup();
    for kind in kinds {
        let proven: Vec<&RowResult> =
            measured().filter(is_proven).filter(|result| result.evidence == kind).collect();
        let controls = || proven.iter().flat_map(|result| &result.control);
        let injected = latency(float(controls().map(|control| control.injected_ns).max().unwrap_or(0)));
        let threads = match controls().count() {
            1 => "the one thread".into(),
            count => format!("all {count} threads"),
        };
        let of = match proven.len() {
            1 => "1 measurement".into(),
            count => format!("{count} measurements"),
        };
        let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
        let seen = seen(controls());
        let text = format!(
            "{injected} hog seen as {seen} on {threads} of {of}{kind}: the instrument is proven there"
        );
        page.item("control: ", Some(Tone::Good), &text);
    }
    for result in measured().filter(|result| !is_proven(result)) {
        page.item("control: ", Some(Tone::Bad), &format!("{}: {}", result.name, control_sentence(result)));
    }
}

fn notes(page: &mut Page, contents: &Contents) {
    for (kind, lead, tone) in [
        (NoteKind::Obstacle, "obstacle: ", Tone::Doubt),
        (NoteKind::SideEffect, "measuring changed: ", Tone::Quiet),
        (NoteKind::Info, "note: ", Tone::Quiet),
    ] {
        for remark in remarks(contents, kind) {
            let places = remark.environments.join(", ");
            let places = if places.is_empty() { String::new() } else { format!(" ({places})") };
            page.item(lead, Some(tone), &format!("{}{places}", remark.note.text));
            if let Some(hint) = &remark.note.hint {
                page.item("  hint: ", Some(Tone::Quiet), hint);
            }
        }
    }
    for sentence in &contents.damage {
        page.item("damage: ", Some(Tone::Bad), sentence);
    }
}
