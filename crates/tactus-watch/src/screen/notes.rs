//! The page of environments, their findings, and remarks.

use std::collections::BTreeMap;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};
use tactus_model::finding::Severity;

use super::{BOLD, Look};
use crate::state::Watched;

/// Findings in a few words, the worst first.
pub(super) fn findings(found: &BTreeMap<Severity, usize>) -> String {
    let words: Vec<String> = [Severity::Blocker, Severity::Major, Severity::Minor]
        .into_iter()
        .filter_map(|severity| Some(format!("{} {severity}", found.get(&severity)?)))
        .collect();
    if words.is_empty() { "no findings".into() } else { format!("findings: {}", words.join(", ")) }
}

pub(super) fn draw(watched: &Watched, look: Look, frame: &mut Frame<'_>, area: Rect) {
    let mut places = vec![Line::styled("environments", BOLD)];
    for (name, place) in &watched.places {
        let evidence = place.evidence.map_or_else(|| "not up".to_owned(), |evidence| evidence.to_string());
        let found = place.findings.as_ref().map_or_else(|| "not audited".into(), findings);
        let mut spans = vec![Span::raw(format!("  {name}: {evidence}, {found}"))];
        if place.lost > 0 {
            spans.push(Span::styled(format!(", {} frames lost", place.lost), look.bad()));
        }
        places.push(Line::from(spans));
    }
    let most = (area.height / 2).max(1);
    let above = u16::try_from(places.len()).unwrap_or(most).min(most);
    let [first, second] = Layout::vertical([Constraint::Length(above), Constraint::Min(1)]).areas(area);
    frame.render_widget(Paragraph::new(places), first);
    let mut said = vec![Line::styled("messages, the newest first", BOLD)];
    let room = usize::from(second.height);
    for remark in watched.remarks.iter().rev().take(room) {
        let since = remark.at_ms.saturating_sub(watched.began_ms.unwrap_or(remark.at_ms));
        let style = if remark.trouble { look.bad() } else { Style::new() };
        let mark = if remark.trouble { "!" } else { " " };
        said.push(Line::styled(format!("{mark}{:>7} s  {}", since / 1_000, remark.text), style));
    }
    frame.render_widget(Paragraph::new(said).wrap(Wrap { trim: false }), second);
}
