//! What environments cost: a line for each item, on it a mark for each environment that says how many times worse it is
//! than in the first, with its interval.

use tactus_model::number::{float, whole};

use super::canvas::{Anchor, Canvas, Figure, WIDTH};
use super::scale::{Scale, plain};
use super::theme::{GRID, MUTED, SERIES, series};
use crate::units::{columns, number, shortened};

/// Room for the names.
const NAMES: f64 = 300.0;
/// At the right edge.
const EDGE: f64 = 24.0;
/// Longest name, in columns.
const LONGEST: usize = 42;
/// Above the first line: the legend.
const HEAD: f64 = 34.0;
/// Distance of the lines from each other.
const LINE: f64 = 17.0;
/// Below the last line: the axis and its name.
const FOOT: f64 = 48.0;
/// Beyond so many times nothing is drawn, in either direction.
const WIDEST: f64 = 1000.0;
/// Half the height of a mark.
const HALF: f64 = 4.0;
/// Width of a letter of the legend, about.
const LETTER: f64 = 7.2;

/// An item.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Its name.
    pub name: String,
    /// How much worse it is in each environment that has it.
    pub times: Vec<Times>,
}

/// How many times worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Number of the environment.
    pub place: usize,
    /// So many.
    pub estimate: f64,
    /// At least and at most.
    pub interval: Option<(f64, f64)>,
    /// Whether it is shown to be another than 1: those marks are full.
    pub shown: bool,
}

/// Draws them, each environment in its colour and shape.
#[must_use]
pub fn costs(title: &str, places: &[String], all: &[Cost]) -> Figure {
    let bottom = HEAD + LINE * float(all.len() as u64);
    let height = u32::try_from(whole(bottom + FOOT)).unwrap_or(400);
    let (left, right) = (NAMES, f64::from(WIDTH) - EDGE);
    let ends = |of: &Times| {
        let (low, high) = of.interval.unwrap_or((of.estimate, of.estimate));
        [of.estimate, low, high]
    };
    let times = || all.iter().flat_map(|cost| &cost.times).flat_map(ends).filter(|times| times.is_finite());
    let within = |value: f64| value.clamp(1.0 / WIDEST, WIDEST);
    let low = times().map(within).fold(0.9, f64::min);
    let high = times().map(within).fold(1.1, f64::max);
    let x = Scale::new(true, low / 1.05, high * 1.05, left, right);
    let elements = Canvas::draw(height, |canvas| {
        for tick in x.ticks(11, plain) {
            let px = x.px(tick.value);
            canvas.path(&[(px, HEAD - 6.0), (px, bottom)], GRID, 1);
            canvas.quiet(&tick.label, (px, bottom + 5.0), Anchor::Below);
        }
        canvas.path(&[(x.px(1.0), HEAD - 6.0), (x.px(1.0), bottom)], MUTED, 2);
        let name = "times worse than in the first environment (1: as there; log.)";
        canvas.text(name, (f64::midpoint(left, right), bottom + 24.0), Anchor::Below);
        let mut at = left;
        for (n, place) in places.iter().enumerate() {
            mark(canvas, (at + HALF, 13.0), n, true);
            canvas.text(place, (at + 14.0, 13.0), Anchor::Start);
            at += 34.0 + LETTER * float(columns(place) as u64);
        }
        for (n, cost) in (0_u32..).zip(all) {
            let y = HEAD + LINE * (f64::from(n) + 0.5);
            canvas.text(&shortened(&cost.name, LONGEST), (left - 12.0, y), Anchor::End);
            for of in &cost.times {
                if let Some((low, high)) = of.interval {
                    canvas.path(&[(x.px(low), y), (x.px(high), y)], series(of.place % SERIES), 1);
                }
                mark(canvas, (x.px(of.estimate), y), of.place, of.shown);
            }
        }
    });
    let said = all.iter().flat_map(|cost| cost.times.iter().map(move |of| said(places, cost, of)));
    Figure::still(title, said.collect::<Vec<String>>().join("; "), height, elements)
}

/// A mark: which environment it is for is told by its shape as well.
fn mark(canvas: &Canvas, (x, y): (f64, f64), place: usize, full: bool) {
    let corners: &[(f64, f64)] = match place % SERIES {
        0 => &[(-1.0, 0.0), (0.0, -1.0), (1.0, 0.0), (0.0, 1.0)],
        1 => &[(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
        2 => &[(0.0, -1.0), (1.0, 0.9), (-1.0, 0.9)],
        _ => &[(-1.0, -0.9), (1.0, -0.9), (0.0, 1.0)],
    };
    let colour = series(place % SERIES);
    let mut around: Vec<(f64, f64)> = corners.iter().map(|(dx, dy)| (x + dx * HALF, y + dy * HALF)).collect();
    if full {
        canvas.fill(&around, colour, 1.0);
    }
    around.extend(around.first().copied());
    canvas.path(&around, colour, 1);
}

fn said(places: &[String], cost: &Cost, of: &Times) -> String {
    let place = places.get(of.place).map_or("", String::as_str);
    let range = of.interval.map(|(low, high)| format!(" ({} to {})", number(low), number(high)));
    format!("{}, {place}: x{}{}", cost.name, number(of.estimate), range.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(name: &str, times: &[(usize, f64, bool)]) -> Cost {
        let of = |(place, estimate, shown): &(usize, f64, bool)| Times {
            place: *place,
            estimate: *estimate,
            interval: Some((estimate * 0.9, estimate * 1.1)),
            shown: *shown,
        };
        Cost { name: name.into(), times: times.iter().map(of).collect() }
    }

    #[test]
    fn every_item_has_a_line_and_every_environment_a_mark_of_its_own() {
        let all =
            [cost("system call", &[(0, 1.02, false), (1, 30.0, true)]), cost("copy", &[(1, 2.0, true)])];
        let places = ["container".to_owned(), "guest (EMULATED)".to_owned()];
        let figure = costs("costs", &places, &all);
        let svg = figure.svg();
        for text in ["system call", "copy", "container", "guest (EMULATED)", "times worse"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(
            figure.about.contains("system call, guest (EMULATED): x30.0 (27.0 to 33.0)"),
            "{}",
            figure.about
        );
        let full = |svg: &str| svg.matches("<polygon").count();
        assert_eq!(full(&svg), 2 + 2, "two of the legend, two that are shown");
    }

    #[test]
    fn absurd_numbers_and_none_at_all_are_drawn() {
        let absurd = cost("absurd", &[(7, f64::INFINITY, true), (8, 1e-300, false), (9, f64::NAN, true)]);
        let svg = costs("", &[], &[absurd]).svg();
        assert!(!svg.contains("NaN") && svg.len() > 100);
        assert!(costs("", &[], &[]).svg().contains("times worse"));
    }
}
