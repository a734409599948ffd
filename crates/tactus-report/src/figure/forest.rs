//! Ratios with their intervals, one below the other, each beside its margin if it has one.

use tactus_model::document::Judgement;
use tactus_model::number::{float, whole};

use super::canvas::{Anchor, Canvas, Figure, WIDTH};
use super::scale::{Scale, plain};
use super::theme::{GRID, MARK, MUTED, series};
use crate::units::{number, shortened};

/// Room for the names.
const NAMES: f64 = 330.0;
/// Room for the numbers behind them.
const NUMBERS: f64 = 190.0;
/// Longest name, in columns.
const LONGEST: usize = 46;
/// Above the first line: the legend.
const HEAD: f64 = 34.0;
/// Distance of the lines from each other.
const LINE: f64 = 24.0;
/// Below the last line: the axis and its name.
const FOOT: f64 = 50.0;
/// Largest ratio on the axis; its inverse is the smallest.
const WIDEST: f64 = 20.0;

/// A ratio.
#[derive(Clone, Debug, PartialEq)]
pub struct Forested {
    /// Its name.
    pub name: String,
    /// The ratio.
    pub estimate: f64,
    /// At least; `None`: nothing bounds it.
    pub low: Option<f64>,
    /// At most; `None`: nothing bounds it.
    pub high: Option<f64>,
    /// The margin: the largest ratio that is allowed, if there is one.
    pub limit: Option<f64>,
    /// Its outcome, which is the colour.
    pub outcome: Judgement,
    /// Its outcome, in a word or two.
    pub word: &'static str,
}

/// Draws them; `axis` names the ratio.
#[must_use]
pub fn forest(title: &str, axis: &str, all: &[Forested]) -> Figure {
    let bottom = HEAD + LINE * float(all.len() as u64);
    let height = u32::try_from(whole(bottom + FOOT)).unwrap_or(400);
    let (left, right) = (NAMES, f64::from(WIDTH) - NUMBERS);
    let within = |value: f64| value.clamp(1.0 / WIDEST, WIDEST);
    let ends = |of: &Forested| {
        [of.low.unwrap_or(of.estimate), of.high.unwrap_or(of.estimate), of.limit.unwrap_or(1.0)]
    };
    let low = all.iter().flat_map(ends).map(within).fold(0.8, f64::min);
    let high = all.iter().flat_map(ends).map(within).fold(1.25, f64::max);
    let x = Scale::new(true, low / 1.04, high * 1.04, left, right);
    let elements = Canvas::draw(height, |canvas| {
        for tick in x.ticks(9, plain) {
            let px = x.px(tick.value);
            canvas.path(&[(px, HEAD - 6.0), (px, bottom)], GRID, 1);
            canvas.quiet(&tick.label, (px, bottom + 6.0), Anchor::Below);
        }
        canvas.path(&[(x.px(1.0), HEAD - 6.0), (x.px(1.0), bottom)], MUTED, 1);
        canvas.path(&[(left, bottom), (right, bottom)], MUTED, 1);
        canvas.text(axis, (f64::midpoint(left, right), bottom + 26.0), Anchor::Below);
        if all.iter().any(|of| of.limit.is_some()) {
            canvas.path(&[(left, 8.0), (left, 20.0)], MARK, 2);
            canvas.text("margin", (left + 8.0, 14.0), Anchor::Start);
        }
        for (n, of) in (0_u32..).zip(all) {
            line(canvas, &x, of, HEAD + LINE * (f64::from(n) + 0.5));
        }
    });
    let said: Vec<String> =
        all.iter().map(|of| format!("{}: {}, {}", of.name, numbers(of), of.word)).collect();
    Figure::still(title, said.join("; "), height, elements)
}

fn line(canvas: &Canvas, x: &Scale, of: &Forested, y: f64) {
    let (left, right) = (NAMES, f64::from(WIDTH) - NUMBERS);
    canvas.text(&shortened(&of.name, LONGEST), (left - 12.0, y), Anchor::End);
    if let Some(limit) = of.limit {
        let margin = x.px(limit);
        canvas.path(&[(margin, y - 9.0), (margin, y + 9.0)], MARK, 2);
    }
    let colour = match of.outcome {
        Judgement::Pass => series(2),
        Judgement::Regression => series(1),
        Judgement::Inconclusive => MUTED,
    };
    let (low, high) = (of.low.map_or(left, |low| x.px(low)), of.high.map_or(right, |high| x.px(high)));
    canvas.path(&[(low, y), (high, y)], colour, 2);
    for (end, px) in [(of.low, low), (of.high, high)] {
        if end.is_some() {
            canvas.path(&[(px, y - 4.0), (px, y + 4.0)], colour, 2);
        }
    }
    let at = x.px(of.estimate);
    canvas.fill(&[(at - 4.0, y), (at, y - 4.0), (at + 4.0, y), (at, y + 4.0)], colour, 1.0);
    canvas.text(&numbers(of), (right + 10.0, y), Anchor::Start);
}

/// `x1.02 (0.98 to 1.07)`.
fn numbers(of: &Forested) -> String {
    let end = |value: Option<f64>, none: &str| value.map_or_else(|| none.to_owned(), number);
    format!("x{} ({} to {})", number(of.estimate), end(of.low, "0"), end(of.high, "any"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, [low, estimate, high]: [f64; 3], outcome: Judgement) -> Forested {
        let (low, high, limit) = (Some(low), Some(high), Some(1.1));
        Forested { name: name.into(), estimate, low, high, limit, outcome, word: outcome.word() }
    }

    #[test]
    fn every_ratio_stands_in_it_with_its_ends() {
        let all = [
            of("idle, p50", [0.98, 1.0, 1.02], Judgement::Pass),
            of("idle, p99", [1.2, 1.3, 1.4], Judgement::Regression),
        ];
        let figure = forest("ratios", "times worse", &all);
        let svg = figure.svg();
        for text in ["idle, p50", "idle, p99", "x1.30 (1.20 to 1.40)", "margin", "times worse"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(figure.about.contains("idle, p99: x1.30 (1.20 to 1.40), regression"));
    }

    #[test]
    fn what_nothing_bounds_and_what_is_no_number_is_drawn_too() {
        let open =
            Forested { low: None, high: None, ..of("open", [0.0, 1e300, 0.0], Judgement::Inconclusive) };
        assert!(forest("", "", &[open]).svg().contains("0 to any"));
        assert!(forest("", "", &[of("", [f64::NAN; 3], Judgement::Pass)]).svg().len() > 100);
        assert!(!forest("", "", &[]).svg().contains("margin"), "no ratio has one");
    }
}
