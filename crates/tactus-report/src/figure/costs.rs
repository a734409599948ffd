//! The costs of environments: a line for each item. It has a mark for each environment, with its interval:
//! how many times worse it is there than in the first.

use tactus_model::number::{float, whole};

use super::canvas::{Anchor, Canvas, Figure, WIDTH};
use super::mark::mark;
use super::scale::{Scale, plain};
use super::theme::{GRID, MUTED, SERIES, series};
use crate::units::{columns, number, shortened};

/// Room for the names.
const NAMES: f64 = 300.0;
/// At the right edge.
const EDGE: f64 = 24.0;
/// Longest name, in columns.
const LONGEST: usize = 42;
/// Longest name of the scenario behind it.
const SCENARIO: usize = 16;
/// The first line of the legend.
const LEGEND: f64 = 13.0;
/// Distance of the lines from each other.
const LINE: f64 = 17.0;
/// Below the last line: the axis and its name.
const FOOT: f64 = 48.0;
/// Larger effects in either direction are drawn at the edge: no axis reaches further. Even those of an
/// emulated processor lie within.
const ENDS: (f64, f64) = (1e-3, 1e6);
/// From a mark of the legend to its name.
const MARK: f64 = 14.0;
/// Between two of its entries.
const GAP: f64 = 20.0;
/// Width of a letter of the legend, about.
const LETTER: f64 = 7.2;

/// An item.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Its name.
    pub name: String,
    /// The scenario in which it was measured; empty if there is only one.
    pub scenario: String,
    /// How much worse it is in each environment that has it.
    pub times: Vec<Times>,
}

/// How many times worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Number of the environment.
    pub place: usize,
    /// The estimate.
    pub estimate: f64,
    /// Lower and upper end of its interval.
    pub interval: Option<(f64, f64)>,
    /// Whether it is shown to differ from 1: such marks are full.
    pub shown: bool,
}

/// Draws them, each environment in its colour and shape.
#[must_use]
pub fn costs(title: &str, places: &[String], all: &[Cost]) -> Figure {
    let legend = legend(places);
    let head = legend.last().map_or(LEGEND, |(_, y)| *y) + 21.0;
    let bottom = head + LINE * float(all.len() as u64);
    let height = u32::try_from(whole(bottom + FOOT)).unwrap_or(400);
    let (left, right) = (NAMES, f64::from(WIDTH) - EDGE);
    let times = || all.iter().flat_map(Cost::drawn).flat_map(Times::ends);
    let within = |value: f64| value.clamp(ENDS.0, ENDS.1);
    let low = times().map(within).fold(0.9, f64::min);
    let high = times().map(within).fold(1.1, f64::max);
    let x = Scale::new(true, low / 1.05, high * 1.05, left, right);
    let elements = Canvas::draw(height, |canvas| {
        for tick in x.ticks(11, plain) {
            let px = x.px(tick.value);
            canvas.path(&[(px, head - 6.0), (px, bottom)], GRID, 1);
            canvas.quiet(&tick.label, (px, bottom + 5.0), Anchor::Below);
        }
        canvas.path(&[(x.px(1.0), head - 6.0), (x.px(1.0), bottom)], MUTED, 2);
        let name = "times worse than in the first environment (1: as there; log.)";
        canvas.text(name, (f64::midpoint(left, right), bottom + 24.0), Anchor::Below);
        for (n, (place, (at, y))) in places.iter().zip(&legend).enumerate() {
            mark(canvas, (at + MARK / 3.0, *y), n, true);
            canvas.text(place, (at + MARK, *y), Anchor::Start);
        }
        for (n, cost) in (0_u32..).zip(all) {
            let y = head + LINE * (f64::from(n) + 0.5);
            canvas.text(&cost.label(), (left - 12.0, y), Anchor::End);
            for of in cost.drawn() {
                if let Some((low, high)) = of.interval {
                    canvas.path(&[(x.px(low), y), (x.px(high), y)], series(of.place % SERIES), 1);
                }
                mark(canvas, (x.px(of.estimate), y), of.place, of.shown);
            }
        }
    });
    let said = all.iter().flat_map(|cost| cost.drawn().map(move |of| said(places, cost, of)));
    Figure::still(title, said.collect::<Vec<String>>().join("; "), height, elements)
}

impl Cost {
    /// The costs that can be drawn.
    fn drawn(&self) -> impl Iterator<Item = &Times> {
        self.times.iter().filter(|of| of.ends().iter().all(|end| end.is_finite()))
    }

    /// Its name, however long its parts are.
    fn label(&self) -> String {
        if self.scenario.is_empty() {
            return shortened(&self.name, LONGEST);
        }
        let scenario = shortened(&self.scenario, SCENARIO);
        format!("{}, {scenario}", shortened(&self.name, LONGEST - SCENARIO))
    }

    fn full_name(&self) -> String {
        if self.scenario.is_empty() { self.name.clone() } else { format!("{}, {}", self.name, self.scenario) }
    }
}

