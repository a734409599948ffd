//! Values that were measured at several points, such as the latency of memory by size of the array.

use tactus_model::bundle::{Contents, Row};
use tactus_model::caches::caches;
use tactus_model::outcome::{Point, ValueResult};
use tactus_model::size::Bytes;

use super::Section;
use crate::figure::{Axes, CURVES, Curve, Figure, PlotKind, curves};
use crate::part::{Cell, Head, Length, Part, Reader, Table};
use crate::row::title;
use crate::stats::typical_rows;
use crate::units::{clean, number, shortened};

/// Longest name of a row in a legend, so that the kind of its evidence is never cut off.
const NAME: usize = 40;

/// Items in one table: more than any measurement has.
const ACROSS: usize = 8;

/// The section.
pub struct Curves;
/// Its entry.
pub static ENTRY: Curves = Curves;

impl Section for Curves {
    fn name(&self) -> &'static str {
        "curves"
    }

    fn heading(&self) -> &'static str {
        "Values by size and number"
    }

    fn about(&self) -> &'static str {
        "Items that were measured for arrays of several sizes, or among several numbers of processes: the median of the \
         repeats at each. Dotted lines are the sizes of the caches, as the environment says them."
    }

    fn draws(&self) -> bool {
        true
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| row.result.values().iter().any(|value| value.at.is_some()))
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let mut parts = Vec::new();
        let rows = typical_rows(contents);
        for axis in measured(&rows) {
            if reader == Reader::Page {
                parts.extend(axis.figures(contents).into_iter().map(Part::Figure));
            }
            let tables = axis.rows.iter().flat_map(|row| axis.tables(contents, row));
            parts.extend(tables.map(|table| Part::Table(Table { length: Length::Drawn, ..table })));
        }
        parts
    }
}

/// The rows of one measurement whose values were measured along one axis.
struct Axis<'a> {
    name: &'static str,
    rows: Vec<&'a Row>,
    items: Vec<&'a ValueResult>,
}

/// All axes, of one measurement after the other.
fn measured(rows: &[Row]) -> Vec<Axis<'_>> {
    let mut all: Vec<(&str, Axis)> = Vec::new();
    for row in rows {
        let kind = row.result.measurement.kind();
        for value in row.result.values() {
            let Some(at) = value.at else { continue };
            let place = all.iter().position(|(known, axis)| *known == kind && axis.name == at.axis());
            let place = place.unwrap_or_else(|| {
                all.push((kind, Axis { name: at.axis(), rows: Vec::new(), items: Vec::new() }));
                all.len() - 1
            });
            let axis = &mut all[place].1;
            if !axis.rows.last().is_some_and(|last| std::ptr::eq(*last, row)) {
                axis.rows.push(row);
            }
            if !axis.items.iter().any(|known| known.item == value.item) {
                axis.items.push(value);
            }
        }
    }
    all.into_iter().map(|(_, axis)| axis).collect()
}

