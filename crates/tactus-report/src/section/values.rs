//! Values of all environments side by side.

use tactus_model::bundle::{Contents, Row};
use tactus_model::outcome::{Better, ValueResult, wholes};

use super::Section;
use crate::figure::{Bar, Figure, Panel, bars};
use crate::part::{Part, Reader};
use crate::row::{published_value, title};
use crate::stats::typical_rows;
use crate::units::{clean, shortened};

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
        "Every item of the measurements that yield values, in all environments: the median of the repeats \
         with its 95 % interval, and what the document published."
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
                drawn(contents).into_iter().map(folded).collect()
            }
            Reader::Terminal | Reader::Markdown => Vec::new(),
        }
    }
}

/// The figures of each measurement, an item below the other.
fn drawn(contents: &Contents) -> Vec<Figure> {
    let rows = typical_rows(contents);
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| row.result.measurement.kind());
    let alike = rows.chunk_by(|a, b| a.result.measurement.kind() == b.result.measurement.kind());
    alike.flat_map(|rows| figures(contents, rows)).collect()
}

fn figures(contents: &Contents, rows: &[&Row]) -> Vec<Figure> {
    let kind = rows.first().map_or("", |row| row.result.measurement.kind());
    let panels = panels(contents, rows);
    let several = panels.len();
    let parts = panels.chunks((BARS / rows.len().max(1)).max(1));
    parts
        .map(|part| {
            let names: Vec<&str> = part.iter().map(|panel| panel.title.as_str()).collect();
            let which = if part.len() < several { format!(": {}", names.join(", ")) } else { String::new() };
            bars(&format!("{kind}{which}"), part)
        })
        .collect()
}

/// A panel for each item, in the order in which the measurement has them.
fn panels(contents: &Contents, rows: &[&Row]) -> Vec<Panel> {
    let mut items: Vec<&ValueResult> = Vec::new();
    for value in rows.iter().flat_map(|row| wholes(row.result.values())) {
        if !items.iter().any(|known| known.is_of(value)) {
            items.push(value);
        }
    }
    let panel = |of: &ValueResult| {
        let better = match of.better {
            Better::Lower => "less is better",
            Better::Higher => "more is better",
        };
        let bars = rows.iter().enumerate().filter_map(|(n, row)| bar(contents, n, row, of)).collect();
        Panel {
            title: format!("{}, in {} ({better})", clean(&of.name()), of.unit),
            unit: of.unit.to_string(),
            bars,
        }
    };
    // A bar alone is beside nothing, but for what was published.
    let beside = |panel: &Panel| panel.bars.len() > 1 || panel.bars.iter().any(|bar| bar.published.is_some());
    items.into_iter().map(panel).filter(beside).collect()
}

fn bar(contents: &Contents, n: usize, row: &Row, of: &ValueResult) -> Option<Bar> {
    let result = &row.result;
    let own = result.values().iter().find(|value| value.is_of(of) && value.unit == of.unit)?;
    let evidence = result.evidence.map(|evidence| format!(" ({evidence})")).unwrap_or_default();
    Some(Bar {
        row: n,
        name: format!("{}{evidence}", shortened(&clean(&title(contents, result)), NAME)),
        value: own.value,
        interval: own.low.zip(own.high),
        published: published_value(&contents.plan, result, own).map(|theirs| theirs.value),
    })
}
