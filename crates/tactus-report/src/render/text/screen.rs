//! The end of a run in a terminal: a line for each measurement, the answer, what came of each limit, and what to type next. It
//! fits 24 rows of 80 columns; `tactus report` has the rest.

use std::collections::BTreeSet;

use tactus_model::bundle::Contents;
use tactus_model::document::Outcome;
use tactus_model::event::RowStatus;
use tactus_model::number::float;

use super::page::{Page, Style};
use crate::answer::{Closed, answer, closing, conditions};
use crate::part::{Part, Reader, Tone};
use crate::row::mark;
use crate::section::{Section, notes};
use crate::stats::{Line, comparison};
use crate::units::{clean, columns, count, latency, shortened};

/// Columns of a screen, however wide it is: lines of words are hard to read where they are longer.
const WIDEST: usize = 100;
/// Most measurements that have a line.
const ROWS: usize = 8;
/// Most limits that have a line.
const LIMITS: usize = 5;
/// Most lines of the answer, and of each limit.
const LINES: (usize, usize) = (5, 2);

/// The last screen of a run; `full` is the command that shows all of it.
#[must_use]
pub fn screen(contents: &Contents, style: Style, full: &str) -> String {
    let full = clean(full);
    let mut page = Page::new(Style { width: style.width.min(WIDEST), ..style });
    let lines = comparison(contents);
    rows(&mut page, &lines);
    let answer = answer(contents);
    let closed = closing(contents, &lines);
    page.gap();
    if closed.is_empty() {
        page.led(answer.tone, &answer.led(), &answer.sentence, LINES.0);
    } else {
        page.led(answer.tone, &answer.led(), &counted(&closed), 1);
        for one in closed.iter().take(LIMITS) {
            let tone = match one.outcome {
                Outcome::Pass => Tone::Good,
                Outcome::Fail => Tone::Bad,
                Outcome::Warn | Outcome::Inconclusive => Tone::Doubt,
            };
            let lead = format!("  {:<12}", one.word());
            let limit = if one.limit.is_empty() { String::new() } else { format!("{}: ", one.limit) };
            page.cut_item(&lead, Some(tone), &format!("{limit}{}", one.said), LINES.1);
        }
        if closed.len() > LIMITS {
            page.line(&format!("  and {} more: {full}", closed.len() - LIMITS));
        }
        // Below the limits: in front of them a condition would look like their reason.
        let conditions = conditions(contents, &lines, &answer.sentence).join(" ");
        if !conditions.is_empty() {
            page.cut_item("", None, &conditions, LINES.0 - 2);
        }
    }
    page.gap();
    let notes = noted(contents);
    if notes > 0 {
        page.line(&format!("{notes} {}: `{full}`", if notes == 1 { "note" } else { "notes" }));
    }
    if let Some(next) = &answer.next {
        let command = if next.command.is_empty() { &next.title } else { &next.command };
        page.cut_item("next: ", Some(Tone::Heading), command, 3);
    }
    page.out
}

/// How many limits came out worst: "1 of 2 limits is exceeded."
fn counted(closed: &[Closed]) -> String {
    let worst = closed.first().map_or(Outcome::Inconclusive, |first| first.outcome);
    let word = match worst {
        Outcome::Pass => "met",
        Outcome::Warn => "exceeded, which only warns",
        Outcome::Inconclusive => "not decided",
        Outcome::Fail => "exceeded",
    };
    // A limit that is open for several reasons has several lines.
    let distinct = |lines: &mut dyn Iterator<Item = &Closed>| -> usize {
        lines.flat_map(|one| one.limit.split(", ")).collect::<BTreeSet<_>>().len()
    };
    let all = distinct(&mut closed.iter());
    match (distinct(&mut closed.iter().filter(|one| one.outcome == worst)), all) {
        (_, 1) => format!("the limit is {word}."),
        (1, all) => format!("1 of {all} limits is {word}."),
        (count, all) => format!("{count} of {all} limits are {word}."),
    }
}

/// The table: a line for each measurement.
fn rows(page: &mut Page, lines: &[Line]) {
    if lines.is_empty() {
        return;
    }
    let shown = &lines[..lines.len().min(ROWS)];
    let places: Vec<String> = shown.iter().map(place).collect();
    // The figures take 42 columns.
    let room = page.style.width.saturating_sub(44);
    let widest = places.iter().map(|place| columns(place)).max().unwrap_or(0);
    let wide = widest.max(5).min(room / 2 + 4);
    let load = room
        .saturating_sub(wide + 1)
        .min(shown.iter().map(|line| columns(&line.load)).max().unwrap_or(0).max(4));
    let head = format!(
        "{:<wide$} {:<load$} {:>9} {:>9} {:>9} {:>11}",
        "place", "load", "worst", "p99.9", "missed", "cycles"
    );
    page.painted(Tone::Quiet, &head);
    for (line, place) in shown.iter().zip(&places) {
        let before = format!(
            "{} {} ",
            padded(&shortened(place, wide), wide),
            padded(&shortened(&clean(&line.load), load), load)
        );
        match told(line) {
            Ok(figures) => page.line(&format!("{before}{figures}")),
            Err(reason) => {
                let room = page.style.width.saturating_sub(columns(&before));
                page.line(&format!("{before}{}", shortened(&clean(&reason), room)));
            }
        }
    }
    if lines.len() > ROWS {
        page.painted(Tone::Quiet, &format!("and {} more measurements", lines.len() - ROWS));
    }
}

fn padded(text: &str, wide: usize) -> String {
    format!("{text}{}", " ".repeat(wide.saturating_sub(columns(text))))
}

/// Where it was measured, and what that is worth.
fn place(line: &Line) -> String {
    let mark = match mark(line.evidence) {
        "" if line.ordinary => " (SCHED_OTHER)",
        mark => mark,
    };
    let own = if line.apart { &line.name } else { &line.subject };
    format!("{}{mark}", clean(own))
}

/// Its figures, or why it has none.
fn told(line: &Line) -> Result<String, String> {
    let reason = || {
        let word = match line.status {
            RowStatus::Measured => "",
            RowStatus::Skipped => "skipped: ",
            RowStatus::Failed => "failed: ",
        };
        format!("{word}{}", line.reason.as_deref().unwrap_or("nothing was measured"))
    };
    let Some(all) = &line.figures else {
        return Err(match line.values.len() {
            0 => reason(),
            1 => "1 value".into(),
            all => format!("{all} values"),
        });
    };
    let time = |ns: Option<u64>| ns.map_or_else(|| "unknown".to_owned(), |ns| latency(float(ns)));
    let missed = all.overruns.map_or_else(|| "unknown".to_owned(), count);
    let early = if line.status == RowStatus::Failed { " failed" } else { "" };
    Ok(format!(
        "{:>9} {:>9} {missed:>9} {:>11}{early}",
        time(all.max_ns),
        time(all.corrected.p999_ns),
        count(all.cycles)
    ))
}

/// How many notes `tactus report` has of a run.
fn noted(contents: &Contents) -> usize {
    let parts = notes::ENTRY.parts(contents, Reader::Terminal);
    let items = parts.iter().map(|part| if let Part::List(list) = part { list.items.len() } else { 0 });
    items.sum()
}
