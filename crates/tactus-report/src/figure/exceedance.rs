//! Share of wake-ups at least this late, several rows on one pair of logarithmic axes, with the deadline.

use tactus_model::bundle::Row;
use tactus_model::number::float;
use tactus_statistics::Exceedance;

use super::axis::{Frame, Swatch};
use super::canvas::{Canvas, Figure, name};
use super::mark::mark;
use super::over_time::Reference;
use super::plot::{Plot, PlotAxis, PlotKind, PlotMark, PlotSeries, short};
use super::scale::{Scale, Tick, us, us_label};
use super::theme::{MARK, SERIES, dashed, series};
use crate::row::{Quantity, figures};
use crate::stats::exceedance;
use crate::units::{clean, latency, latency_or_none};

/// Where a logarithmic axis of latencies begins at the lowest: half a nanosecond, in us.
const LEAST_US: f64 = 0.000_5;

/// Draws up to twice [`SERIES`] rows, the second half dashed, with upright lines where deadlines are.
#[must_use]
pub fn exceedances(title: &str, rows: &[&Row], deadlines: &[Reference]) -> Figure {
    let found = exceedance(rows);
    let swatch = |n| if n < SERIES { Swatch::Solid(n) } else { Swatch::Dashed(n) };
    let legend = named(rows).into_iter().enumerate().map(|(n, name)| (swatch(n), name));
    let marks = deadlines.iter().map(|reference| (Swatch::Mark, reference.text.clone()));
    let mut frame = Frame::new(legend.chain(marks).collect());
    // "1 in 100k" is longer than a number.
    frame.left += 18.0;
    let asked = || deadlines.iter().map(|reference| us(reference.ns));
    let low = found.at_ns.first().map_or(1.0, |ns| us(*ns));
    let high = found.at_ns.last().map_or(10.0, |ns| us(*ns));
    // A latency of zero has no place on a logarithmic axis: it is drawn at the end.
    let low = (asked().fold(low, f64::min) / 1.15).max(LEAST_US);
    let high = asked().fold(high, f64::max) * 1.15;
    let x = Scale::new(true, low, high, frame.left, frame.right);
    // One in N: from all at the top to one of all at the bottom.
    let most = (1.0 / found.least).max(10.0) * 1.4;
    let y = Scale::new(true, 1.0, most, frame.top, frame.bottom);
    let elements = Canvas::draw(frame.height, |canvas| {
        let across = "latency in us, log.";
        frame.draw(
            canvas,
            (&x, &x.ticks(10, us_label), across),
            (&y, &one_in(most), "share at least this late, log."),
        );
        if found.at_ns.is_empty() {
            frame.nothing(canvas, "no samples");
        }
        for reference in deadlines {
            let px = x.px(us(reference.ns));
            canvas.path(&[(px, frame.top), (px, frame.bottom)], MARK, 2);
        }
        for (n, own) in found.parts.iter().enumerate() {
            let colour = if n < SERIES { series(n) } else { dashed(n) };
            let points = outline(&found, own, &x, &y);
            canvas.path(&points, colour, 2);
            if let Some(end) = points.last() {
                // Where the largest lies: by its shape, not by its colour alone.
                mark(canvas, *end, n, true);
            }
        }
    });
    let plot = Some(plot(rows, deadlines, &found, (low, high), most));
    Figure { plot, ..Figure::still(title, about(rows, deadlines), frame.height, elements) }
}

/// The same for a script.
fn plot(rows: &[&Row], deadlines: &[Reference], found: &Exceedance, ends: (f64, f64), most: f64) -> Plot {
    let series = named(rows).into_iter().zip(&found.parts).enumerate().map(|(n, (name, own))| PlotSeries {
        name,
        colour: n % SERIES,
        dash: n >= SERIES,
        values: own.iter().map(|part| part.map(short)).collect(),
        ..PlotSeries::default()
    });
    Plot {
        x: PlotAxis {
            label: "latency".into(),
            kind: PlotKind::Latency,
            log: true,
            low: short(ends.0),
            high: short(ends.1),
        },
        y: PlotAxis {
            label: "share at least this late".into(),
            kind: PlotKind::Part,
            log: true,
            low: short(1.0 / most),
            high: 1.0,
        },
        at: found.at_ns.iter().map(|ns| us(*ns).max(short(ends.0))).collect(),
        series: series.collect(),
        marks: deadlines
            .iter()
            .map(|one| PlotMark { upright: true, at: us(one.ns), text: one.text.clone() })
            .collect(),
        band: None,
    }
}

/// The names of the lines: with the environment, where a scenario has several of them.
fn named(rows: &[&Row]) -> Vec<String> {
    let of = |row: &&Row| {
        let same = rows.iter().filter(|other| other.result.name == row.result.name).count();
        let place = match same {
            0 | 1 => String::new(),
            _ => format!(", {}", clean(&row.result.environment_key())),
        };
        let evidence = row.result.evidence.map(|e| format!(", {e}")).unwrap_or_default();
        format!("{}{place}{evidence}", name(row))
    };
    rows.iter().map(of).collect()
}

fn outline(found: &Exceedance, own: &[Option<f64>], x: &Scale, y: &Scale) -> Vec<(f64, f64)> {
    let points = found.at_ns.iter().zip(own);
    points.filter_map(|(ns, part)| Some((x.px(us(*ns)), y.px(1.0 / (*part)?)))).collect()
}

/// Ticks at one in 1, 10, 100 and so on; of many every second or third.
fn one_in(most: f64) -> Vec<Tick> {
    let powers = (0..20).take_while(|power| 10_f64.powi(*power) <= most).collect::<Vec<i32>>();
    let label = |power: i32| match power {
        0 => "all".to_owned(),
        1 | 2 => format!("1 in {}", 10_u32.pow(u32::try_from(power).unwrap_or(0))),
        3..=5 => format!("1 in {}k", 10_u32.pow(u32::try_from(power - 3).unwrap_or(0))),
        6..=8 => format!("1 in {}M", 10_u32.pow(u32::try_from(power - 6).unwrap_or(0))),
        _ => format!("1 in 1e{power}"),
    };
    let every = powers.len().div_ceil(7).max(1);
    powers
        .iter()
        .step_by(every)
        .map(|power| Tick { value: 10_f64.powi(*power), label: label(*power) })
        .collect()
}

/// The same in words: median, p99.9 and maximum of each.
fn about(rows: &[&Row], deadlines: &[Reference]) -> String {
    let of = |row: &&Row| {
        let all = figures(&row.result)?;
        let value = |of: Quantity| latency_or_none(of.of(all));
        Some(format!(
            "{}: median {}, p99.9 {}, maximum {}",
            clean(&row.result.name),
            value(Quantity::P50),
            value(Quantity::P999),
            value(Quantity::Maximum)
        ))
    };
    let asked = deadlines.iter().map(|one| format!("{} ({})", one.text, latency(float(one.ns))));
    rows.iter().filter_map(of).chain(asked).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_say_one_in_how_many_and_stay_few() {
        let labels = |most| one_in(most).into_iter().map(|tick| tick.label).collect::<Vec<_>>();
        assert_eq!(labels(2e3), ["all", "1 in 10", "1 in 100", "1 in 1k"]);
        assert!(labels(1e12).len() <= 7);
    }

    #[test]
    fn nothing_at_all_is_drawn_too() {
        assert!(exceedances("", &[], &[]).svg().contains("no samples"));
    }
}
