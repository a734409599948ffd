//! Values of all environments side by side.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, Row};
use tactus_model::outcome::{Better, Point, ValueResult, wholes};

use super::Section;
use crate::figure::{Bar, Figure, Panel, bars};
use crate::part::{Part, Reader};
use crate::row::{MOST_ROWS, published_value, title_and_evidence};
use crate::stats::typical_rows;
use crate::units::clean;

/// Bars in one figure.
const BARS: usize = 40;
/// Longest name of a row, in columns, so that the kind of its evidence is never cut off.
const NAME: usize = 26;

/// The section.
pub struct Values;
/// Its entry.
pub static ENTRY: Values = Values;

impl Section for Values {
    fn name(&self) -> &'static str {
        "values"
    }

    fn heading(&self) -> &'static str {
        "Values side by side"
    }

    fn about(&self) -> &'static str {
        "Every item of the measurements that yield values, in all environments: the median of the repeats with \
         its 95 % interval, and the published value."
    }

    fn draws(&self) -> bool {
        true
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| !row.result.values().is_empty())
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        match reader {
            Reader::Page => {
                let folded = |figure: Figure| Part::Folded(figure.title.clone(), vec![Part::Figure(figure)]);
                let (figures, left_out) = drawn(contents);
                let left_out = (left_out > 0).then(|| {
                    Part::Remark(format!(
                        "The first {MOST_ROWS} items of a measurement are drawn, and {left_out} more are not; the JSON has them \
                         all."
                    ))
                });
                figures.into_iter().map(folded).chain(left_out).collect()
            }
            Reader::Terminal | Reader::Markdown => Vec::new(),
        }
    }
}

/// The figures of each measurement, an item below the other, and how many items are left out.
fn drawn(contents: &Contents) -> (Vec<Figure>, usize) {
    let rows = typical_rows(contents);
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| row.result.measurement.kind());
    let (mut drawn, mut left_out) = (Vec::new(), 0);
    for rows in rows.chunk_by(|a, b| a.result.measurement.kind() == b.result.measurement.kind()) {
        let items: Vec<Found> =
            found(rows).into_iter().filter(|item| is_beside(contents, rows, item)).collect();
        let shown = &items[..items.len().min(MOST_ROWS)];
        left_out += items.len() - shown.len();
        drawn.extend(figures(contents, rows, shown));
    }
    (drawn, left_out)
}

fn figures(contents: &Contents, rows: &[&Row], items: &[Found]) -> Vec<Figure> {
    let kind = rows.first().map_or("", |row| row.result.measurement.kind());
    let names: Vec<String> = rows.iter().map(|row| title_and_evidence(contents, &row.result, NAME)).collect();
    let panels: Vec<Panel> = items.iter().map(|item| panel(contents, rows, &names, item)).collect();
    let each = (BARS / rows.len().max(1)).max(1);
    let several = panels.len().div_ceil(each);
    let named = |item: &Found| clean(&item.of.name());
    let parts = panels.chunks(each).zip(items.chunks(each)).enumerate();
    parts
        .map(|(n, (panels, items))| {
            let which = match items {
                _ if several == 1 => String::new(),
                [first, .., last] => format!(", {} of {several}: {} to {}", n + 1, named(first), named(last)),
                _ => format!(", {} of {several}: {}", n + 1, items.first().map(named).unwrap_or_default()),
            };
            bars(&format!("{kind}{which}"), panels)
        })
        .collect()
}

/// An item, and the values of the rows that have it, each with the number of its row.
struct Found<'a> {
    of: &'a ValueResult,
    values: Vec<(usize, &'a ValueResult)>,
}

/// Every item, in the order in which the measurement has them.
fn found<'a>(rows: &[&'a Row]) -> Vec<Found<'a>> {
    let mut numbers: BTreeMap<(&str, Option<Point>), usize> = BTreeMap::new();
    let mut items: Vec<Found> = Vec::new();
    for of in rows.iter().flat_map(|row| wholes(row.result.values())) {
        if *numbers.entry((&of.item, of.at)).or_insert(items.len()) == items.len() {
            items.push(Found { of, values: Vec::new() });
        }
    }
    for (n, row) in rows.iter().enumerate() {
        for value in row.result.values() {
            let Some(number) = numbers.get(&(value.item.as_str(), value.at)) else { continue };
            let Found { of, values } = &mut items[*number];
            if value.unit == of.unit && values.last().is_none_or(|(last, _)| *last != n) {
                values.push((n, value));
            }
        }
    }
    items
}

/// A bar alone has nothing beside it, except a published value.
fn is_beside(contents: &Contents, rows: &[&Row], item: &Found) -> bool {
    let published =
        |(n, own): &(usize, &ValueResult)| published_value(&contents.plan, &rows[*n].result, own).is_some();
    item.values.len() > 1 || item.values.iter().any(published)
}

fn panel(contents: &Contents, rows: &[&Row], names: &[String], item: &Found) -> Panel {
    let of = item.of;
    let better = match of.better {
        Better::Lower => "less is better",
        Better::Higher => "more is better",
    };
    let bar = |(n, own): &(usize, &ValueResult)| Bar {
        row: *n,
        name: names[*n].clone(),
        value: own.value,
        interval: own.low.zip(own.high),
        published: published_value(&contents.plan, &rows[*n].result, own).map(|theirs| theirs.value),
    };
    Panel {
        title: format!("{}, in {} ({better})", clean(&of.name()), of.unit),
        unit: of.unit.to_string(),
        bars: item.values.iter().map(bar).collect(),
    }
}
