//! The largest latencies one by one.

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::number::float;

use super::Section;
use crate::part::{Cell, Head, Part, Reader, Table};
use crate::row::title;
use crate::units::{clean, latency};

/// How many of the largest values of a row are shown.
const LARGEST: usize = 8;

/// The section.
pub struct Largest;
/// Its entry.
pub static ENTRY: Largest = Largest;

impl Section for Largest {
    fn name(&self) -> &'static str {
        "largest"
    }

    fn heading(&self) -> &'static str {
        "Largest values"
    }

    fn about(&self) -> &'static str {
        "The largest latencies of each measurement, with the thread that saw them and the time since the \
         measurement began. Other measurements may run between its slices."
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        let of = |result: &RowResult| {
            let largest =
                result.series().iter().flat_map(|own| &own.outliers).map(|own| own.value_ns).max()?;
            Some((largest, clean(&title(contents, result))))
        };
        let (largest, name) = contents.rows.iter().filter_map(|row| of(&row.result)).max()?;
        Some(format!("{} in {name}", latency(float(largest))))
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| row.result.series().iter().any(|series| !series.outliers.is_empty()))
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        match reader {
            Reader::Page => {
                vec![Part::Tables(contents.rows.iter().filter_map(|row| table(contents, row)).collect())]
            }
            Reader::Terminal | Reader::Markdown => Vec::new(),
        }
    }
}

fn table(contents: &Contents, row: &Row) -> Option<Table> {
    let result = &row.result;
    let mut values: Vec<_> = result.series().iter().flat_map(|series| &series.outliers).collect();
    values.sort_by_key(|outlier| std::cmp::Reverse(outlier.value_ns));
    let row = |outlier: &&tactus_model::message::Outlier| {
        let at = format!("{:.3} s", float(outlier.at_ns) / 1e9);
        [latency(float(outlier.value_ns)), at, clean(&outlier.series.to_string())].map(Cell::from).to_vec()
    };
    let rows: Vec<Vec<Cell>> = values.iter().take(LARGEST).map(row).collect();
    let evidence = result.evidence.map(|evidence| format!(" ({evidence})")).unwrap_or_default();
    let name = format!("{}{evidence}", clean(&title(contents, result)));
    let head = vec![Head::number("latency"), Head::number("at"), Head::words("thread")];
    (!rows.is_empty()).then(|| Table::whole(name, head, rows))
}
