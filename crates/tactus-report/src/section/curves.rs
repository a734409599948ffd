//! Values that were measured at several points, such as the latency of memory by size of the array.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::bundle::{Contents, Row};
use tactus_model::caches::caches;
use tactus_model::outcome::{Point, ValueResult};
use tactus_model::size::Bytes;

use super::Section;
use crate::figure::{Axes, CURVES, Curve, Figure, PlotKind, curves};
use crate::part::{Cell, Head, Length, Part, Reader, Table};
use crate::row::{MOST_ROWS, title_and_evidence};
use crate::stats::typical_rows;
use crate::units::{clean, number};

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
        "Items measured for arrays of several sizes, or among several numbers of processes: the median of the \
         repeats at each. Dotted lines are the cache sizes that the environment reports."
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
        let (mut room, mut left_out) = (MOST_ROWS, 0);
        for axis in measured(contents, &rows) {
            if reader == Reader::Page {
                let groups = axis.groups();
                let shown = &groups[..groups.len().min(room)];
                room -= shown.len();
                left_out += groups.len() - shown.len();
                let marks = axis.marks(contents);
                parts.extend(shown.iter().map(|group| Part::Figure(axis.figure(group, &marks))));
            }
            let tables = axis.tables().into_iter();
            let tables: Vec<Part> =
                tables.map(|table| Part::Table(Table { length: Length::Drawn, ..table })).collect();
            if reader == Reader::Page && tables.len() > 1 {
                parts.push(Part::Folded("All of it as tables".into(), tables));
            } else {
                parts.extend(tables);
            }
        }
        if left_out > 0 {
            parts.push(Part::Remark(format!(
                "The first {MOST_ROWS} figures are drawn, and {left_out} more are not; the tables contain \
                    all values."
            )));
        }
        parts
    }
}

/// The rows of one measurement whose values were measured along one axis.
struct Axis<'a> {
    name: &'static str,
    rows: Vec<&'a Row>,
    /// The number of the last of them among all rows.
    last: Option<usize>,
    /// Their names.
    names: Vec<String>,
    items: Vec<&'a ValueResult>,
    /// Which of them each is.
    numbers: BTreeMap<&'a str, usize>,
    /// By the numbers of a row and of an item: without a measurement there is no line.
    lines: BTreeMap<(usize, usize), Points<'a>>,
}

/// The points of an item in a row, from the least to the most.
type Points<'a> = Vec<(Point, &'a ValueResult)>;

/// The number of a row, that of an item, and the points.
type Line<'p, 'a> = (usize, usize, &'p Points<'a>);

/// All axes, of one measurement after the other.
fn measured<'a>(contents: &Contents, rows: &'a [Row]) -> Vec<Axis<'a>> {
    let mut all: Vec<(&str, Axis)> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let kind = row.result.measurement.kind();
        for value in row.result.values() {
            let Some(at) = value.at else { continue };
            let place = all.iter().position(|(known, axis)| *known == kind && axis.name == at.axis());
            let place = place.unwrap_or_else(|| {
                all.push((kind, Axis::new(at.axis())));
                all.len() - 1
            });
            all[place].1.add(contents, (number, row), (at, value));
        }
    }
    for points in all.iter_mut().flat_map(|(_, axis)| axis.lines.values_mut()) {
        points.sort_unstable_by_key(|(at, _)| *at);
    }
    all.into_iter().map(|(_, axis)| axis).collect()
}

