//! Values side by side: a panel for each item. A panel has a bar for each row with its interval, and a mark
//! for the published value. Every axis begins at zero, so that a bar of twice the length is twice the value.

use tactus_model::number::{float, whole};

use super::canvas::{Anchor, Canvas, Figure, WIDTH};
use super::scale::Scale;
use super::theme::{GRID, INK, MARK, MUTED, SERIES, series};
use crate::units::{number, shortened};

/// Room for the names of the bars.
const NAMES: f64 = 290.0;
/// Room for the numbers behind them.
const NUMBERS: f64 = 120.0;
/// Longest name, in columns.
const LONGEST: usize = 40;
/// Height of a panel's heading.
const HEAD: f64 = 30.0;
/// Distance of the bars from each other.
const BAR: f64 = 26.0;
/// Below the bars: the axis, and the next panel's distance.
const FOOT: f64 = 36.0;
/// Half the height of a bar.
const HALF: f64 = 8.0;

/// An item.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its heading: name, unit and which value is the better one.
    pub title: String,
    /// Its unit.
    pub unit: String,
    /// A bar for each row that has it.
    pub bars: Vec<Bar>,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Number of the row, the same in every panel.
    pub row: usize,
    /// Its name.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// The published value.
    pub published: Option<f64>,
}

/// Draws the panels one below the other.
#[must_use]
pub fn bars(title: &str, panels: &[Panel]) -> Figure {
    let high = |panel: &Panel| HEAD + BAR * float(panel.bars.len() as u64) + FOOT;
    let published = panels.iter().flat_map(|panel| &panel.bars).any(|bar| bar.published.is_some());
    let legend = if published { 24.0 } else { 0.0 };
    let total: f64 = panels.iter().map(high).sum::<f64>() + legend;
    let height = u32::try_from(whole(total)).unwrap_or(400);
    let elements = Canvas::draw(height, |canvas| {
        let mut top = 0.0;
        for panel in panels {
            draw(canvas, panel, top);
            top += high(panel);
        }
        if published {
            canvas.path(&[(NAMES, total - 12.0), (NAMES + 24.0, total - 12.0)], MARK, 2);
            canvas.text("published", (NAMES + 31.0, total - 12.0), Anchor::Start);
        }
    });
    let said: Vec<String> =
        panels.iter().flat_map(|panel| panel.bars.iter().map(move |bar| said(panel, bar))).collect();
    Figure::still(title, said.join("; "), height, elements)
}

fn said(panel: &Panel, bar: &Bar) -> String {
    format!("{}, {}: {} {}", panel.title, bar.name, number(bar.value), panel.unit)
}

fn draw(canvas: &Canvas, panel: &Panel, top: f64) {
    let (left, right) = (NAMES, f64::from(WIDTH) - NUMBERS);
    let ends = |bar: &Bar| {
        let high = bar.interval.map_or(bar.value, |(_, high)| high);
        high.max(bar.value).max(bar.published.unwrap_or_default())
    };
    let most = panel.bars.iter().map(ends).fold(0.0, f64::max);
    let x = Scale::new(false, 0.0, most * 1.04, left, right);
    let bottom = top + HEAD + BAR * float(panel.bars.len() as u64);
    canvas.text(&panel.title, (4.0, top + 14.0), Anchor::Start);
    for tick in x.ticks(6, number) {
        let px = x.px(tick.value);
        canvas.path(&[(px, top + HEAD - 4.0), (px, bottom)], GRID, 1);
        canvas.quiet(&tick.label, (px, bottom + 5.0), Anchor::Below);
    }
    canvas.path(&[(left, top + HEAD - 4.0), (left, bottom)], MUTED, 1);
    for (n, bar) in (0_u32..).zip(&panel.bars) {
        let y = top + HEAD + BAR * (f64::from(n) + 0.5) - 2.0;
        let end = x.px(bar.value);
        canvas.text(&shortened(&bar.name, LONGEST), (left - 10.0, y), Anchor::End);
        let colour = series(bar.row % SERIES);
        let corners = [(left, y - HALF), (end, y - HALF), (end, y + HALF), (left, y + HALF)];
        canvas.fill(&corners, colour, 0.32);
        canvas.path(&[(end, y - HALF), (end, y + HALF)], colour, 2);
        if let Some((low, high)) = bar.interval {
            let (low, high) = (x.px(low), x.px(high));
            canvas.path(&[(low, y), (high, y)], INK, 1);
            for at in [low, high] {
                canvas.path(&[(at, y - 4.0), (at, y + 4.0)], INK, 1);
            }
        }
        if let Some(published) = bar.published {
            let at = x.px(published);
            canvas.path(&[(at, y - HALF - 3.0), (at, y + HALF + 3.0)], MARK, 2);
        }
        let text = format!("{} {}", number(bar.value), panel.unit);
        canvas.text(&text, (right + 10.0, y), Anchor::Start);
    }
}
