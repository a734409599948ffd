//! Latencies over the time of several rows.

use tactus_model::bundle::Row;
use tactus_model::number::float;

use super::axis::{Frame, Swatch};
use super::canvas::{Canvas, Figure, name};
use super::plot::{Plot, PlotAxis, PlotKind, PlotMark, PlotSeries, short};
use super::scale::{Scale, plain, time_unit, us, us_label};
use super::theme::{dashed, series};
use crate::stats::{Bin, Timeline, timeline};
use crate::units::clean;

/// Most stretches of time in a picture.
const STRETCHES: u64 = 320;

/// The lines that are drawn of each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Maximum and 99th percentile.
    MaximumAndP99,
    /// Minimum, mean and maximum, as a band with its mean.
    Band,
}

/// A horizontal line: a published or a required value.
pub struct Reference {
    /// Its words in the legend.
    pub text: String,
    /// Where, in ns.
    pub ns: u64,
}

/// Draws up to [`super::theme::SERIES`] rows over time, with reference lines.
#[must_use]
pub fn over_time(title: &str, rows: &[&Row], lines: Lines, references: &[Reference]) -> Figure {
    let timelines: Vec<Timeline> = rows.iter().map(|row| timeline(row, STRETCHES)).collect();
    let mut legend = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        let evidence = row.result.evidence.map(|e| format!(", {e}")).unwrap_or_default();
        let name = name(row) + &evidence;
        match lines {
            Lines::MaximumAndP99 => {
                legend.push((Swatch::Solid(n), format!("{name}: maximum")));
                legend.push((Swatch::Dashed(n), "p99".into()));
            }
            Lines::Band => legend.push((Swatch::Band(n), format!("{name}: min, mean, max"))),
        }
    }
    legend.extend(references.iter().map(|reference| (Swatch::Mark, reference.text.clone())));
    let frame = Frame::new(legend);
    let (x, unit, steps, scale_ns) = time_axis(&frame, &timelines);
    let (y, log) = latency_axis(&frame, &timelines, lines, references);
    let upright = if log { "latency in us, log." } else { "latency in us" };
    let across = format!("time in {unit}");
    let elements = Canvas::draw(frame.height, |canvas| {
        let across_ticks = x.time_ticks(12, steps, plain);
        frame.draw(canvas, (&x, &across_ticks, &across), (&y, &y.ticks(6, us_label), upright));
        if timelines.iter().all(|timeline| timeline.bins.is_empty()) {
            frame.nothing(canvas, "no samples");
        }
        for reference in references {
            frame.mark(canvas, y.px(us(reference.ns)));
        }
        for (n, timeline) in timelines.iter().enumerate() {
            for run in runs(timeline) {
                draw(canvas, run, timeline.width_ns, n, lines, |ns| x.px(ns / scale_ns), |us| y.px(us));
            }
        }
    });
    let axes = (
        PlotAxis { label: across, kind: PlotKind::Plain, log: false, low: 0.0, high: short(x.high()) },
        PlotAxis {
            label: "latency".into(),
            kind: PlotKind::Latency,
            log,
            low: short(y.low()),
            high: short(y.high()),
        },
    );
    let plot = plot(rows, &timelines, lines, references, axes, scale_ns);
    let plot = (!plot.at.is_empty()).then_some(plot);
    Figure { plot, ..Figure::still(title, about(rows, lines), frame.height, elements) }
}

fn time_axis(frame: &Frame, timelines: &[Timeline]) -> (Scale, &'static str, &'static [f64], f64) {
    let end = |timeline: &Timeline| {
        timeline.bins.last().map_or(0, |bin| bin.n.saturating_add(1).saturating_mul(timeline.width_ns))
    };
    let total = timelines.iter().map(end).max().unwrap_or(0).max(1);
    let (unit, scale_ns, steps) = time_unit(total);
    (Scale::new(false, 0.0, float(total) / scale_ns, frame.left, frame.right), unit, steps, scale_ns)
}

/// From 0 where the values are near each other, logarithmic where they are far apart.
fn latency_axis(frame: &Frame, of: &[Timeline], lines: Lines, references: &[Reference]) -> (Scale, bool) {
    let bins = || of.iter().flat_map(|timeline| &timeline.bins);
    let marked = || references.iter().map(|reference| reference.ns);
    let lowest = |bin: &Bin| match lines {
        Lines::MaximumAndP99 => bin.p99_ns.or(bin.max_ns),
        Lines::Band => bin.min_ns,
    };
    let low = us(bins().filter_map(lowest).chain(marked()).min().unwrap_or(0));
    let high = us(bins().filter_map(|bin| bin.max_ns).chain(marked()).max().unwrap_or(1));
    let log = high > 40.0 * low.max(0.01);
    let scale = if log {
        Scale::new(true, low.max(0.01) / 1.4, high * 1.4, frame.bottom, frame.top)
    } else {
        Scale::new(false, 0.0, high * 1.08, frame.bottom, frame.top)
    };
    (scale, log)
}

