//! All figures one below the other, in one SVG file that looks the same everywhere.

use std::fmt::Write;

use tactus_model::bundle::Contents;

use crate::figure::{FONT, Figure, standalone};
use crate::units::{clean, moment};
use crate::walkthrough::figures;

/// Distance of the figures from the edge.
const MARGIN: u32 = 20;
/// Room for a heading.
const HEADING: u32 = 34;
/// Room for the name of the run.
const TITLE: u32 = 64;

/// A drawing and its size in pixels.
pub struct Drawing {
    /// The SVG document.
    pub svg: String,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

/// The figures of the plan's pages, then those of the sections.
#[must_use]
pub fn render(contents: &Contents) -> String {
    draw(contents).svg
}

/// As [`render`], with the size.
#[must_use]
pub fn draw(contents: &Contents) -> Drawing {
    let figures = figures(contents);
    let width = figures.iter().map(|figure| figure.width).max().unwrap_or(900) + 2 * MARGIN;
    let height = TITLE + figures.iter().map(|figure| figure.height + HEADING + MARGIN).sum::<u32>() + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let plan = &contents.plan;
    let title = plan.title.as_deref().unwrap_or(&contents.manifest.plan);
    heading(&mut svg, 30, 18, title);
    let machine = &contents.manifest.machine;
    let under = format!("{} · {} · {}", machine.name, machine.kernel, moment(&contents.manifest.started));
    let _ = writeln!(
        svg,
        "<text x=\"{MARGIN}\" y=\"50\" font-size=\"12\" fill=\"#5a6572\">{}</text>",
        escaped(&crate::units::shortened(&clean(&under), 125))
    );
    if figures.is_empty() {
        heading(&mut svg, TITLE + 10, 14, "Nothing was measured: there is nothing to draw.");
    }
    let mut y = TITLE;
    for figure in &figures {
        heading(&mut svg, y + 22, 15, &figure.title);
        svg.push_str(&nested(figure, y + HEADING));
        y += HEADING + figure.height + MARGIN;
    }
    svg.push_str("</svg>\n");
    Drawing { svg, width, height: height.max(TITLE + 2 * MARGIN) }
}

fn heading(svg: &mut String, y: u32, size: u32, text: &str) {
    let text = escaped(&crate::units::shortened(&clean(text), 95));
    let _ = writeln!(
        svg,
        "<text x=\"{MARGIN}\" y=\"{y}\" font-size=\"{size}\" font-weight=\"bold\" fill=\"#1d2530\">{text}</text>"
    );
}

fn nested(figure: &Figure, y: u32) -> String {
    format!(
        "<svg x=\"{MARGIN}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" {FONT}>\n<title>{about}</title>\n{elements}</svg>\n",
        w = figure.width,
        h = figure.height,
        about = escaped(&figure.about),
        elements = standalone(&figure.elements),
    )
}

/// Text as XML takes it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
