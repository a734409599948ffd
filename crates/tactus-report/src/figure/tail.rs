//! The tail of a row: the level that is exceeded once in a time, with its band; how well the law fits; and how its shape
//! depends on the threshold.

use tactus_model::number::float;
use tactus_statistics::tail::{Bound, Level, Tail};

use super::axis::{Frame, Swatch};
use super::canvas::{Canvas, Figure, Hover, Spot, tenth};
use super::plot::{Plot, PlotAxis, PlotKind, PlotMark, PlotSeries, short};
use super::scale::{Scale, Tick, plain, us_label};
use super::theme::{GRID, MARK, series};
use crate::units::{duration, latency};

/// Most dots of a picture: those of the largest values.
const DOTS: usize = 400;

/// Times that people speak of, in ns.
const TIMES: [u64; 16] = [
    1_000_000_000,
    10_000_000_000,
    60_000_000_000,
    600_000_000_000,
    3_600_000_000_000,
    21_600_000_000_000,
    86_400_000_000_000,
    604_800_000_000_000,
    2_592_000_000_000_000,
    31_536_000_000_000_000,
    315_360_000_000_000_000,
    100_000_000,
    10_000_000,
    1_000_000,
    100_000,
    10_000,
];

/// The level that is exceeded once in a time: the measured levels as dots, the law as a line, its 95 %
/// interval as a band.
#[must_use]
pub fn return_levels(title: &str, bound: &Bound, limit_ns: Option<u64>) -> Figure {
    let tail = &bound.tail;
    let legend = [
        (Swatch::Band(0), "exceeded once in this time: estimate, and 95 % interval".to_owned()),
        (Swatch::Solid(1), "measured".to_owned()),
    ];
    let mark = limit_ns.map(|ns| (Swatch::Mark, format!("required: {}", latency(float(ns)))));
    let frame = Frame::new(legend.into_iter().chain(mark).collect());
    let curve = bound.levels();
    let (first, last) = (curve[0].time_ns, curve[curve.len() - 1].time_ns);
    let x = Scale::new(true, first, last, frame.left, frame.right);
    let measured = measured(tail);
    let most = curve.iter().map(|at| at.high_ns).chain(limit_ns.map(float)).fold(bound.observed_ns, f64::max);
    let log = most > 20.0 * tail.threshold;
    let low = if log { tail.threshold / 1e3 / 1.2 } else { 0.0 };
    let y = Scale::new(log, low, most / 1e3 * if log { 1.3 } else { 1.05 }, frame.bottom, frame.top);
    let ticks: Vec<Tick> = TIMES
        .iter()
        .filter(|ns| float(**ns) >= first && float(**ns) <= last * 1.001)
        .map(|ns| Tick { value: float(*ns), label: duration(*ns) })
        .collect();
    let name = if log { "latency in us, log." } else { "latency in us" };
    let elements = Canvas::draw(frame.height, |canvas| {
        frame.draw(canvas, (&x, &ticks, "time, log."), (&y, &y.ticks(6, us_label), name));
        let at = |time: f64, ns: f64| (x.px(time), y.px(ns / 1e3));
        let upper = curve.iter().map(|one| at(one.time_ns, one.high_ns));
        let lower = curve.iter().rev().map(|one| at(one.time_ns, one.low_ns));
        canvas.fill(&upper.chain(lower).collect::<Vec<_>>(), series(0), 0.22);
        let line: Vec<(f64, f64)> = curve.iter().map(|one| at(one.time_ns, one.estimate_ns)).collect();
        canvas.path(&line, series(0), 2);
        for (time, ns) in measured.iter().filter(|(time, _)| *time >= first) {
            canvas.dot(at(*time, *ns), series(1));
        }
        if let Some(ns) = limit_ns {
            frame.mark(canvas, y.px(float(ns) / 1e3));
        }
    });
    let spots = curve.iter().map(|one| Spot {
        x: tenth(x.px(one.time_ns)),
        text: vec![
            format!("once in {}", duration(tactus_model::number::whole(one.time_ns))),
            format!("{} ({} to {})", latency(one.estimate_ns), latency(one.low_ns), latency(one.high_ns)),
        ],
    });
    let about = format!(
        "Exceeded once in {}: {} (95 %: {} to {}).",
        duration(bound.horizon_ns),
        latency(bound.estimate_ns),
        latency(bound.level.low),
        latency(bound.level.high)
    );
    let still = figure(title, about, &frame, elements, spots.collect());
    let ends = (if log { low.max(1e-3) } else { low }, most / 1e3 * if log { 1.3 } else { 1.05 });
    let plot = level_plot(tail, &curve, &measured, (first, last), (log, ends), limit_ns);
    Figure { plot: Some(plot), ..still }
}

