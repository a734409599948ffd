//! The screen: a state and what the user looks at become cells. Pure: the same state is the same screen.

mod figures;
mod graph;
mod notes;
mod threads;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use tactus_model::outcome::{RowStatus, RunStatus};

use crate::state::{Stage, Watched};
use crate::view::{Page, View};

pub use figures::{figure, human, micro};

/// The abilities of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Colours; without them words and marks carry the meaning.
    pub colour: bool,
    /// Blocks of Unicode; without them bars are made of letters.
    pub unicode: bool,
}

/// The least that anything is drawn into: columns and lines.
const LEAST: (u16, u16) = (20, 4);

impl Look {
    /// A value beyond a limit, or an error.
    fn bad(self) -> Style {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        if self.colour { bold.fg(Color::Red) } else { bold }
    }

    /// A minor detail.
    fn faint(self) -> Style {
        if self.colour { Style::new().fg(Color::DarkGray) } else { Style::new() }
    }
}

/// Headings, and the chosen line.
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Draws a run.
pub fn draw(watched: &Watched, view: &View, look: Look, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        frame.render_widget(Paragraph::new("too small"), area);
        return;
    }
    let shown = view.paused.as_deref().unwrap_or(watched);
    let [head, body, keys] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(1), Constraint::Length(1)]).areas(area);
    frame.render_widget(Paragraph::new(heading(shown, watched, view, look, head)), head);
    match view.page {
        Page::Threads => threads::draw(shown, view, look, frame, body),
        Page::Histogram => graph::histogram(shown, view, look, frame, body),
        Page::Time => graph::over_time(shown, view, look, frame, body),
        Page::Notes => notes::draw(shown, look, frame, body),
    }
    frame.render_widget(Paragraph::new(footing(view, look, keys)), keys);
}

/// The run, its progress, and the page that is shown.
fn heading<'a>(shown: &Watched, now: &Watched, view: &View, look: Look, area: Rect) -> Vec<Line<'a>> {
    let left = match (shown.ended, shown.left) {
        (Some(RunStatus::Complete), _) => "ended".to_owned(),
        (Some(RunStatus::Interrupted), _) => "interrupted".to_owned(),
        (None, Some(left)) => format!("{} left", human(left)),
        (None, None) => "time left unknown".to_owned(),
    };
    let mut first = vec![Span::styled(format!("tactus {}", shown.plan), BOLD)];
    first.push(format!("  {} of {} done  {left}", shown.done(), shown.rows.len()).into());
    if view.paused.is_some() {
        let since = now.events.saturating_sub(shown.events);
        first.push(Span::styled(format!("  VIEW PAUSED ({since} events since)"), CHOSEN));
    }
    if let Some(silent) = shown.silent {
        first.push(Span::styled(format!("  nothing new for {}: died?", human(silent)), look.bad()));
    }
    if view.asked_to_end {
        first.push(Span::styled("  ENDING", CHOSEN));
    }
    let mut second = Vec::new();
    for (number, page) in Page::ALL.iter().enumerate() {
        let style = if *page == view.page { CHOSEN } else { look.faint() };
        let name = if area.width < 50 { String::new() } else { format!(" {}", page.name()) };
        second.push(Span::styled(format!("{}{name}", number + 1), style));
        second.push("  ".into());
    }
    let failed = shown.rows.iter().filter(|row| row.stage == Stage::Ended(RowStatus::Failed)).count();
    if failed > 0 {
        second.push(Span::styled(format!("{failed} failed"), look.bad()));
    }
    vec![Line::from(first), Line::from(second)]
}

/// The line that explains the keys.
fn footing<'a>(view: &View, look: Look, area: Rect) -> Line<'a> {
    if view.ending {
        let words = "End the run? q: end it and keep what was measured; another key: continue";
        return Line::styled(words, CHOSEN);
    }
    let narrow = area.width < 72;
    let words = match (view.follows, narrow) {
        (false, false) => "1-4 tab page  up/down thread  e environment  p pause  m mark  q end",
        (false, true) => "tab up/dn e p m q",
        (true, false) => "1-4 tab page  up/down thread  e environment  p pause  q leave",
        (true, true) => "tab up/dn e p q",
    };
    Line::styled(words, look.faint())
}

#[cfg(test)]
mod tests;