impl Axis<'_> {
    /// The points of an item in a row, from the least to the most.
    fn points<'r>(&self, row: &'r Row, of: &ValueResult) -> Vec<(Point, &'r ValueResult)> {
        let of_item =
            row.result.values().iter().filter(|value| value.item == of.item && value.unit == of.unit);
        let along = of_item.filter_map(|value| Some((value.at.filter(|at| at.axis() == self.name)?, value)));
        let mut points: Vec<_> = along.collect();
        points.sort_unstable_by_key(|(at, _)| *at);
        points
    }

    /// Amounts down, items across; of more items than anybody reads in a line each few have a table with amounts of
    /// their own, so that very many are not as many squared.
    fn tables(&self, contents: &Contents, row: &Row) -> Vec<Table> {
        let items = self.items.iter().map(|item| (*item, self.points(row, item)));
        let items: Vec<_> = items.filter(|(_, points)| !points.is_empty()).collect();
        items.chunks(ACROSS).map(|items| self.table(contents, row, items)).collect()
    }

    fn table(
        &self,
        contents: &Contents,
        row: &Row,
        items: &[(&ValueResult, Vec<(Point, &ValueResult)>)],
    ) -> Table {
        let mut amounts: Vec<Point> =
            items.iter().flat_map(|(_, points)| points).map(|(at, _)| *at).collect();
        amounts.sort_unstable();
        amounts.dedup();
        let head = std::iter::once(Head::number(self.name));
        let head =
            head.chain(items.iter().map(|(of, _)| Head::number(format!("{}, {}", clean(&of.item), of.unit))));
        let line = |at: Point| -> Vec<Cell> {
            let own = |points: &[(Point, &ValueResult)]| {
                let own = points.iter().find(|(point, _)| *point == at);
                own.map(|(_, value)| number(value.value)).unwrap_or_default()
            };
            let amount = std::iter::once(label(self.name, at.number()));
            amount.chain(items.iter().map(|(_, points)| own(points))).map(Cell::from).collect()
        };
        Table::whole(named(contents, row), head.collect(), amounts.into_iter().map(line).collect())
    }

    /// One row: its items in one figure. Several: a figure for each item, so that the rows are compared.
    fn figures(&self, contents: &Contents) -> Vec<Figure> {
        let curve = |name: String, row: &Row, of: &ValueResult| Curve {
            name,
            points: self.points(row, of).into_iter().map(|(at, value)| (at.number(), value.value)).collect(),
        };
        let mut figures = Vec::new();
        if let [row] = self.rows.as_slice() {
            for items in self.items.chunk_by(|a, b| a.unit == b.unit).flat_map(|alike| alike.chunks(CURVES)) {
                let lines: Vec<Curve> =
                    items.iter().map(|item| curve(clean(&item.item), row, item)).filter(has_points).collect();
                figures.push(self.figure(contents, &named(contents, row), items[0], &lines));
            }
            return figures;
        }
        for item in &self.items {
            for rows in self.rows.chunks(CURVES) {
                let lines: Vec<Curve> = rows
                    .iter()
                    .map(|row| curve(named(contents, row), row, item))
                    .filter(has_points)
                    .collect();
                figures.push(self.figure(contents, &clean(&item.item), item, &lines));
            }
        }
        figures
    }

    fn figure(&self, contents: &Contents, title: &str, of: &ValueResult, lines: &[Curve]) -> Figure {
        let label = if self.name == BYTES { |at: u64| label(BYTES, at) } else { |at: u64| at.to_string() };
        let upright = format!("in {}", of.unit);
        let kind = if self.name == BYTES { PlotKind::Bytes } else { PlotKind::Plain };
        let axes = Axes { across: self.name, label, kind, upright: &upright };
        curves(title, axes, lines, &self.marks(contents))
    }

    /// Where caches end, where it is sizes that were varied: those of the first environment that says them.
    fn marks(&self, contents: &Contents) -> Vec<(u64, String)> {
        if self.name != BYTES {
            return Vec::new();
        }
        let of = |row: &&Row| -> Vec<(u64, String)> {
            let Some(facts) = contents.facts.get(&row.result.environment) else { return Vec::new() };
            let known = caches(facts).into_iter().filter_map(|cache| Some((cache.level, cache.size?)));
            let mut known: Vec<(u32, u64)> = known.collect();
            known.dedup();
            known.into_iter().map(|(level, size)| (size, format!("L{level} {}", Bytes(size)))).collect()
        };
        self.rows.iter().map(of).find(|marks| !marks.is_empty()).unwrap_or_default()
    }
}

/// The axis of sizes.
const BYTES: &str = Point::Bytes(0).axis();

fn has_points(curve: &Curve) -> bool {
    !curve.points.is_empty()
}

fn label(axis: &str, number: u64) -> String {
    if axis == BYTES { Bytes(number).to_string() } else { number.to_string() }
}

/// A row and what its numbers are worth.
fn named(contents: &Contents, row: &Row) -> String {
    let evidence = row.result.evidence.map(|evidence| format!(" ({evidence})")).unwrap_or_default();
    format!("{}{evidence}", shortened(&clean(&title(contents, &row.result)), NAME))
}
