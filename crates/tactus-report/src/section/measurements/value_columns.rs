//! The columns of measurements that yield values: a line for each item, of a curve that of its last point.

use tactus_model::bundle::{Contents, RowResult};
use tactus_model::outcome::{ValueResult, wholes};

use super::group::{frames_lost, group};
use crate::part::{Grid, GridLine, Group, Head, LineKind, Stacked};
use crate::row::published_value;
use crate::stats::{Line, ValueRatio, value_ratio};
use crate::units::{NONE, clean, count, number, quantity};

/// An item and the values that it is compared with.
struct Item<'a> {
    value: &'a ValueResult,
    published: Option<f64>,
    ratio: Option<ValueRatio>,
}

/// A column.
struct Column {
    name: &'static str,
    shown: fn(&Item) -> Stacked,
    /// Left out where no item has anything in it.
    seldom: bool,
}

/// The columns, in their order.
const COLUMNS: &[Column] = &[
    Column { name: "value", shown: value, seldom: false },
    Column { name: "95 % interval", shown: interval, seldom: false },
    Column { name: "spread", shown: spread, seldom: false },
    Column { name: "repeats", shown: |item| count(item.value.samples).into(), seldom: false },
    Column { name: "dropped", shown: |item| count(item.value.dropped).into(), seldom: false },
    Column { name: "published", shown: published, seldom: true },
    Column { name: "ratio", shown: ratio, seldom: true },
];
/// The column that is looked at first.
const TELLING: &str = "value";

fn range(ends: Option<(f64, f64)>) -> String {
    ends.map_or_else(|| NONE.into(), |(low, high)| format!("{} to {}", number(low), number(high)))
}

fn value(item: &Item) -> Stacked {
    quantity(item.value.value, item.value.unit).into()
}

fn interval(item: &Item) -> Stacked {
    range(item.value.low.zip(item.value.high)).into()
}

/// The deviation of the repeats, as a share of the value.
fn spread(item: &Item) -> Stacked {
    let ValueResult { value, deviation, .. } = item.value;
    let part = (*value > 0.0).then(|| format!("{:.1} %", deviation / value * 100.0));
    part.unwrap_or_else(|| NONE.into()).into()
}

fn published(item: &Item) -> Stacked {
    item.published.map(|value| quantity(value, item.value.unit)).unwrap_or_default().into()
}

fn ratio(item: &Item) -> Stacked {
    let Some(ratio) = item.ratio else { return Stacked::default() };
    let below = ratio.interval.map(|ends| range(Some(ends))).unwrap_or_default();
    Stacked { first: format!("x{}", number(ratio.estimate)), below }
}

/// The table of these lines.
pub fn grid(contents: &Contents, lines: &[&Line]) -> Grid {
    let items: Vec<Vec<Item>> = lines.iter().map(|line| items(contents, line)).collect();
    let has = |column: &&Column| {
        !column.seldom || items.iter().flatten().any(|item| !(column.shown)(item).first.is_empty())
    };
    let columns: Vec<&Column> = COLUMNS.iter().filter(has).collect();
    Grid {
        corner: "values".into(),
        columns: columns.iter().map(|of| Head::number(of.name)).collect(),
        telling: columns.iter().position(|column| column.name == TELLING),
        groups: lines.iter().zip(&items).map(|(line, items)| row(contents, line, items, &columns)).collect(),
    }
}

fn row(contents: &Contents, line: &Line, items: &[Item], columns: &[&Column]) -> Group {
    let mut group = group(contents, line);
    if let Some(repeated) = &line.repeated {
        let many = repeated.runs.iter().filter(|run| run.has_numbers).count();
        group.name = format!("{} (median of {many} runs)", group.name);
    }
    group.lines.extend(items.iter().map(|item| {
        let values = columns.iter().map(|column| (column.shown)(item)).collect();
        GridLine::numbers(LineKind::Item, clean(&item.value.name()), values)
    }));
    if !items.is_empty() {
        group.lines.extend(line.against.as_ref().map(|against| {
            let label = format!("ratio: to {}", clean(&against.name));
            GridLine::numbers(LineKind::Against(against.caution.is_some()), label, Vec::new())
        }));
        group.lines.extend(frames_lost(line));
        group.lines.extend(line.reason.as_deref().map(|reason| GridLine::sentence(clean(reason))));
    }
    group
}

fn items<'a>(contents: &Contents, line: &'a Line) -> Vec<Item<'a>> {
    let result = |row: usize| contents.rows.get(row).map(|row| &row.result);
    let theirs = line.against.as_ref().and_then(|against| result(against.row));
    let held = |value: &ValueResult, theirs: &RowResult| {
        let other = theirs.values().iter().find(|other| other.is_of(value))?;
        value_ratio(value, other)
    };
    let item = |value: &'a ValueResult| Item {
        value,
        published: result(line.row)
            .and_then(|own| published_value(&contents.plan, own, value))
            .map(|theirs| theirs.value),
        ratio: theirs.and_then(|theirs| held(value, theirs)),
    };
    wholes(&line.values).map(item).collect()
}
