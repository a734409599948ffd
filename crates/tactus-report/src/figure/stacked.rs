//! The parts of wholes: a panel for each group of bars. A bar is as long as the whole. Its parts lie side by
//! side, and the rest is empty.

use tactus_model::number::{float, whole};

use super::canvas::{Anchor, Canvas, Figure, WIDTH};
use super::scale::Scale;
use super::theme::{GRID, INK, MUTED, series};
use crate::units::shortened;

/// Room for the names of the bars.
const NAMES: f64 = 150.0;
/// Room for the words behind them.
const WORDS: f64 = 120.0;
/// Longest name, in columns.
const LONGEST: usize = 20;
/// Height of the legend.
const LEGEND: f64 = 34.0;
/// Distance of the legend's entries.
const ENTRY: f64 = 92.0;
/// Height of a panel's heading.
const HEAD: f64 = 30.0;
/// Distance of the bars from each other.
const BAR: f64 = 22.0;
/// Below the bars: the axis, and the next panel's distance.
const FOOT: f64 = 36.0;
/// Half the height of a bar.
const HALF: f64 = 8.0;

/// A kind of part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Its colour: kinds that belong together share one.
    pub colour: usize,
    /// How they are then told apart.
    pub shade: Shade,
}

/// Shades of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shade {
    /// The darker one.
    Dark,
    /// Between both.
    Middle,
    /// The lighter one.
    Light,
}

/// Bars with a common heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Stacks {
    /// The heading.
    pub title: String,
    /// The bars.
    pub bars: Vec<Stack>,
}

/// A whole and its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Its name.
    pub name: String,
    /// Its parts, each between 0 and 1, in the order of the kinds.
    pub parts: Vec<f64>,
}

/// Draws the panels one below the other. `rest` names the empty end of a bar. The legend omits kinds that no
/// bar has.
#[must_use]
pub fn stacked(title: &str, kinds: &[Kind], rest: &str, panels: &[Stacks]) -> Figure {
    let high = |panel: &Stacks| HEAD + BAR * float(panel.bars.len() as u64) + FOOT;
    let total: f64 = LEGEND + panels.iter().map(high).sum::<f64>();
    let height = u32::try_from(whole(total)).unwrap_or(400);
    let elements = Canvas::draw(height, |canvas| {
        legend(canvas, kinds, panels);
        let mut top = LEGEND;
        for panel in panels {
            draw(canvas, kinds, rest, panel, top);
            top += high(panel);
        }
    });
    let said: Vec<String> =
        panels.iter().flat_map(|panel| panel.bars.iter().map(|bar| said(kinds, panel, bar))).collect();
    Figure::still(title, said.join("; "), height, elements)
}

fn said(kinds: &[Kind], panel: &Stacks, bar: &Stack) -> String {
    let parts = kinds.iter().zip(&bar.parts).filter(|(_, part)| **part >= 0.001);
    let parts: Vec<String> = parts.map(|(kind, part)| format!("{} {}", kind.name, percent(*part))).collect();
    format!("{}, {}: {}", panel.title, bar.name, parts.join(", "))
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

fn legend(canvas: &Canvas, kinds: &[Kind], panels: &[Stacks]) {
    let bars = || panels.iter().flat_map(|panel| &panel.bars);
    let shown = kinds.iter().enumerate().filter(|(n, _)| bars().any(|bar| bar.parts.get(*n) > Some(&0.0)));
    for (place, (_, kind)) in (0_u32..).zip(shown) {
        let left = 4.0 + ENTRY * f64::from(place);
        fill(canvas, *kind, (left, left + 16.0), 14.0);
        canvas.text(kind.name, (left + 22.0, 14.0), Anchor::Start);
    }
}

pub(super) fn fill(canvas: &Canvas, kind: Kind, (from, to): (f64, f64), y: f64) {
    let opacity = match kind.shade {
        Shade::Dark => 0.85,
        Shade::Middle => 0.6,
        Shade::Light => 0.35,
    };
    let corners = [(from, y - HALF), (to, y - HALF), (to, y + HALF), (from, y + HALF)];
    canvas.fill(&corners, series(kind.colour), opacity);
}

fn draw(canvas: &Canvas, kinds: &[Kind], rest: &str, panel: &Stacks, top: f64) {
    let (left, right) = (NAMES, f64::from(WIDTH) - WORDS);
    let x = Scale::new(false, 0.0, 100.0, left, right);
    let bottom = top + HEAD + BAR * float(panel.bars.len() as u64);
    canvas.text(&panel.title, (4.0, top + 14.0), Anchor::Start);
    for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let px = x.px(percent);
        canvas.path(&[(px, top + HEAD - 4.0), (px, bottom)], GRID, 1);
        canvas.quiet(&format!("{percent} %"), (px, bottom + 5.0), Anchor::Below);
    }
    for (n, bar) in (0_u32..).zip(&panel.bars) {
        let y = top + HEAD + BAR * (f64::from(n) + 0.5) - 2.0;
        canvas.text(&shortened(&bar.name, LONGEST), (left - 10.0, y), Anchor::End);
        let mut from = 0.0;
        for (kind, part) in kinds.iter().zip(&bar.parts) {
            let to = (from + part).min(1.0);
            fill(canvas, *kind, (x.px(from * 100.0), x.px(to * 100.0)), y);
            from = to;
        }
        let (begin, end) = (x.px(0.0), x.px(100.0));
        let corners =
            [(begin, y - HALF), (end, y - HALF), (end, y + HALF), (begin, y + HALF), (begin, y - HALF)];
        canvas.path(&corners, MUTED, 1);
        canvas.path(&[(x.px(from * 100.0), y - HALF), (x.px(from * 100.0), y + HALF)], INK, 1);
        canvas.text(&format!("{} {rest}", percent(1.0 - from)), (right + 10.0, y), Anchor::Start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 3] = [
        Kind { name: "user", colour: 0, shade: Shade::Dark },
        Kind { name: "nice", colour: 0, shade: Shade::Light },
        Kind { name: "system", colour: 1, shade: Shade::Dark },
    ];

    #[test]
    fn a_kind_that_no_bar_has_stands_in_no_legend_and_the_words_say_what_is_drawn() {
        let bar = Stack { name: "CPU 3".into(), parts: vec![0.25, 0.0, 0.5] };
        let figure = stacked("where", &KINDS, "idle", &[Stacks { title: "TX".into(), bars: vec![bar] }]);
        assert_eq!(figure.about, "TX, CPU 3: user 25.0 %, system 50.0 %");
        assert!(
            figure.elements.contains("25.0 % idle") && !figure.elements.contains("nice"),
            "{}",
            figure.elements
        );
    }
}
