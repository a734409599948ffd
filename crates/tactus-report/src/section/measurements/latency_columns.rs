//! The columns of measurements that yield latencies.

use tactus_model::Evidence;
use tactus_model::bundle::Contents;
use tactus_model::document::Published;
use tactus_model::latency::{Corrected, Summary};
use tactus_model::number::float;

use super::group::{frames_lost, group};
use crate::part::{Grid, GridLine, Group, Head, LineKind, Stacked};
use crate::stats::{Line, Repeated, delta};
use crate::units::{NONE, clean, count, difference, latency, latency_in_full, relative};

/// A figure of a row.
enum Figure {
    /// A latency, in ns.
    Ns(Option<f64>),
    /// A number of something; `None` if it was not counted.
    Count(Option<u64>),
}

/// A column. Its field stays empty on a line that lacks the figure.
struct Column {
    name: &'static str,
    measured: fn(&Summary) -> Figure,
    corrected: Option<fn(&Corrected) -> Figure>,
    published: Option<fn(&Published) -> Option<u64>>,
}

/// The columns, in their order.
const COLUMNS: &[Column] = &[
    Column {
        name: "min",
        measured: |all| Figure::Ns(all.min_ns.map(float)),
        corrected: None,
        published: Some(|theirs| theirs.min_ns),
    },
    Column {
        name: "mean",
        measured: |all| Figure::Ns(all.mean_ns),
        corrected: None,
        published: Some(|theirs| theirs.mean_ns),
    },
    Column {
        name: "p50",
        measured: |all| Figure::Ns(all.p50_ns.map(float)),
        corrected: Some(|all| Figure::Ns(all.p50_ns.map(float))),
        published: None,
    },
    Column {
        name: "p99",
        measured: |all| Figure::Ns(all.p99_ns.map(float)),
        corrected: Some(|all| Figure::Ns(all.p99_ns.map(float))),
        published: None,
    },
    Column {
        name: "p99.9",
        measured: |all| Figure::Ns(all.p999_ns.map(float)),
        corrected: Some(|all| Figure::Ns(all.p999_ns.map(float))),
        published: None,
    },
    Column {
        name: "p99.99",
        measured: |all| Figure::Ns(all.p9999_ns.map(float)),
        corrected: Some(|all| Figure::Ns(all.p9999_ns.map(float))),
        published: None,
    },
    Column {
        name: "max",
        measured: |all| Figure::Ns(all.max_ns.map(float)),
        corrected: None,
        published: Some(|theirs| theirs.max_ns),
    },
    Column {
        name: "overruns",
        measured: |all| Figure::Count(all.overruns),
        corrected: None,
        published: None,
    },
    Column {
        name: "cycles",
        measured: |all| Figure::Count(Some(all.cycles)),
        corrected: None,
        published: None,
    },
];
/// The label of the line with the quantiles of the wake-ups that happened.
const RAW: &str = "raw";
/// The column that short measurements cannot fill.
const SELDOM: &str = "p99.99";
/// The column that is looked at first.
const TELLING: &str = "max";
/// Most runs that are listed one by one.
const LISTED: usize = 10;

/// The table of these lines.
pub fn grid(contents: &Contents, lines: &[&Line]) -> Grid {
    let mut grid = Grid {
        corner: "latency".into(),
        columns: COLUMNS.iter().map(|column| Head::number(column.name)).collect(),
        telling: None,
        groups: lines.iter().map(|line| row(contents, line)).collect(),
    };
    leave_out(&mut grid, SELDOM);
    grid.telling = grid.columns.iter().position(|head| head.name == TELLING);
    grid
}

/// Leaves a column out in which nothing stands.
fn leave_out(grid: &mut Grid, name: &str) {
    let Some(at) = grid.columns.iter().position(|head| head.name == name) else { return };
    let own =
        |values: &[Stacked]| values.get(at).is_none_or(|value| ["", NONE].contains(&value.first.as_str()));
    let empty = |group: &Group| own(&group.values) && group.lines.iter().all(|line| own(&line.values));
    if grid.groups.iter().all(empty) {
        grid.columns.remove(at);
        for values in grid.groups.iter_mut().flat_map(|group| {
            group.lines.iter_mut().map(|line| &mut line.values).chain(std::iter::once(&mut group.values))
        }) {
            if at < values.len() {
                values.remove(at);
            }
        }
    }
}

fn shown(figure: &Figure) -> Stacked {
    match figure {
        Figure::Ns(ns) => in_a_cell(*ns).into(),
        Figure::Count(n) => n.map_or_else(|| "unknown".to_owned(), count).into(),
    }
}

