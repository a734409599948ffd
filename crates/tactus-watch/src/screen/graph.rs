//! Bars: how often which latency was, and the largest ones over time.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use tactus_model::number::{float, whole};

use super::figures::{human, micro};
use super::{BOLD, Look};
use crate::state::{Row, Series, Watched};
use crate::view::{View, threads};

/// Bars of rising height, after none.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same without Unicode.
const LETTERS: [char; 9] = [' ', '_', '.', '.', '-', '-', '=', '=', '#'];
/// Columns before the bars, for their scale.
const SCALE: u16 = 10;

/// The share of the largest, 0 to 1.
pub(super) fn share(value: u64, most: u64) -> f64 {
    if most == 0 { 0.0 } else { float(value) / float(most) }
}

/// Shares of the largest in one line; `None` if nothing was measured there.
pub(super) fn bars(shares: &[Option<f64>], look: Look) -> String {
    layer(shares, 0, 1, look)
}

/// The line `above` lines over the bottom, of bars that are `lines` high. Whatever is there is seen.
fn layer(shares: &[Option<f64>], above: u16, lines: u16, look: Look) -> String {
    let set = if look.unicode { BLOCKS } else { LETTERS };
    let one = |share: &Option<f64>| {
        let Some(share) = share else { return set[0] };
        let eighths = whole(share.clamp(0.0, 1.0) * 8.0 * f64::from(lines)).max(1);
        let within = eighths.saturating_sub(u64::from(above) * 8).min(8);
        set[usize::try_from(within).unwrap_or(0)]
    };
    shares.iter().map(one).collect()
}

/// The thread that is chosen.
fn chosen<'a>(watched: &'a Watched, view: &View) -> Option<(&'a Row, String, &'a Series)> {
    let all = threads(watched);
    let (row, key) = all.get(view.chosen.min(all.len().saturating_sub(1)))?;
    let row = &watched.rows[*row];
    let name = format!("{}, CPU {}, t{} {}", row.planned.environment, key.cpu, key.thread, key.kind);
    Some((row, name, &row.series[*key]))
}

/// How often which latency was, both on logarithmic axes.
pub(super) fn histogram(watched: &Watched, view: &View, look: Look, frame: &mut Frame<'_>, area: Rect) {
    let Some((_, name, series)) = chosen(watched, view) else { return nothing(frame, area) };
    let columns = usize::from(area.width.saturating_sub(SCALE + 1)).min(120);
    let packed = series.packed();
    let buckets: Vec<(u64, u64)> = packed.buckets().filter(|(_, count)| *count > 0).collect();
    let (Some((least, _)), Some((most, _))) = (buckets.first(), buckets.last()) else {
        return nothing(frame, area);
    };
    let (from, to) = (float(*least).max(1.0).ln(), float(*most).max(1.0).ln());
    let step = (to - from).max(1e-9) / float(u64::try_from(columns.max(1)).unwrap_or(1));
    let mut counts = vec![0_u64; columns];
    for (value, count) in &buckets {
        let at = usize::try_from(whole(((float(*value).max(1.0).ln() - from) / step).floor())).unwrap_or(0);
        if let Some(column) = counts.get_mut(at.min(columns.saturating_sub(1))) {
            *column = column.saturating_add(*count);
        }
    }
    let highest = counts.iter().copied().max().unwrap_or(0);
    let height = (1.0 + float(highest)).ln();
    let shares: Vec<Option<f64>> =
        counts.iter().map(|count| (*count > 0).then(|| (1.0 + float(*count)).ln() / height)).collect();
    let title = format!("{name}: number of samples by latency (both logarithmic)");
    let ends = (format!("{} us", micro(Some(*least))), format!("{} us", micro(Some(*most))));
    plot(&title, &shares, (&highest.to_string(), "1"), (&ends.0, &ends.1), look, frame, area);
}

/// The largest latencies over the whole time.
pub(super) fn over_time(watched: &Watched, view: &View, look: Look, frame: &mut Frame<'_>, area: Rect) {
    let Some((row, name, series)) = chosen(watched, view) else { return nothing(frame, area) };
    let columns = usize::from(area.width.saturating_sub(SCALE + 1));
    let maxima = series.maxima.in_columns(columns);
    let Some(most) = maxima.iter().flatten().copied().max() else { return nothing(frame, area) };
    let shares: Vec<Option<f64>> = maxima.iter().map(|max| max.map(|max| share(max, most))).collect();
    let title = format!("{name}: largest latency over the whole time, us");
    let now = human(std::time::Duration::from_nanos(row.at_ns));
    plot(&title, &shares, (&micro(Some(most)), "0"), ("0 s", &now), look, frame, area);
}

fn nothing(frame: &mut Frame<'_>, area: Rect) {
    frame.render_widget(Paragraph::new("nothing was measured yet"), area);
}

/// Bars with a scale of heights (top, bottom) and of places (left, right).
fn plot(
    title: &str,
    shares: &[Option<f64>],
    heights: (&str, &str),
    places: (&str, &str),
    look: Look,
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let lines = area.height.saturating_sub(2).max(1);
    let mut text = vec![Line::styled(title.to_owned(), BOLD)];
    for above in (0..lines).rev() {
        let scale = match above {
            0 => heights.1,
            _ if above + 1 == lines => heights.0,
            _ => "",
        };
        text.push(Line::from(format!("{scale:>9.9} {}", layer(shares, above, lines, look))));
    }
    let gap = shares.len().saturating_sub(places.0.chars().count() + places.1.chars().count()).max(1);
    text.push(Line::from(format!("{:10}{}{}{}", "", places.0, " ".repeat(gap), places.1)));
    frame.render_widget(Paragraph::new(text), area);
}