/// Stretches without a gap: a line across a gap would be an invention.
fn runs(timeline: &Timeline) -> impl Iterator<Item = &[Bin]> {
    timeline.bins.chunk_by(|a, b| a.n.checked_add(1) == Some(b.n))
}

fn draw(
    canvas: &Canvas,
    run: &[Bin],
    width_ns: u64,
    n: usize,
    lines: Lines,
    px: impl Fn(f64) -> f64,
    py: impl Fn(f64) -> f64,
) {
    let middle = |bin: &Bin| px((float(bin.n) + 0.5) * float(width_ns));
    let line = |of: &dyn Fn(&Bin) -> Option<f64>| -> Vec<(f64, f64)> {
        run.iter().filter_map(|bin| Some((middle(bin), py(of(bin)? / 1e3)))).collect()
    };
    let max = line(&|bin| bin.max_ns.map(float));
    match lines {
        Lines::MaximumAndP99 => {
            canvas.path(&line(&|bin| bin.p99_ns.map(float)), dashed(n), 2);
            canvas.path(&max, series(n), 2);
        }
        Lines::Band => {
            let min = line(&|bin| bin.min_ns.map(float));
            let area: Vec<(f64, f64)> = max.iter().chain(min.iter().rev()).copied().collect();
            canvas.fill(&area, series(n), 0.14);
            canvas.path(&min, series(n), 1);
            canvas.path(&max, series(n), 1);
            canvas.path(&line(&|bin| bin.mean_ns), series(n), 2);
        }
    }
    // Few points are shown as points; a single one would be no line at all.
    if run.len() <= 40 {
        for point in max {
            canvas.dot(point, series(n));
        }
    }
}

/// The same for a script.
fn plot(
    rows: &[&Row],
    timelines: &[Timeline],
    lines: Lines,
    references: &[Reference],
    (x, y): (PlotAxis, PlotAxis),
    scale_ns: f64,
) -> Plot {
    let places = places(timelines);
    let mut series = Vec::new();
    for (n, (row, timeline)) in rows.iter().zip(timelines).enumerate() {
        let evidence = row.result.evidence.map(|e| format!(", {e}")).unwrap_or_default();
        let name = name(row) + &evidence;
        let line = |what: &str, dash: bool, of: &dyn Fn(&Bin) -> Option<f64>| PlotSeries {
            name: format!("{name}: {what}"),
            colour: n,
            dash,
            values: places.iter().map(|ns| Some(short(of(bin_at(timeline, *ns)?)? / 1e3))).collect(),
            ..PlotSeries::default()
        };
        let max = line("maximum", false, &|bin| bin.max_ns.map(float));
        match lines {
            Lines::MaximumAndP99 => {
                series.extend([max, line("p99", true, &|bin| bin.p99_ns.map(float))]);
            }
            Lines::Band => {
                let mean = line("mean", false, &|bin| bin.mean_ns);
                series.extend([max, mean, line("minimum", true, &|bin| bin.min_ns.map(float))]);
            }
        }
    }
    let mark = |one: &Reference| PlotMark { upright: false, at: short(us(one.ns)), text: one.text.clone() };
    Plot {
        x,
        y,
        at: places.iter().map(|ns| short(float(*ns) / scale_ns)).collect(),
        series,
        marks: references.iter().map(mark).collect(),
        band: None,
    }
}

/// The middle of every stretch of any row, and one in each gap, which no line crosses.
fn places(timelines: &[Timeline]) -> Vec<u64> {
    let mut places = Vec::new();
    for timeline in timelines {
        let middle = |n: u64| n.saturating_mul(timeline.width_ns).saturating_add(timeline.width_ns / 2);
        for run in runs(timeline) {
            places.extend(run.iter().map(|bin| middle(bin.n)));
            places.extend(run.last().map(|bin| middle(bin.n.saturating_add(1))));
        }
        // Behind the last one there is no gap.
        places.pop();
    }
    places.sort_unstable();
    places.dedup();
    places
}

fn bin_at(timeline: &Timeline, ns: u64) -> Option<&Bin> {
    let n = ns / timeline.width_ns.max(1);
    timeline.bins.binary_search_by_key(&n, |bin| bin.n).ok().and_then(|at| timeline.bins.get(at))
}

fn about(rows: &[&Row], lines: Lines) -> String {
    let names: Vec<String> = rows.iter().map(|row| clean(&row.result.name)).collect();
    let what = match lines {
        Lines::MaximumAndP99 => "Maximum and 99th percentile",
        Lines::Band => "Minimum, mean and maximum",
    };
    format!("{what} over time of {}.", names.join(" and "))
}
