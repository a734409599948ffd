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
    id: Option<String>,
    link: Option<String>,
}

impl From<Table> for TableBox {
    fn from(table: Table) -> Self {
        let cell = |cell: crate::analysis::Cell| {
            let mut lines = cell.lines.into_iter();
            let first = lines.next().unwrap_or_default();
            Cell { first, below: lines.collect(), id: cell.id, link: cell.link }
        };
        let rows = table.rows.into_iter().map(|cells| cells.into_iter().map(cell).collect()).collect();
        Self {
            title: table.title,
            head: table.head,
            rows,
            remarks: table.remarks,
            long: table.length != crate::analysis::Length::Whole,
        }
    }
}
