//! Frame of a figure: grid, ticks, names of the axes, legend.

use super::canvas::{Anchor, Canvas, TEXT, WIDTH};
use super::scale::{Scale, Tick};
use super::theme::{GRID, MARK, MUTED, dashed, series};
use crate::units::{columns, shortened};

/// Height of the plot itself.
const PLOT: f64 = 236.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 18.0;
/// Below the plot: tick labels and the name of the axis.
const FOOT: f64 = 48.0;
/// A line of the legend.
const LINE: f64 = 21.0;
/// Longest entry of a legend, in columns.
const LONGEST: usize = 74;

/// How a legend's entry is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swatch {
    /// A solid line of a series.
    Solid(usize),
    /// A dashed line of a series.
    Dashed(usize),
    /// An area of a series.
    Band(usize),
    /// A reference.
    Mark,
}

/// Where everything of a figure lies.
pub struct Frame {
    /// Height of the whole figure.
    pub height: u32,
    /// The plot.
    pub left: f64,
    /// The plot.
    pub right: f64,
    /// The plot.
    pub top: f64,
    /// The plot.
    pub bottom: f64,
    legend: Vec<Placed>,
}

struct Placed {
    swatch: Swatch,
    text: String,
    x: f64,
    y: f64,
}

const SWATCH: f64 = 24.0;

/// Width of text, by the widest of the common sans-serif fonts.
fn wide(text: &str) -> f64 {
    f64::from(u32::try_from(columns(text)).unwrap_or(0)) * TEXT * 0.57
}

impl Frame {
    /// Lays out a figure with this legend.
    pub fn new(legend: Vec<(Swatch, String)>) -> Self {
        let (left, right) = (LEFT, f64::from(WIDTH) - RIGHT);
        let mut placed = Vec::new();
        let (mut x, mut y) = (left, 14.0);
        for (swatch, text) in legend {
            let text = shortened(&text, LONGEST);
            let own = SWATCH + 7.0 + wide(&text) + 22.0;
            if x > left && x + own - 22.0 > right {
                (x, y) = (left, y + LINE);
            }
            placed.push(Placed { swatch, text, x, y });
            x += own;
        }
        let top = if placed.is_empty() { 12.0 } else { y + 20.0 };
        let bottom = top + PLOT;
        let height = u32::try_from(tactus_model::number::whole(bottom + FOOT)).unwrap_or(400);
        Self { height, left, right, top, bottom, legend: placed }
    }

    /// Draws legend, grid, labels and names.
    pub fn draw(&self, canvas: &Canvas, x: (&Scale, &[Tick], &str), y: (&Scale, &[Tick], &str)) {
        for tick in y.1 {
            let py = y.0.px(tick.value);
            canvas.path(&[(self.left, py), (self.right, py)], GRID, 1);
            canvas.quiet(&tick.label, (self.left - 8.0, py), Anchor::End);
        }
        for tick in x.1 {
            let px = x.0.px(tick.value);
            canvas.path(&[(px, self.top), (px, self.bottom)], GRID, 1);
            canvas.path(&[(px, self.bottom), (px, self.bottom + 4.0)], MUTED, 1);
            canvas.quiet(&tick.label, (px, self.bottom + 8.0), Anchor::Below);
        }
        canvas.path(&[(self.left, self.top), (self.left, self.bottom), (self.right, self.bottom)], MUTED, 1);
        canvas.text(x.2, (f64::midpoint(self.left, self.right), self.bottom + 28.0), Anchor::Below);
        canvas.text(y.2, (16.0, f64::midpoint(self.top, self.bottom)), Anchor::Upright);
        for entry in &self.legend {
            let (from, to) = ((entry.x, entry.y), (entry.x + SWATCH, entry.y));
            match entry.swatch {
                Swatch::Solid(n) => canvas.path(&[from, to], series(n), 2),
                Swatch::Dashed(n) => canvas.path(&[from, to], dashed(n), 2),
                Swatch::Band(n) => {
                    let (up, down) = (entry.y - 6.0, entry.y + 6.0);
                    canvas.fill(&[(from.0, up), (to.0, up), (to.0, down), (from.0, down)], series(n), 0.22);
                    canvas.path(&[from, to], series(n), 2);
                }
                Swatch::Mark => canvas.path(&[from, to], MARK, 2),
            }
            canvas.text(&entry.text, (entry.x + SWATCH + 7.0, entry.y), Anchor::Start);
        }
    }

    /// A figure with nothing in it says so.
    pub fn nothing(&self, canvas: &Canvas, why: &str) {
        let middle = (f64::midpoint(self.left, self.right), f64::midpoint(self.top, self.bottom));
        canvas.quiet(why, middle, Anchor::Below);
    }

    /// A horizontal reference line.
    pub fn mark(&self, canvas: &Canvas, y: f64) {
        canvas.path(&[(self.left, y), (self.right, y)], MARK, 2);
    }

    /// A vertical line up from the axis: where the largest value lies.
    pub fn pin(&self, canvas: &Canvas, x: f64, n: usize) {
        canvas.path(&[(x, self.bottom), (x, self.bottom - 14.0)], series(n), 2);
        canvas.path(&[(x - 4.0, self.bottom - 14.0), (x + 4.0, self.bottom - 14.0)], series(n), 2);
    }
}
