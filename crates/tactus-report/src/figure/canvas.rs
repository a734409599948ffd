//! A figure under construction: plotters draws, this file says where.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::Serialize;
use tactus_model::bundle::Row;
use tactus_model::number::whole;
use tactus_model::text::no_orders;

use super::plot::Plot;
use super::theme::{INK, MUTED};
use crate::units::{clean, shortened};

/// Width of every figure, in its own units.
pub const WIDTH: u32 = 920;
/// Size of text.
pub const TEXT: f64 = 13.0;
/// Attributes of all text of a figure, set on the element around it.
pub const FONT: &str = "font-family=\"sans-serif\" font-size=\"13\"";
/// plotters divides sizes of text by this when it writes SVG.
const PLOTTERS_TEXT: f64 = 1.24;

/// A finished figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Heading.
    pub title: String,
    /// A description for readers who cannot see it.
    pub about: String,
    /// Width, in its units.
    pub width: u32,
    /// Height, in its own units.
    pub height: u32,
    /// The elements, in sentinel colours: pass through [`super::themed`] or [`super::standalone`].
    pub elements: String,
    /// The text under a pointer, for a figure without `plot`.
    pub hover: Hover,
    /// The data for a script that draws over it.
    pub plot: Option<Plot>,
}

impl Figure {
    /// One as wide as all, which answers to no pointer and to no script.
    pub fn still(title: &str, about: String, height: u32, elements: String) -> Self {
        Self {
            title: title.into(),
            about,
            width: WIDTH,
            height,
            elements,
            hover: Hover::default(),
            plot: None,
        }
    }

    /// The figure as one SVG element in sentinel colours, without a fixed size.
    #[must_use]
    pub fn svg(&self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" {FONT} \
             role=\"img\" aria-label=\"{}\">\n{}</svg>",
            self.width,
            self.height,
            escaped(&self.about),
            self.elements
        )
    }
}

/// Removes attributes that SVG assumes anyway, and those of the whole figure: a third of a figure with many
/// numbers. plotters begins a line with each element. Text is escaped, so no line of text begins with `<`.
fn terse(elements: &str) -> String {
    const SAID: [&str; 5] = [
        " font-family=\"sans-serif\"",
        " font-size=\"13.000000000000002\"",
        " text-anchor=\"start\"",
        " opacity=\"1\"",
        " stroke-width=\"1\"",
    ];
    let line = |line: &str| match line.starts_with('<') {
        true => {
            let line = SAID.iter().fold(line.to_owned(), |line, said| line.replacen(said, "", 1));
            line.replace(" \"/>", "\"/>")
        }
        false => line.to_owned(),
    };
    elements.split_inclusive('\n').map(line).collect()
}

/// Text within an attribute.
fn escaped(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The text that a pointer over a figure shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Hover {
    /// Top of the plot.
    pub top: f64,
    /// Bottom of the plot.
    pub bottom: f64,
    /// The places, from left to right.
    pub spots: Vec<Spot>,
}

/// A place in a figure and its values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spot {
    /// Where.
    pub x: f64,
    /// The text, line by line.
    pub text: Vec<String>,
}

/// A row's name for a legend, with the frames it lost, because a drawing may be shown without the report. It
/// is shortened so that the evidence behind it is never cut.
pub fn name(row: &Row) -> String {
    let run = row.result.repeat.map_or_else(String::new, |run| format!(", run {run}"));
    let name = shortened(&clean(&row.result.name), 40) + &run;
    match row.result.frames_lost {
        0 => name,
        lost => format!("{name}, {lost} frames lost"),
    }
}

/// Rounded to a tenth: page size, not precision, is what hovering costs.
pub fn tenth(px: f64) -> f64 {
    (px * 10.0).round() / 10.0
}

/// Draws into an SVG text.
pub struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// How text lies around its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Begins there, vertically centred.
    Start,
    /// Centred below it.
    Below,
    /// Ends there, vertically centred.
    End,
    /// Turned by a quarter and centred, for the name of an upright axis.
    Upright,
}

