//! Times and who had them: a line for each, as long as the longest, its spans in the order in which they came.

use tactus_model::number::{float, whole};

use super::canvas::{Anchor, Canvas, Figure, WIDTH};
use super::scale::Scale;
use super::stacked::{Kind, fill};
use super::theme::{GRID, INK};
use crate::units::{latency, shortened};

/// Room for the names of the lines.
const NAMES: f64 = 130.0;
/// Room for the words behind them.
const WORDS: f64 = 190.0;
/// Longest words, in columns.
const LONGEST: usize = 28;
/// Height of the legend.
const LEGEND: f64 = 34.0;
/// Width of an entry of the legend without its name, and of each letter.
const ENTRY: f64 = 42.0;
const LETTER: f64 = 8.0;
/// Distance of the lines from each other.
const LINE: f64 = 22.0;
/// Below the lines: the axis.
const FOOT: f64 = 30.0;

/// A time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Its name.
    pub name: String,
    /// Its outcome, in a few words.
    pub words: String,
    /// Its spans: beginning and length in ns, and a place among the kinds.
    pub spans: Vec<(u64, u64, usize)>,
}

/// Draws the lines one below the other, in ns.
#[must_use]
pub fn timelines(title: &str, kinds: &[Kind], lines: &[Timeline]) -> Figure {
    let high = LEGEND + LINE * float(lines.len() as u64) + FOOT;
    let height = u32::try_from(whole(high)).unwrap_or(400);
    let ends = lines.iter().flat_map(|line| &line.spans).map(|(from, ns, _)| from.saturating_add(*ns));
    let longest = float(ends.max().unwrap_or(1).max(1));
    let elements = Canvas::draw(height, |canvas| {
        let used = |kind: usize| lines.iter().flat_map(|line| &line.spans).any(|span| span.2 == kind);
        let shown = kinds.iter().enumerate().filter(|(place, _)| used(*place));
        let mut left = 4.0;
        for (_, kind) in shown {
            fill(canvas, *kind, (left, left + 16.0), 14.0);
            canvas.text(kind.name, (left + 22.0, 14.0), Anchor::Start);
            left += ENTRY + LETTER * float(kind.name.len() as u64);
        }
        let x = Scale::new(false, 0.0, longest, NAMES, f64::from(WIDTH) - WORDS);
        let bottom = LEGEND + LINE * float(lines.len() as u64);
        for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let px = x.px(longest * part);
            canvas.path(&[(px, LEGEND - 4.0), (px, bottom)], GRID, 1);
            canvas.quiet(&latency(longest * part), (px, bottom + 5.0), Anchor::Below);
        }
        for (n, line) in (0_u32..).zip(lines) {
            let y = LEGEND + LINE * (f64::from(n) + 0.5) - 2.0;
            canvas.text(&shortened(&line.name, LONGEST), (NAMES - 10.0, y), Anchor::End);
            let mut end = 0.0;
            for (from, ns, kind) in &line.spans {
                end = x.px(float(*from) + float(*ns));
                if let Some(kind) = kinds.get(*kind) {
                    fill(canvas, *kind, (x.px(float(*from)), end), y);
                }
            }
            canvas.path(&[(end, y - 8.0), (end, y + 8.0)], INK, 1);
            canvas.text(
                &shortened(&line.words, LONGEST),
                (f64::from(WIDTH) - WORDS + 10.0, y),
                Anchor::Start,
            );
        }
    });
    let said: Vec<String> = lines.iter().map(|line| format!("{}: {}", line.name, line.words)).collect();
    Figure::still(title, said.join("; "), height, elements)
}

#[cfg(test)]
mod tests {
    use super::super::stacked::Shade;
    use super::*;

    #[test]
    fn a_span_stands_where_it_was_and_a_kind_that_no_line_has_in_no_legend() {
        let kinds = ["thread", "idle"].map(|name| Kind { name, colour: 0, shade: Shade::Dark });
        let line =
            Timeline { name: "1 ms".into(), words: "hog".into(), spans: vec![(0, 10, 0), (10, 990, 0)] };
        let figure = timelines("who", &kinds, &[line]);
        assert_eq!(figure.about, "1 ms: hog");
        assert!(figure.elements.contains("thread") && !figure.elements.contains("idle"));
        assert!(timelines("none", &kinds, &[]).about.is_empty());
        let huge =
            Timeline { name: String::new(), words: String::new(), spans: vec![(u64::MAX, u64::MAX, 9)] };
        assert!(!timelines("huge", &kinds, &[huge]).elements.contains("NaN"));
    }
}