impl<'a> Axis<'a> {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            rows: Vec::new(),
            last: None,
            names: Vec::new(),
            items: Vec::new(),
            numbers: BTreeMap::new(),
            lines: BTreeMap::new(),
        }
    }

    /// A value of a row that is the last one so far, or comes behind it.
    fn add(
        &mut self,
        contents: &Contents,
        (number, row): (usize, &'a Row),
        (at, value): (Point, &'a ValueResult),
    ) {
        if self.last.replace(number) != Some(number) {
            self.rows.push(row);
            self.names.push(title_and_evidence(contents, &row.result, NAME));
        }
        let item = *self.numbers.entry(&value.item).or_insert(self.items.len());
        if item == self.items.len() {
            self.items.push(value);
        }
        if self.items[item].unit == value.unit {
            self.lines.entry((self.rows.len() - 1, item)).or_default().push((at, value));
        }
    }

    /// Amounts down, items across. Every few items get a separate table with their amounts, so that lines
    /// stay readable and the number of cells does not grow with the square of the items.
    fn tables(&self) -> Vec<Table> {
        let lines = self.lines();
        let of_rows = lines.chunk_by(|(a, ..), (b, ..)| a == b);
        of_rows.flat_map(|lines| lines.chunks(ACROSS)).map(|lines| self.table(lines)).collect()
    }

    fn lines(&self) -> Vec<Line<'_, 'a>> {
        self.lines.iter().map(|((row, item), points)| (*row, *item, points)).collect()
    }

    /// Lines of one row.
    fn table(&self, lines: &[Line]) -> Table {
        let mut amounts: Vec<Point> =
            lines.iter().flat_map(|(.., points)| *points).map(|(at, _)| *at).collect();
        amounts.sort_unstable();
        amounts.dedup();
        let head = std::iter::once(Head::number(self.name));
        let items = lines.iter().map(|(_, item, _)| self.items[*item]);
        let head = head.chain(items.map(|of| Head::number(format!("{}, {}", clean(&of.item), of.unit))));
        let line = |at: Point| -> Vec<Cell> {
            let own = |points: &Points| {
                let own = points.iter().find(|(point, _)| *point == at);
                own.map(|(_, value)| number(value.value)).unwrap_or_default()
            };
            let amount = std::iter::once(label(self.name, at.number()));
            amount.chain(lines.iter().map(|(.., points)| own(points))).map(Cell::from).collect()
        };
        let name = lines.first().map_or("", |(row, ..)| self.names[*row].as_str());
        Table::whole(name, head.collect(), amounts.into_iter().map(line).collect())
    }

    /// The lines of each figure. One row: its items in one figure. Several: a figure for each item, so that the rows are
    /// compared.
    fn groups(&self) -> Vec<Vec<Line<'_, 'a>>> {
        let mut lines = self.lines();
        if self.rows.len() == 1 {
            let unit = |line: &Line| self.items[line.1].unit;
            let alike = lines.chunk_by(|a, b| unit(a) == unit(b));
            return alike.flat_map(|alike| alike.chunks(CURVES)).map(<[Line]>::to_vec).collect();
        }
        lines.sort_by_key(|(row, item, _)| (*item, *row));
        let together = |(row, item, _): &Line| (*item, row / CURVES);
        lines.chunk_by(|a, b| together(a) == together(b)).map(<[Line]>::to_vec).collect()
    }

    /// The figure of these lines.
    fn figure(&self, lines: &[Line], marks: &[(u64, String)]) -> Figure {
        let alone = self.rows.len() == 1;
        let item = |item: usize| clean(&self.items[item].item);
        let curve = |(row, of, points): &Line| Curve {
            name: if alone { item(*of) } else { self.names[*row].clone() },
            points: points.iter().map(|(at, value)| (at.number(), value.value)).collect(),
        };
        let (title, unit) = lines.first().map_or_else(Default::default, |(row, of, _)| {
            let title = if alone { self.names[*row].clone() } else { item(*of) };
            (title, self.items[*of].unit.to_string())
        });
        let label = if self.name == BYTES { |at: u64| label(BYTES, at) } else { |at: u64| at.to_string() };
        let upright = format!("in {unit}");
        let kind = if self.name == BYTES { PlotKind::Bytes } else { PlotKind::Plain };
        let axes = Axes { across: self.name, label, kind, upright: &upright };
        curves(&title, axes, &lines.iter().map(curve).collect::<Vec<Curve>>(), marks)
    }

    /// Where caches end, where it is sizes that were varied: those of the first environment that says them.
    fn marks(&self, contents: &Contents) -> Vec<(u64, String)> {
        if self.name != BYTES {
            return Vec::new();
        }
        let of = |row: &Row| -> Vec<(u64, String)> {
            let Some(facts) = contents.facts.get(&row.result.environment) else { return Vec::new() };
            let known = caches(facts).into_iter().filter_map(|cache| Some((cache.level, cache.size?)));
            let mut known: Vec<(u32, u64)> = known.collect();
            known.dedup();
            known.into_iter().map(|(level, size)| (size, format!("L{level} {}", Bytes(size)))).collect()
        };
        let mut known = BTreeSet::new();
        let mut firsts = self.rows.iter().filter(|row| known.insert(row.result.environment.as_str()));
        firsts.find_map(|row| Some(of(row)).filter(|marks| !marks.is_empty())).unwrap_or_default()
    }
}

/// The axis of sizes.
const BYTES: &str = Point::Bytes(0).axis();

fn label(axis: &str, number: u64) -> String {
    if axis == BYTES { Bytes(number).to_string() } else { number.to_string() }
}