/// A latency with its unit.
fn in_a_cell(ns: Option<f64>) -> String {
    ns.map_or_else(|| NONE.into(), latency)
}

/// The figure in the row: quantiles with the missed periods (corrected for coordinated omission), others as
/// measured.
fn judged(column: &Column, all: &Summary) -> Figure {
    column.corrected.map_or_else(|| (column.measured)(all), |of| of(&all.corrected))
}

fn row(contents: &Contents, line: &Line) -> Group {
    let mut group = group(contents, line);
    let theirs = line.published.as_ref();
    let Some(all) = &line.figures else {
        group.lines.extend(theirs.map(published));
        return group;
    };
    if let Some(repeated) = &line.repeated {
        let words = match measured(repeated).count() {
            1 => format!("1 of {} runs", repeated.runs.len()),
            many => format!("{many} runs together"),
        };
        group.name = format!("{} ({words})", group.name);
    }
    group.values = COLUMNS.iter().map(|column| shown(&judged(column, all))).collect();
    group.lines.extend(line.repeated.iter().flat_map(runs));
    group.lines.extend(line.corrected().filter(|_| contents.raw).map(|_| raw(all)));
    group.lines.extend(theirs.map(published));
    group.lines.extend(against(line, all));
    // A note already says that a file has no histogram.
    let without_histogram = line.evidence == Some(Evidence::Imported) && all.lost == all.cycles;
    if all.lost > 0 && !without_histogram {
        group.lines.push(GridLine::sentence(format!(
            "{} samples did not reach the histogram: min, mean and max are exact, quantiles lack them",
            count(all.lost)
        )));
    }
    group.lines.extend(frames_lost(line));
    group.lines.extend(line.reason.as_deref().map(|reason| GridLine::sentence(clean(reason))));
    group
}

/// The runs that have figures.
fn measured(repeated: &Repeated) -> impl DoubleEndedIterator<Item = (u32, &Summary)> {
    repeated.runs.iter().filter_map(|run| Some((run.number, run.figures.as_ref()?)))
}

/// Each run, or the worst ones of many; and the median of all.
fn runs(repeated: &Repeated) -> Vec<GridLine> {
    let line = |label: String, all: &Summary| {
        let values = COLUMNS.iter().map(|column| shown(&judged(column, all))).collect();
        GridLine::numbers(LineKind::Explains, label, values)
    };
    let mut listed: Vec<(u32, &Summary)> = measured(repeated).collect();
    let many = listed.len();
    if many > LISTED {
        listed.sort_by_key(|(_, all)| std::cmp::Reverse(all.max_ns));
        listed.truncate(LISTED);
        listed.sort_by_key(|(number, _)| *number);
    }
    let mut lines: Vec<GridLine> =
        listed.into_iter().map(|(number, all)| line(format!("run {number}"), all)).collect();
    if many > LISTED {
        lines.push(GridLine::sentence(format!(
            "the {LISTED} runs with the largest maxima; the JSON has all {many}"
        )));
    }
    // One run is no distribution.
    let median = repeated.median.as_ref().filter(|_| many > 1);
    lines.extend(median.map(|all| line(format!("median of {many} runs"), all)));
    lines
}

/// The quantiles of the wake-ups that happened.
fn raw(all: &Summary) -> GridLine {
    let value =
        |column: &Column| column.corrected.map(|_| shown(&(column.measured)(all))).unwrap_or_default();
    GridLine::numbers(LineKind::Explains, RAW, COLUMNS.iter().map(value).collect())
}

fn published(theirs: &Published) -> GridLine {
    let value = |of: &Column| of.published.and_then(|of| of(theirs)).map(latency_in_full);
    let values = COLUMNS.iter().map(|of| value(of).unwrap_or_default().into()).collect();
    GridLine::numbers(LineKind::Published, "published", values)
}

/// This row minus the host's.
fn against(line: &Line, own: &Summary) -> Option<GridLine> {
    let against = line.against.as_ref()?;
    let theirs = against.figures.as_ref()?;
    let value = |column: &Column| match (judged(column, own), judged(column, theirs)) {
        (Figure::Ns(own), Figure::Ns(theirs)) => match delta(own, theirs) {
            Some(delta) => Stacked { first: difference(delta.absolute_ns), below: relative(delta.relative) },
            None => NONE.to_owned().into(),
        },
        _ => Stacked::default(),
    };
    let label = format!("vs {}", clean(&against.name));
    let kind = LineKind::Against(against.caution.is_some());
    Some(GridLine::numbers(kind, label, COLUMNS.iter().map(value).collect()))
}
