//! The columns of measurements that yield latencies.

use tactus_model::bundle::Contents;
use tactus_model::document::Published;
use tactus_model::latency::{Corrected, Summary};
use tactus_model::number::float;

use super::group::{frames_lost, group};
use crate::part::{Grid, GridLine, Group, Head, LineKind, Stacked};
use crate::stats::{Line, Spread, delta, typical};
use crate::units::{NONE, clean, column, column_signed, count, places, relative};

/// A figure of a row.
enum Figure {
    /// A latency, in ns.
    Ns(Option<f64>),
    /// A number of something.
    Count(u64),
}

/// A column. Where it has nothing to say about a line its field stays empty.
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
        measured: |all| Figure::Count(all.cycles),
        corrected: Some(|all| Figure::Count(all.count)),
        published: None,
    },
];
/// Digits after the point of what was published where nothing was measured.
const PUBLISHED_PLACES: usize = 2;
/// What the line is called whose quantiles are corrected.
const MISSED: &str = "with missed periods";
/// The column that is looked at first.
const TELLING: &str = "max";

/// The table of these lines.
pub fn grid(contents: &Contents, lines: &[&Line]) -> Grid {
    let measured = lines.iter().filter_map(|line| line.figures.as_ref()?.min_ns.map(float));
    let places = places(measured);
    Grid {
        corner: "latency in us".into(),
        columns: COLUMNS.iter().map(|column| Head::number(column.name)).collect(),
        telling: COLUMNS.iter().position(|column| column.name == TELLING),
        groups: lines.iter().map(|line| row(contents, line, places)).collect(),
    }
}

fn shown(figure: &Figure, places: usize) -> Stacked {
    match figure {
        Figure::Ns(ns) => column(*ns, places).into(),
        Figure::Count(n) => count(*n).into(),
    }
}

fn row(contents: &Contents, line: &Line, places: usize) -> Group {
    let mut group = group(contents, line);
    let theirs = line.published.as_ref();
    let Some(all) = &line.figures else {
        group.lines.extend(theirs.map(|theirs| published(theirs, PUBLISHED_PLACES)));
        return group;
    };
    if let Some(spread) = &line.spread {
        group.name = format!("{} (median of {} runs)", group.name, spread.runs);
    }
    group.values = COLUMNS.iter().map(|column| shown(&(column.measured)(all), places)).collect();
    group.lines.extend(line.spread.iter().flat_map(|spread| range(spread, places)));
    group.lines.extend(line.corrected().map(|all| corrected(all, places)));
    group.lines.extend(theirs.map(|theirs| published(theirs, places)));
    group.lines.extend(against(contents, line, all, places));
    if all.lost > 0 {
        group.lines.push(GridLine::sentence(format!(
            "{} samples did not reach the histogram: min, mean and max are exact, quantiles lack them",
            count(all.lost)
        )));
    }
    group.lines.extend(frames_lost(contents, line));
    group.lines.extend(line.reason.as_deref().map(|reason| GridLine::sentence(clean(reason))));
    group
}

/// Between what the figures of the runs lie.
fn range(spread: &Spread, places: usize) -> [GridLine; 2] {
    [("lowest", &spread.lowest), ("highest", &spread.highest)].map(|(word, all)| {
        let values = COLUMNS.iter().map(|column| shown(&(column.measured)(all), places)).collect();
        GridLine::numbers(LineKind::Explains, word, values)
    })
}

fn corrected(all: &Corrected, places: usize) -> GridLine {
    let value = |column: &Column| column.corrected.map(|of| shown(&of(all), places)).unwrap_or_default();
    let values = COLUMNS.iter().map(value).collect();
    GridLine::numbers(LineKind::Explains, MISSED, values)
}

fn published(theirs: &Published, places: usize) -> GridLine {
    let value =
        |of: &Column| of.published.and_then(|of| of(theirs)).map(|ns| column(Some(float(ns)), places));
    let values = COLUMNS.iter().map(|of| value(of).unwrap_or_default().into()).collect();
    GridLine::numbers(LineKind::Published, "published", values)
}

/// This row minus the host's.
fn against(contents: &Contents, line: &Line, own: &Summary, places: usize) -> Option<GridLine> {
    let against = line.against.as_ref()?;
    let theirs = &typical(contents, &contents.rows.get(against.row)?.result)?;
    // What is judged: corrected for missed periods wherever there were any.
    let judged = |column: &Column, all: &Summary| match column.corrected {
        Some(of) => of(&all.corrected),
        None => (column.measured)(all),
    };
    let value = |column: &Column| match (judged(column, own), judged(column, theirs)) {
        (Figure::Ns(own), Figure::Ns(theirs)) => match delta(own, theirs) {
            Some(delta) => Stacked {
                first: column_signed(Some(delta.absolute_ns), places),
                below: relative(delta.relative),
            },
            None => NONE.to_owned().into(),
        },
        _ => Stacked::default(),
    };
    let label = format!("against {}", clean(&against.name));
    let kind = LineKind::Against(against.caution.is_some());
    Some(GridLine::numbers(kind, label, COLUMNS.iter().map(value).collect()))
}
