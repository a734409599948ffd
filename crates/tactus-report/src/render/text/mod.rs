//! The table in the terminal, and what belongs below it.

mod plain;
mod table;

use tactus_model::bundle::Contents;
use tactus_model::document::Outcome;
use tactus_model::event::RunStatus;
use tactus_model::message::NoteKind;

use crate::analysis::{
    Answer, Line, Remark, caution, claims, comparison, conditions, controls, headline, pages, proofs,
    remarks, tables,
};
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
pub(crate) enum Tone {
    Heading,
    Quiet,
    Good,
    Bad,
    Doubt,
}

impl Style {
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
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
pub(crate) struct Page {
    pub(crate) style: Style,
    pub(crate) out: String,
}

impl Page {
    pub(crate) fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    pub(crate) fn gap(&mut self) {
        self.out.push('\n');
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.gap();
        let painted = self.style.paint(Tone::Heading, text);
        self.line(&painted);
    }

    /// A paragraph behind `lead`, whose further lines are indented as far.
    pub(crate) fn item(&mut self, lead: &str, tone: Option<Tone>, text: &str) {
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
    let mut lines = comparison(contents);
    let separation = contents.plan.separation.as_ref();
    let apart = |row: &tactus_model::bundle::Row| {
        separation.is_some_and(|all| {
            all.rest.contains(&row.result.name)
                || all.disturbed.iter().any(|at| at.scenario == row.result.name)
        })
    };
    // A long list that says nothing which its tables do not.
    let mut shown = contents.rows.iter().map(|row| !apart(row));
    let all = lines.len();
    lines.retain(|_| shown.next().unwrap_or(true));
    let left = all - lines.len();
    head(&mut page, contents);
    paged(&mut page, contents);
    table::write(&mut page, &lines);
    below_table(&mut page, &lines);
    if left > 0 {
        let more = format!(
            "{left} measurements of the separation are in its tables above; the other formats list them"
        );
        page.item("note: ", Some(Tone::Quiet), &more);
    }
    for table in tables(contents) {
        plain::write(&mut page, &table);
    }
    verdicts(&mut page, &lines);
    claimed(&mut page, contents);
    proven(&mut page, contents);
    controlled(&mut page, contents);
    audited(&mut page, contents);
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

/// What a study of many pages found, before its pages.
fn found(page: &mut Page, contents: &Contents) {
    for sentence in headline(contents) {
        page.item("- ", Some(Tone::Quiet), &sentence);
    }
    page.gap();
}

/// The document page by page: its heading and words, and what was measured here.
fn paged(page: &mut Page, contents: &Contents) {
    let pages = pages(contents);
    if !pages.is_empty() {
        found(page, contents);
    }
    for shows in &pages {
        let rule = "-".repeat(page.style.width.min(60));
        let painted = page.style.paint(Tone::Quiet, &rule);
        page.line(&painted);
        let painted = page.style.paint(Tone::Heading, &clean(&shows.page.title));
        page.line(&painted);
        for line in shows.page.words.iter().flat_map(|words| words.trim().lines()) {
            page.item("  | ", Some(Tone::Quiet), line);
        }
        for table in &shows.tables {
            plain::write(page, table);
        }
        page.gap();
    }
    if !pages.is_empty() {
        let painted = page.style.paint(Tone::Heading, "All measurements");
        page.line(&painted);
    }
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

/// What each setting under test is worth, alone: what `tactus prove` prints.
#[must_use]
pub fn worth(contents: &Contents, style: Style) -> String {
    let mut page = Page { style, out: String::new() };
    proven(&mut page, contents);
    said(&mut page, contents, OBSTACLES);
    damage(&mut page, contents);
    page.out
}

/// What each setting under test is worth.
fn proven(page: &mut Page, contents: &Contents) {
    let proofs = proofs(contents);
    if proofs.is_empty() {
        return;
    }
    page.heading("What each setting is worth");
    for proven in &proofs {
        let evidence = proven.evidence.map(|evidence| format!(", {evidence}")).unwrap_or_default();
        let (measured, planned) = proven.pairs;
        let lead = format!("  {} ", clean(&proven.setting));
        match &proven.answer {
            Answer::None(reason) => page.item(&lead, Some(Tone::Doubt), &format!("not tested: {reason}")),
            Answer::Effects(effects) => {
                let place = format!("({}, {measured} of {planned} pairs{evidence})", proven.environment);
                page.item(&lead, Some(Tone::Heading), &place);
                page.item("    ", None, &proven.what);
                for worth in effects {
                    let tone = if worth.effect.is_shown() { Tone::Good } else { Tone::Quiet };
                    let medians =
                        format!("{} without, {} with", latency(worth.without_ns), latency(worth.with_ns));
                    let lead = format!("    {:<8} ", worth.quantity);
                    page.item(&lead, Some(tone), &format!("{medians}: {}", worth.words()));
                }
            }
        }
    }
    page.gap();
    let method = "medians of the pairs; effects by the signed-rank test, the three intervals of a setting hold together at 95 %";
    page.item("  ", None, method);
    if let Some(caution) = caution(&proofs) {
        page.item("  ", None, &caution);
    }
}

/// Where the instrument is proven, and where not.
fn controlled(page: &mut Page, contents: &Contents) {
    let said = controls(contents);
    if !said.is_empty() {
        page.gap();
    }
    for (proven, sentence) in said {
        page.item("control: ", Some(if proven { Tone::Good } else { Tone::Bad }), &sentence);
    }
}

/// Under which conditions each environment was measured.
fn audited(page: &mut Page, contents: &Contents) {
    for environment in contents.audits.keys() {
        if let Some(sentence) = conditions(contents, environment) {
            page.item("measured with: ", Some(Tone::Doubt), &format!("{environment}: {sentence}"));
        }
    }
    if !contents.audits.is_empty() {
        let bundle = "`tactus audit --from BUNDLE` says what was read, why it matters and how to mend it";
        page.item("  hint: ", Some(Tone::Quiet), bundle);
    }
}

/// What a reader must know, with the remedy.
const OBSTACLES: (NoteKind, &str, Tone) = (NoteKind::Obstacle, "obstacle: ", Tone::Doubt);

fn notes(page: &mut Page, contents: &Contents) {
    said(page, contents, OBSTACLES);
    said(page, contents, (NoteKind::SideEffect, "measuring changed: ", Tone::Quiet));
    said(page, contents, (NoteKind::Info, "note: ", Tone::Quiet));
    damage(page, contents);
}

/// Longest note that a terminal is given, in characters.
const NOTE: usize = 420;

/// A note without the end of its list, should that be long.
fn brief(text: &str) -> String {
    if text.chars().count() <= NOTE {
        return text.to_owned();
    }
    let cut: String = text.chars().take(NOTE).collect();
    let end = cut.rfind(", ").unwrap_or(cut.len());
    format!("{}, ... (the report has all of it)", &cut[..end])
}

/// The notes of one kind.
fn said(page: &mut Page, contents: &Contents, (kind, lead, tone): (NoteKind, &str, Tone)) {
    // Which activity of a plan it was means nothing without the plan: the other formats keep it.
    let telling = |remark: &Remark| !remark.note.text.starts_with("the load of activity ");
    for remark in remarks(contents, kind).into_iter().filter(telling) {
        let places = remark.environments.join(", ");
        let places = if places.is_empty() { String::new() } else { format!(" ({places})") };
        page.item(lead, Some(tone), &format!("{}{places}", brief(&remark.note.text)));
        if let Some(hint) = &remark.note.hint {
            page.item("  hint: ", Some(Tone::Quiet), hint);
        }
    }
}

fn damage(page: &mut Page, contents: &Contents) {
    for sentence in &contents.damage {
        page.item("damage: ", Some(Tone::Bad), sentence);
    }
}