/// The same for a script: times in seconds, levels in us.
fn level_plot(
    tail: &Tail,
    curve: &[Level],
    measured: &[(f64, f64)],
    (first, last): (f64, f64),
    (log, (low, high)): (bool, (f64, f64)),
    limit_ns: Option<u64>,
) -> Plot {
    let seen: Vec<(f64, f64)> = measured.iter().copied().filter(|(time, _)| *time >= first).collect();
    let mut times: Vec<f64> = curve.iter().map(|at| at.time_ns).chain(seen.iter().map(|at| at.0)).collect();
    times.sort_by(f64::total_cmp);
    times.dedup_by(|one, other| *one / *other < 1.0 + 1e-9);
    let us = |ns: f64| Some(short(ns / 1e3));
    let level = |time: &f64| {
        let expected = float(tail.k() as u64) * time / float(tail.measured_ns().max(1));
        us(tail.threshold + tail.fit.gpd.one_in(expected))
    };
    // Between its places the band is what is drawn of it: a straight line.
    let between = |of: fn(&Level) -> f64| {
        times
            .iter()
            .map(|time| {
                let next = curve.partition_point(|at| at.time_ns < *time).clamp(1, curve.len() - 1);
                let (one, other) = (&curve[next - 1], &curve[next]);
                let part = ((time / one.time_ns).ln() / (other.time_ns / one.time_ns).ln()).clamp(0.0, 1.0);
                us(of(one) + part * (of(other) - of(one)))
            })
            .collect()
    };
    let dot = |time: &f64| {
        let near = seen.iter().find(|at| (at.0 / time - 1.0).abs() < 1e-6);
        near.and_then(|at| us(at.1))
    };
    let line = |name: &str, dash: bool, values: Vec<Option<f64>>| PlotSeries {
        name: name.into(),
        dash,
        values,
        ..PlotSeries::default()
    };
    let series = vec![
        line("exceeded once in this time", false, times.iter().map(level).collect()),
        line("at most (95 %)", true, between(|at| at.high_ns)),
        line("at least (95 %)", true, between(|at| at.low_ns)),
        PlotSeries { colour: 1, dots: true, ..line("measured", false, times.iter().map(dot).collect()) },
    ];
    let marks = limit_ns.map(|ns| PlotMark {
        upright: false,
        at: float(ns) / 1e3,
        text: format!("required: {}", latency(float(ns))),
    });
    Plot {
        x: PlotAxis {
            label: "time".into(),
            kind: PlotKind::Time,
            log: true,
            low: short(first / 1e9),
            high: short(last / 1e9),
        },
        y: PlotAxis {
            label: "latency".into(),
            kind: PlotKind::Latency,
            log,
            low: short(low),
            high: short(high),
        },
        at: times.iter().map(|ns| ns / 1e9).collect(),
        series,
        marks: marks.into_iter().collect(),
        band: Some([1, 2]),
    }
}

/// Measured maxima from the largest, each with the time in which one such came.
fn measured(tail: &Tail) -> Vec<(f64, f64)> {
    let mut falling = tail.maxima.clone();
    falling.sort_by(|one, other| other.total_cmp(one));
    falling.truncate(DOTS.min(tail.k()));
    let time = |rank: u64| float(tail.measured_ns()) / (float(rank) + 0.5);
    (0..).zip(falling).map(|(rank, ns)| (time(rank), ns)).collect()
}

