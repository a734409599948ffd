//! The tables that the plan asks for, on the page.

use serde::Serialize;

use crate::analysis::Table;

/// A table.
#[derive(Debug, Serialize)]
pub struct TableBox {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<Cell>>,
    remarks: Vec<String>,
    long: bool,
}

/// A cell: its first line, and what stands below it in small letters.
#[derive(Debug, Serialize)]
struct Cell {
    first: String,
    below: Vec<String>,
}

impl From<Table> for TableBox {
    fn from(table: Table) -> Self {
        let cell = |lines: Vec<String>| {
            let mut lines = lines.into_iter();
            Cell { first: lines.next().unwrap_or_default(), below: lines.collect() }
        };
        let rows = table.rows.into_iter().map(|cells| cells.into_iter().map(cell).collect()).collect();
        Self { title: table.title, head: table.head, rows, remarks: table.remarks, long: table.long }
    }
}