impl Times {
    /// From where to where it reaches.
    fn ends(&self) -> [f64; 3] {
        let (low, high) = self.interval.unwrap_or((self.estimate, self.estimate));
        [self.estimate, low, high]
    }
}

/// Where each entry of the legend begins: from the left edge, line by line.
fn legend(places: &[String]) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (EDGE, LEGEND);
    let of = |place: &String| {
        let wide = MARK + LETTER * float(columns(place) as u64);
        if x > EDGE && x + wide > f64::from(WIDTH) - EDGE {
            (x, y) = (EDGE, y + LINE);
        }
        let at = (x, y);
        x += wide + GAP;
        at
    };
    places.iter().map(of).collect()
}

fn said(places: &[String], cost: &Cost, of: &Times) -> String {
    let place = places.get(of.place).map_or("", String::as_str);
    let range = of.interval.map(|(low, high)| format!(" ({} to {})", number(low), number(high)));
    format!("{}, {place}: x{}{}", cost.full_name(), number(of.estimate), range.unwrap_or_default())
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
        Cost { name: name.into(), scenario: String::new(), times: times.iter().map(of).collect() }
    }

    #[test]
    fn every_item_has_a_line_and_every_environment_a_mark() {
        let all =
            [cost("system call", &[(0, 1.02, false), (1, 30.0, true)]), cost("copy", &[(1, 2.0, true)])];
        let places = ["container".to_owned(), "guest (EMULATED)".to_owned()];
        let figure = costs("costs", &places, &all);
        let svg = figure.svg();
        for text in ["system call", "copy", "container", "guest (EMULATED)", "times worse"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(figure.about.contains("system call, guest (EMULATED): x30 (27 to 33)"), "{}", figure.about);
        let full = |svg: &str| svg.matches("<polygon").count();
        assert_eq!(full(&svg), 2 + 2, "two of the legend, two that are shown");
    }

    #[test]
    fn absurd_numbers_and_none_at_all_are_drawn() {
        let absurd = cost("absurd", &[(7, f64::INFINITY, true), (8, 1e-300, false), (9, f64::NAN, true)]);
        let svg = costs("", &[], &[absurd]).svg();
        assert!(!svg.contains("NaN") && svg.contains("absurd"), "{svg}");
        assert!(costs("", &[], &[]).svg().contains("times worse"));
    }

    #[test]
    fn what_an_emulated_processor_costs_is_drawn_where_it_belongs_and_not_at_an_edge() {
        let all = [cost("exit", &[(0, 20_000.0, true)]), cost("less", &[(0, 2_000.0, true)])];
        let svg = costs("", &["guest".to_owned()], &all).svg();
        // The legend's, and one for each item.
        let across = |points: &str| points.split([',', ' ']).next().unwrap().parse::<f64>().unwrap();
        let marks: Vec<f64> = svg
            .split("<polygon")
            .skip(1)
            .filter_map(|rest| rest.split("points=\"").nth(1)?.split('"').next())
            .map(across)
            .collect();
        assert_eq!(marks.len(), 3, "{marks:?}");
        // A decade apart, of less than five that are drawn.
        assert!(marks[1] - marks[2] > 100.0, "{marks:?}");
    }

    #[test]
    fn a_long_legend_begins_at_the_left_edge_and_continues_on_another_line() {
        let places: Vec<String> = (0..9).map(|n| format!("an environment with a long name {n}")).collect();
        let at = legend(&places);
        assert_eq!(at[0], (EDGE, LEGEND));
        assert!(at.iter().filter(|(x, _)| *x <= EDGE).count() > 2, "{at:?}");
        let wide = |place: &String| MARK + LETTER * float(columns(place) as u64);
        assert!(places.iter().zip(&at).all(|(place, (x, _))| x + wide(place) <= f64::from(WIDTH) - EDGE));
        assert!(
            at.windows(2).all(|pair| pair[1].1 > pair[0].1 || pair[1].0 > pair[0].0),
            "none lies on another"
        );
        // The lines of the items begin below it.
        let heights = [&places[..1], &places[..]].map(|places| costs("", places, &[]).height);
        assert!(heights[1] > heights[0]);
    }

    #[test]
    fn lines_of_one_item_in_several_scenarios_are_told_apart_however_long_its_name_is() {
        let long = "sequential latency, 2 MiB pages, and what else there is to say of it";
        let of = |scenario: &str| Cost { scenario: scenario.into(), ..cost(long, &[(0, 2.0, true)]) };
        let all = [of("idle"), of("loaded")];
        let labels = all.each_ref().map(Cost::label);
        assert_ne!(labels[0], labels[1]);
        assert!(labels.iter().all(|label| columns(label) <= LONGEST + 2), "{labels:?}");
        let about = costs("", &["guest".to_owned()], &all).about;
        assert!(about.contains(&format!("{long}, loaded, guest: x2 ")), "{about}");
    }
}