/// The measured values above the threshold against those of the law: they lie on the line if the law fits.
#[must_use]
pub fn quantiles(title: &str, tail: &Tail) -> Figure {
    let frame = Frame::new(vec![
        (Swatch::Solid(1), "exceedances".to_owned()),
        (Swatch::Mark, "where the distribution fits".to_owned()),
    ]);
    let rising = tail.excesses.rising();
    let n = float(rising.len() as u64);
    let points: Vec<(f64, f64)> = (0..)
        .zip(&rising)
        .map(|(rank, excess)| {
            let law = tail.fit.gpd.one_in(n / (n - float(rank) - 0.5));
            ((tail.threshold + law) / 1e3, (tail.threshold + excess) / 1e3)
        })
        .collect();
    let most = points.iter().map(|(one, other)| one.max(*other)).fold(0.0, f64::max);
    let low = tail.threshold / 1e3;
    let high = low + (most - low) * 1.05;
    let x = Scale::new(false, low, high, frame.left, frame.right);
    let y = Scale::new(false, low, high, frame.bottom, frame.top);
    let elements = Canvas::draw(frame.height, |canvas| {
        let across = x.ticks(10, us_label);
        frame.draw(
            canvas,
            (&x, &across, "by the distribution, in us"),
            (&y, &y.ticks(6, us_label), "measured, in us"),
        );
        canvas.path(&[(x.px(low), y.px(low)), (x.px(high), y.px(high))], MARK, 2);
        let skip = points.len().saturating_sub(DOTS);
        for (law, own) in points.iter().skip(skip) {
            canvas.dot((x.px(*law), y.px(*own)), series(1));
        }
    });
    let about = format!(
        "{} exceedances of {} against the fitted distribution.",
        rising.len(),
        latency(tail.threshold)
    );
    let axis = |label: &str| PlotAxis {
        label: label.into(),
        kind: PlotKind::Latency,
        log: false,
        low: short(low),
        high: short(high),
    };
    let shown = &points[points.len().saturating_sub(DOTS)..];
    let values = |of: fn(&(f64, f64)) -> f64| shown.iter().map(|at| Some(short(of(at)))).collect();
    let plot = Plot {
        x: axis("by the distribution"),
        y: axis("measured"),
        at: shown.iter().map(|at| at.0).collect(),
        series: vec![
            PlotSeries {
                name: "exceedances".into(),
                colour: 1,
                dots: true,
                values: values(|at| at.1),
                ..PlotSeries::default()
            },
            PlotSeries {
                name: "where the distribution fits".into(),
                dash: true,
                values: values(|at| at.0),
                ..PlotSeries::default()
            },
        ],
        marks: Vec::new(),
        band: None,
    };
    Figure { plot: Some(plot), ..figure(title, about, &frame, elements, Vec::new()) }
}

/// The shape above each threshold that was tried: where it stays, the threshold matters little.
#[must_use]
pub fn shapes(title: &str, tail: &Tail) -> Figure {
    let frame = Frame::new(vec![
        (Swatch::Solid(0), "shape xi, and 95 % interval".to_owned()),
        (Swatch::Mark, "the chosen threshold".to_owned()),
    ]);
    let us: Vec<f64> = tail.tried.iter().map(|one| one.value / 1e3).collect();
    let (first, last) = (us.first().copied().unwrap_or(0.0), us.last().copied().unwrap_or(1.0));
    let room = ((last - first) * 0.12).max(first * 0.02);
    let low = tail.tried.iter().map(|one| one.xi_range.low).fold(-0.1, f64::min);
    let high = tail.tried.iter().map(|one| one.xi_range.high).fold(0.1, f64::max);
    let x = Scale::new(false, (first - room).max(0.0), last + room, frame.left, frame.right);
    let y = Scale::new(false, low - 0.05, high + 0.05, frame.bottom, frame.top);
    let at = |ns: f64, xi: f64| (x.px(ns / 1e3), y.px(xi));
    let elements = Canvas::draw(frame.height, |canvas| {
        let across = x.ticks(10, us_label);
        frame.draw(canvas, (&x, &across, "threshold in us"), (&y, &y.ticks(6, plain), "shape xi"));
        canvas.path(&[(frame.left, y.px(0.0)), (frame.right, y.px(0.0))], GRID, 2);
        let taken = x.px(tail.threshold / 1e3);
        canvas.path(&[(taken, frame.top), (taken, frame.bottom)], MARK, 1);
        for one in &tail.tried {
            let (low, high) = (at(one.value, one.xi_range.low), at(one.value, one.xi_range.high));
            canvas.path(&[low, high], series(0), 2);
            for end in [low, high] {
                canvas.path(&[(end.0 - 4.0, end.1), (end.0 + 4.0, end.1)], series(0), 2);
            }
            canvas.dot(at(one.value, one.xi), series(0));
        }
        let line: Vec<(f64, f64)> = tail.tried.iter().map(|one| at(one.value, one.xi)).collect();
        canvas.path(&line, series(0), 1);
    });
    let spots = tail.tried.iter().map(|one| Spot {
        x: tenth(x.px(one.value / 1e3)),
        text: vec![
            format!("above {}: {} exceedances", latency(one.value), one.k),
            format!("xi {:.2} ({:.2} to {:.2})", one.xi, one.xi_range.low, one.xi_range.high),
            format!("Anderson-Darling p = {:.2}", one.p),
        ],
    });
    let said: Vec<String> =
        tail.tried.iter().map(|one| format!("xi {:.2} above {}", one.xi, latency(one.value))).collect();
    figure(title, said.join("; "), &frame, elements, spots.collect())
}

fn figure(title: &str, about: String, frame: &Frame, elements: String, spots: Vec<Spot>) -> Figure {
    let hover = Hover { top: frame.top, bottom: frame.bottom, spots };
    Figure { hover, ..Figure::still(title, about, frame.height, elements) }
}
