//! Items that were measured at several points: a line for each, both axes logarithmic where the values are far apart.

use tactus_model::number::float;

use super::axis::{Frame, Swatch};
use super::canvas::{Anchor, Canvas, Figure};
use super::plot::{Plot, PlotAxis, PlotKind, PlotMark, PlotSeries, short};
use super::scale::{Scale, Tick, plain};
use super::theme::{MARK, SERIES, dashed, series};
use crate::units::number;

/// The most lines of one figure: solid ones, then dashed ones.
pub const CURVES: usize = 2 * SERIES;
/// The most ticks of the axis across.
const TICKS: usize = 12;
/// How many times the smallest value the largest must be for a logarithmic axis.
const FAR_APART: f64 = 8.0;

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Where it was measured, and the value there, from left to right.
    pub points: Vec<(u64, f64)>,
}

/// The axes.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// The amount that was varied.
    pub across: &'a str,
    /// An amount of it.
    pub label: fn(u64) -> String,
    /// How a script writes it.
    pub kind: PlotKind,
    /// The measured quantity.
    pub upright: &'a str,
}

/// Draws up to [`CURVES`] lines, with upright marks at some amounts.
#[must_use]
pub fn curves(title: &str, axes: Axes<'_>, lines: &[Curve], marks: &[(u64, String)]) -> Figure {
    let swatch = |n| if n < SERIES { Swatch::Solid(n) } else { Swatch::Dashed(n) };
    let legend = lines.iter().enumerate().map(|(n, line)| (swatch(n), line.name.clone())).collect();
    let frame = Frame::new(legend);
    let mut amounts: Vec<u64> = lines.iter().flat_map(|line| &line.points).map(|(at, _)| *at).collect();
    amounts.sort_unstable();
    amounts.dedup();
    let end = |at: Option<&u64>| float(at.copied().unwrap_or(1).max(1));
    let x = Scale::new(true, end(amounts.first()), end(amounts.last()), frame.left, frame.right);
    let (y, log) = upright(&frame, lines);
    let ticks: Vec<Tick> = amounts
        .iter()
        .step_by(amounts.len().div_ceil(TICKS).max(1))
        .map(|at| Tick { value: float(*at), label: (axes.label)(*at) })
        .collect();
    let name = if log { format!("{}, log.", axes.upright) } else { axes.upright.to_owned() };
    let elements = Canvas::draw(frame.height, |canvas| {
        frame.draw(canvas, (&x, &ticks, axes.across), (&y, &y.ticks(8, plain), &name));
        for (at, text) in
            marks.iter().filter(|(at, _)| amounts.first() < Some(at) && Some(at) < amounts.last())
        {
            let px = x.px(float(*at));
            canvas.path(&[(px, frame.top), (px, frame.bottom)], MARK, 1);
            canvas.quiet(text, (px - 4.0, frame.top + 8.0), Anchor::End);
        }
        for (n, line) in lines.iter().enumerate() {
            let points: Vec<(f64, f64)> =
                line.points.iter().map(|(at, value)| (x.px(float(*at)), y.px(*value))).collect();
            canvas.path(&points, if n < SERIES { series(n) } else { dashed(n) }, 2);
            points.iter().for_each(|point| canvas.dot(*point, series(n)));
        }
    });
    let said: Vec<String> = lines.iter().map(|line| said(axes, line)).collect();
    let plot = plot(axes, lines, &amounts, (&x, &y, log), marks);
    Figure { plot, ..Figure::still(title, said.join("; "), frame.height, elements) }
}

fn upright(frame: &Frame, lines: &[Curve]) -> (Scale, bool) {
    let values = || lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let log = low > 0.0 && high > FAR_APART * low;
    let (low, high) = if log { (low / 1.3, high * 1.3) } else { (0.0, high * 1.08) };
    (Scale::new(log, low, high, frame.bottom, frame.top), log)
}

/// The same for a script.
fn plot(
    axes: Axes<'_>,
    lines: &[Curve],
    amounts: &[u64],
    (x, y, log): (&Scale, &Scale, bool),
    marks: &[(u64, String)],
) -> Option<Plot> {
    let value = |line: &Curve, at: u64| {
        let from = line.points.partition_point(|(own, _)| *own < at);
        let found = line.points.get(from).filter(|(own, _)| *own == at);
        found.map(|(_, value)| short(*value))
    };
    let series = lines.iter().enumerate().map(|(n, line)| PlotSeries {
        name: line.name.clone(),
        colour: n % SERIES,
        dash: n >= SERIES,
        points: true,
        values: amounts.iter().map(|at| value(line, *at)).collect(),
        ..PlotSeries::default()
    });
    let low = |of: &Scale| short(of.low());
    let axis = |label: &str, kind, log, of: &Scale| PlotAxis {
        label: label.to_owned(),
        kind,
        log,
        low: low(of),
        high: short(of.high()),
    };
    (amounts.len() > 1 && amounts[0] > 0).then(|| Plot {
        x: axis(axes.across, axes.kind, true, x),
        y: axis(axes.upright, PlotKind::Plain, log, y),
        at: amounts.iter().map(|at| float(*at)).collect(),
        series: series.collect(),
        marks: marks
            .iter()
            .map(|(at, text)| PlotMark { upright: true, at: float(*at), text: text.clone() })
            .collect(),
        band: None,
    })
}

fn said(axes: Axes<'_>, line: &Curve) -> String {
    let end = |point: Option<&(u64, f64)>| {
        point.map_or_else(String::new, |(at, value)| format!("{} at {}", number(*value), (axes.label)(*at)))
    };
    format!("{}: {} to {}", line.name, end(line.points.first()), end(line.points.last()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, values: &[f64]) -> Curve {
        Curve {
            name: name.into(),
            points: (10..).map(|power| 1 << power).zip(values.iter().copied()).collect(),
        }
    }

    const AXES: Axes<'static> = Axes {
        across: "array",
        label: |at| format!("{at}B"),
        kind: PlotKind::Bytes,
        upright: "latency in ns",
    };

    #[test]
    fn every_line_stands_in_the_legend_and_marks_only_within_the_axis() {
        let lines = [curve("host", &[1.0, 4.0, 90.0]), curve("guest", &[1.0, 5.0, 600.0])];
        let marks = [(1500, "L1".to_owned()), (1 << 30, "L9".to_owned())];
        let figure = curves("random", AXES, &lines, &marks);
        let svg = figure.svg();
        for text in ["host", "guest", "L1", "1024B", "4096B", "latency in ns, log."] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("L9"));
        let plot = figure.plot.unwrap();
        assert_eq!(plot.at, [1024.0, 2048.0, 4096.0]);
        let values: Vec<_> = plot.series.iter().map(|of| (of.name.as_str(), of.values[2])).collect();
        assert_eq!(values, [("host", Some(90.0)), ("guest", Some(600.0))]);
        assert_eq!(figure.about, "host: 1 at 1024B to 90 at 4096B; guest: 1 at 1024B to 600 at 4096B");
    }

    #[test]
    fn values_near_each_other_begin_at_zero_and_nothing_at_all_is_drawn_too() {
        assert!(!curves("", AXES, &[curve("a", &[1.0, 2.0])], &[]).svg().contains("log."));
        assert!(curves("", AXES, &[], &[]).svg().contains("array"));
        let absurd = [Curve { name: String::new(), points: vec![(0, f64::NAN), (u64::MAX, f64::INFINITY)] }];
        assert!(curves("", AXES, &absurd, &[]).svg().len() > 100);
    }
}