impl Canvas<'_> {
    /// Draws a figure of [`WIDTH`] by `height` and returns its elements.
    pub fn draw(height: u32, with: impl FnOnce(&Canvas)) -> String {
        let mut svg = String::new();
        let canvas = Canvas { area: SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area() };
        with(&canvas);
        // Drawing into a text cannot fail.
        let _ = canvas.area.present();
        drop(canvas);
        // The elements without plotters' own frame: the caller gives them one that scales.
        let svg = no_orders(&svg);
        let start = svg.find("<svg").and_then(|at| svg[at..].find('>').map(|end| at + end + 1)).unwrap_or(0);
        let end = svg.rfind("</svg>").unwrap_or(svg.len());
        terse(svg[start..end].trim_start())
    }

    /// A line through `points`.
    pub fn path(&self, points: &[(f64, f64)], colour: RGBColor, width: u32) {
        if points.len() > 1 {
            let points = fewest(points);
            let _ = self.area.draw(&PathElement::new(points, colour.stroke_width(width)));
        }
    }

    /// A translucent area.
    pub fn fill(&self, points: &[(f64, f64)], colour: RGBColor, opacity: f64) {
        if points.len() > 2 {
            let points = fewest(points);
            let _ = self.area.draw(&Polygon::new(points, colour.mix(opacity).filled()));
        }
    }

    /// A dot.
    pub fn dot(&self, point: (f64, f64), colour: RGBColor) {
        let _ = self.area.draw(&Circle::new(at(&point), 2, colour.filled()));
    }

    /// Text in ink.
    pub fn text(&self, text: &str, point: (f64, f64), anchor: Anchor) {
        self.coloured(text, point, anchor, INK);
    }

    /// Text that matters less.
    pub fn quiet(&self, text: &str, point: (f64, f64), anchor: Anchor) {
        self.coloured(text, point, anchor, MUTED);
    }

    fn coloured(&self, text: &str, point: (f64, f64), anchor: Anchor, colour: RGBColor) {
        let (h, v) = match anchor {
            Anchor::Start => (HPos::Left, VPos::Center),
            Anchor::Below => (HPos::Center, VPos::Top),
            Anchor::End => (HPos::Right, VPos::Center),
            Anchor::Upright => (HPos::Center, VPos::Center),
        };
        let font = ("sans-serif", TEXT * PLOTTERS_TEXT).into_font();
        let font = if anchor == Anchor::Upright { font.transform(FontTransform::Rotate270) } else { font };
        let style = font.color(&colour).pos(Pos::new(h, v));
        let _ = self.area.draw(&Text::new(text.to_owned(), at(&point), style));
    }
}

/// The pixels of a line, without those that lie on the straight way between their neighbours: half of a flat distribution.
/// Two at least.
fn fewest(points: &[(f64, f64)]) -> Vec<(i32, i32)> {
    let mut kept: Vec<(i32, i32)> = Vec::with_capacity(points.len());
    for point in points.iter().map(at) {
        if let [.., before, last] = kept[..]
            && is_between(before, last, point)
        {
            kept.pop();
        }
        kept.push(point);
    }
    kept
}

/// Whether `middle` lies on the straight way from `from` to `to`.
fn is_between(from: (i32, i32), middle: (i32, i32), to: (i32, i32)) -> bool {
    let way = |(ax, ay): (i32, i32), (bx, by): (i32, i32)| {
        (i64::from(bx) - i64::from(ax), i64::from(by) - i64::from(ay))
    };
    let ((first_x, first_y), (then_x, then_y)) = (way(from, middle), way(middle, to));
    let (turn, back) = (
        i128::from(first_x) * i128::from(then_y) - i128::from(first_y) * i128::from(then_x),
        i128::from(first_x) * i128::from(then_x) + i128::from(first_y) * i128::from(then_y),
    );
    turn == 0 && back >= 0
}

fn at((x, y): &(f64, f64)) -> (i32, i32) {
    let px = |value: f64| i32::try_from(whole(value)).unwrap_or(0);
    (px(*x), px(*y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_corners_its_ends_and_its_turns_back() {
        let line = |points: &[(i32, i32)]| {
            fewest(&points.iter().map(|(x, y)| (f64::from(*x), f64::from(*y))).collect::<Vec<_>>())
        };
        assert_eq!(line(&[(0, 5), (3, 5), (7, 5), (9, 8), (11, 11), (11, 11)]), [(0, 5), (7, 5), (11, 11)]);
        assert_eq!(line(&[(0, 0), (9, 0), (4, 0)]), [(0, 0), (9, 0), (4, 0)]);
        assert_eq!(line(&[(1, 1), (1, 1), (1, 1)]), [(1, 1), (1, 1)]);
        let far = i32::MAX;
        assert_eq!(line(&[(0, 0), (1, 1), (far, far)]), [(0, 0), (far, far)]);
    }
}
