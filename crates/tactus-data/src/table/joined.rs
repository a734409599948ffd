//! Columns of a bundle's exported tables, behind columns of ours.

use tactus_format::export::table::{Cell, Column, TABLES, TakeRow};
use tactus_format::export::{ExportError, Source};

/// Some columns of a table that bundles are exported as.
pub struct Exported {
    table: &'static tactus_format::export::table::Table,
    /// Which of its columns.
    kept: Vec<usize>,
}

impl Exported {
    /// Those of these names.
    ///
    /// # Panics
    /// When the table or a column does not exist.
    pub fn of(table: &str, names: &[&str]) -> Self {
        let table = TABLES.iter().find(|own| own.name == table).unwrap_or_else(|| panic!("no table {table}"));
        let at = |name: &&str| {
            let at = table.columns.iter().position(|column| column.name == *name);
            at.unwrap_or_else(|| panic!("{} has no column {name}", table.name))
        };
        Self { table, kept: names.iter().map(at).collect() }
    }

    /// Those columns.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        self.kept.iter().map(|at| self.table.columns[*at])
    }

    /// Calls with each row, behind what `own` makes of all of its cells.
    pub fn rows<'a>(
        &self,
        source: &Source<'_>,
        own: &dyn Fn(&[Cell<'_>]) -> Vec<Cell<'a>>,
        take: &mut TakeRow<'_>,
    ) -> Result<(), ExportError> {
        (self.table.rows)(source, &mut |cells| {
            let mut row: Vec<Cell<'_>> = own(cells);
            row.extend(self.kept.iter().filter_map(|at| cells.get(*at).cloned()));
            take(&row)
        })
    }
}
