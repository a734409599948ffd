//! Latency distributions of several rows on one axis, with a logarithmic count.

use tactus_model::bundle::Row;
use tactus_model::number::float;
use tactus_statistics::Bins;

use super::axis::{Frame, Swatch};
use super::canvas::{Canvas, Figure, name};
use super::plot::{Plot, PlotAxis, PlotKind, PlotSeries, short};
use super::scale::{Scale, count_label, us, us_label};
use super::theme::{SERIES, dashed, series};
use crate::stats::distribution;
use crate::units::{clean, latency};

/// Draws the distributions of up to twice [`SERIES`] rows; the second half is dashed.
#[must_use]
pub fn histograms(title: &str, rows: &[&Row]) -> Figure {
    let bins = distribution(rows);
    let legend = rows.iter().enumerate().map(|(n, row)| {
        let swatch = if n < SERIES { Swatch::Band(n) } else { Swatch::Dashed(n) };
        (swatch, named(row))
    });
    let frame = Frame::new(legend.collect());
    let (low, high) = (bins.edges.first().copied().unwrap_or(1), bins.edges.last().copied().unwrap_or(2));
    let (left, right) = margins(us(low), us(high), bins.logarithmic);
    let x = Scale::new(bins.logarithmic, left, right, frame.left, frame.right);
    let most = bins.counts.iter().flatten().copied().max().unwrap_or(1);
    // From below one, so that a single sample stands above the axis.
    let y = Scale::new(true, 0.6, float(most.max(10)) * 1.3, frame.bottom, frame.top);
    let across = if bins.logarithmic { "latency in us, logarithmic" } else { "latency in us" };
    let counts = |row: &&Row| row.result.measurement.entry().counts;
    let unit = rows.iter().find_map(counts).unwrap_or("samples");
    let elements = Canvas::draw(frame.height, |canvas| {
        let upright = format!("{unit} per bin");
        frame.draw(canvas, (&x, &x.ticks(10, us_label), across), (&y, &y.ticks(6, count_label), &upright));
        if bins.edges.is_empty() {
            frame.nothing(canvas, "no samples");
        }
        for (n, counts) in bins.counts.iter().enumerate() {
            for outline in outlines(&bins, counts, &x, &y) {
                if n < SERIES {
                    canvas.fill(&outline, series(n), 0.12);
                    canvas.path(&outline, series(n), 2);
                } else {
                    canvas.path(&outline, dashed(n), 2);
                }
            }
            if let Some(max) = largest(rows[n]).filter(|_| !bins.edges.is_empty()) {
                frame.pin(canvas, x.px(us(max)), n);
            }
        }
    });
    let plot = plot(&bins, rows, unit, (left, right), float(most.max(10)) * 1.3);
    Figure { plot, ..Figure::still(title, about(rows), frame.height, elements) }
}

/// Ends of the axis, with a little room beside the first and the last bin.
fn margins(low: f64, high: f64, logarithmic: bool) -> (f64, f64) {
    if logarithmic {
        let room = (high / low).powf(0.015);
        (low / room, high * room)
    } else {
        let room = (high - low) * 0.015;
        ((low - room).max(0.0), high + room)
    }
}

/// An outline for every stretch of bins that hold something, from the axis and back to it: a line
/// along the axis would look like counts.
fn outlines(bins: &Bins, counts: &[u64], x: &Scale, y: &Scale) -> Vec<Vec<(f64, f64)>> {
    let filled: Vec<(&[u64], u64)> = bins.edges.windows(2).zip(counts.iter().copied()).collect();
    let floor = y.px(0.0);
    filled
        .chunk_by(|(_, a), (_, b)| (*a == 0) == (*b == 0))
        .filter(|run| run.iter().all(|(_, count)| *count > 0))
        .map(|run| {
            let steps = run.iter().flat_map(|(edges, count)| {
                let py = y.px(float(*count));
                [(x.px(us(edges[0])), py), (x.px(us(edges[1])), py)]
            });
            let steps: Vec<(f64, f64)> = steps.collect();
            let ends = |point: Option<&(f64, f64)>| point.map(|(px, _)| (*px, floor));
            let (first, last) = (ends(steps.first()), ends(steps.last()));
            first.into_iter().chain(steps).chain(last).collect()
        })
        .collect()
}

fn largest(row: &Row) -> Option<u64> {
    row.result.all().and_then(|all| all.max_ns)
}

/// A row's name, its evidence and its largest latency.
fn named(row: &Row) -> String {
    let maximum = largest(row).map(|max| format!(" (max {})", latency(float(max)))).unwrap_or_default();
    let evidence = row.result.evidence.map(|e| format!(", {e}")).unwrap_or_default();
    format!("{}{evidence}{maximum}", name(row))
}

/// The same for a script; `None` without any data.
fn plot(bins: &Bins, rows: &[&Row], unit: &str, (low, high): (f64, f64), most: f64) -> Option<Plot> {
    let series = rows.iter().zip(&bins.counts).enumerate().map(|(n, (row, counts))| {
        let drawn = counts.iter().map(|count| (*count > 0).then(|| float(*count)));
        PlotSeries {
            name: named(row),
            colour: n % SERIES,
            dash: n >= SERIES,
            steps: true,
            // The last edge is an end, and no bin.
            values: drawn.chain([None]).collect(),
            ..PlotSeries::default()
        }
    });
    (!bins.edges.is_empty()).then(|| Plot {
        x: PlotAxis {
            label: "latency".into(),
            kind: PlotKind::Latency,
            log: bins.logarithmic,
            low: short(low),
            high: short(high),
        },
        y: PlotAxis {
            label: format!("{unit} per bin"),
            kind: PlotKind::Count,
            log: true,
            low: 0.6,
            high: short(most),
        },
        at: bins.edges.iter().map(|ns| us(*ns)).collect(),
        series: series.collect(),
        marks: Vec::new(),
        band: None,
    })
}

fn about(rows: &[&Row]) -> String {
    format!("Distribution of latencies of {}; the mark on the axis is the largest value.", name_of_all(rows))
}

/// The names of rows in one phrase.
pub(super) fn name_of_all(rows: &[&Row]) -> String {
    let names: Vec<String> = rows.iter().map(|row| clean(&row.result.name)).collect();
    names.join(" and ")
}
