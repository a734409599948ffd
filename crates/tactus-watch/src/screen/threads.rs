//! The page of threads: a line each, and below them the histogram of the chosen one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tactus_model::outcome::RowStatus;
use tactus_model::series::SeriesKey;

use super::figures::{figure, human, micro};
use super::graph::{self, bars};
use super::{BOLD, CHOSEN, Look};
use crate::state::{Row, Series, Stage, Watched};
use crate::view::{View, threads};

/// Lines that the histogram needs to be worth its place.
const GRAPH: u16 = 7;
/// Width of the columns before the sparkline.
const FIGURES: u16 = 51;

pub(super) fn draw(watched: &Watched, view: &View, look: Look, frame: &mut Frame<'_>, area: Rect) {
    let (lines, chosen) = lines(watched, view, look, area.width);
    if lines.is_empty() {
        return frame.render_widget(Paragraph::new(before(watched)), area);
    }
    let wanted = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let is_room = area.height >= 6 + GRAPH && chosen.is_some();
    let table = if is_room { wanted.min(area.height - GRAPH) } else { area.height };
    let [above, below] = Layout::vertical([Constraint::Length(table), Constraint::Min(0)]).areas(area);
    // The chosen line is always seen.
    let past = chosen.unwrap_or(0).saturating_add(1).saturating_sub(usize::from(above.height));
    let scroll = u16::try_from(past).unwrap_or(u16::MAX);
    frame.render_widget(Paragraph::new(lines).scroll((scroll, 0)), above);
    if is_room {
        graph::histogram(watched, view, look, frame, below);
    }
}

/// The text before the first measurement.
fn before(watched: &Watched) -> Vec<Line<'_>> {
    let first = Line::from("no measurement yet: environments start, and the self-test runs");
    let last = watched.remarks.iter().rev().take(5);
    std::iter::once(first).chain(last.map(|remark| Line::from(remark.text.as_str()))).collect()
}

/// The lines of all rows that are shown, and the number of the chosen one.
fn lines<'a>(watched: &'a Watched, view: &View, look: Look, width: u16) -> (Vec<Line<'a>>, Option<usize>) {
    let all = threads(watched);
    let mut lines = Vec::new();
    let mut chosen = None;
    let chosen_thread = view.chosen.min(all.len().saturating_sub(1));
    for number in watched.current() {
        let row = &watched.rows[number];
        lines.push(heading(watched, row, look));
        if !row.series.is_empty() {
            lines.push(Line::styled(columns(width), look.faint()));
        }
        for (at, (_, key)) in all.iter().enumerate().filter(|(_, (of, _))| *of == number) {
            let is_chosen = at == chosen_thread;
            if is_chosen {
                chosen = Some(lines.len());
            }
            lines.push(thread(row, key, &row.series[*key], look, width, is_chosen));
        }
        for (name, value) in &row.values {
            lines.push(Line::from(format!("  {name}: {} {}", figure(value.value), value.unit)));
        }
    }
    (lines, chosen)
}

/// The measurement, its place, the load beside it, and its length.
fn heading<'a>(watched: &Watched, row: &Row, look: Look) -> Line<'a> {
    let place = watched.places.get(&row.planned.environment);
    let seconds = |ns: u64| human(std::time::Duration::from_nanos(ns));
    let mut spans = vec![Span::styled(row.planned.environment.clone(), BOLD)];
    let mut say = |text: String, style: Style| spans.push(Span::styled(text, style));
    let beside = if row.planned.beside.is_empty() { "no load".into() } else { row.planned.beside.join(", ") };
    say(format!("  {}, {beside}", row.planned.measurement), Style::new());
    match row.stage {
        Stage::Ended(RowStatus::Measured) => say("  done".into(), Style::new()),
        Stage::Ended(RowStatus::Skipped) => say("  skipped".into(), Style::new()),
        Stage::Ended(RowStatus::Failed) => say("  failed".into(), look.bad()),
        Stage::Waiting | Stage::Measuring => {
            say(format!("  {} of {}", seconds(row.at_ns), seconds(row.planned.planned_ns)), Style::new());
        }
    }
    if let Some(limit) = row.planned.limit_ns {
        say(format!("  limit {} us", micro(Some(limit))), Style::new());
    }
    if row.proven == Some(false) {
        say("  self-test failed".into(), look.bad());
    }
    if let Some(evidence) = place.and_then(|place| place.evidence) {
        say(format!("  {evidence}"), look.faint());
    }
    if let Some(lost) = place.map(|place| place.lost).filter(|lost| *lost > 0) {
        say(format!("  {lost} frames lost"), look.bad());
    }
    let findings = place.and_then(|place| place.findings.as_ref());
    let found = findings.map(super::notes::findings);
    if let Some(found) = found {
        say(format!("  {found}"), Style::new());
    }
    Line::from(spans)
}

/// One thread.
fn thread<'a>(row: &Row, key: &SeriesKey, series: &Series, look: Look, width: u16, chosen: bool) -> Line<'a> {
    let beyond = series.max_ns().is_some_and(|max| row.is_above(max));
    let mark = if beyond { "!" } else { " " };
    let who = format!("t{} {}", key.thread, key.kind);
    let style = if chosen { CHOSEN } else { Style::new() };
    let figures =
        format!("{mark} {:>3} {who:<9.9} {:>8} {:>8}", key.cpu, micro(series.now_ns), micro(series.p99_ns()));
    let max = format!(" {:>8}", micro(series.max_ns()));
    let missed = row.missed(series).map_or_else(|| "-".to_owned(), |missed| missed.to_string());
    let missed = format!(" {missed:>7} ");
    let room = usize::from(width.saturating_sub(FIGURES));
    let maxima = series.maxima.in_columns(room);
    let most = maxima.iter().flatten().copied().max().unwrap_or(0);
    let scaled: Vec<Option<f64>> = maxima.iter().map(|max| max.map(|max| graph::share(max, most))).collect();
    let emphasis = if beyond { look.bad() } else { style };
    Line::from(vec![
        Span::styled(figures, style),
        Span::styled(max, emphasis),
        Span::styled(missed, style),
        Span::raw(bars(&scaled, look)),
    ])
}

/// The heading above the threads.
fn columns(width: u16) -> String {
    let over_time = if width > FIGURES + 10 { "maxima over the whole time" } else { "" };
    let [cpu, thread, now, p99, max, missed] = ["CPU", "thread", "now us", "p99 us", "max us", "missed"];
    format!("  {cpu:>3} {thread:<9} {now:>8} {p99:>8} {max:>8} {missed:>7} {over_time}")
}
