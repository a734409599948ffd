//! The tables. A table is one file here; its columns stand beside what fills them, with what they mean, and the book's
//! page of them is made from that. Columns that a bundle's exported tables have, too, are those.

mod fact;
mod finding;
mod histogram;
mod interval;
mod joined;
mod machine;
mod run;
mod series;

use tactus_format::export::table::{Cell, Column, TakeRow};
use tactus_format::export::{ExportError, Source};

use crate::version::VERSION;

pub use fact::{Change, Fact, fact_rows};
pub use machine::Seen;

/// A bundle as it becomes rows.
pub struct Taken<'a> {
    /// Its key.
    pub run: &'a str,
    /// That of its machine.
    pub machine: &'a str,
    /// How that is known.
    pub identity: &'static str,
    /// Tells it from another bundle of the same run.
    pub content: &'a str,
    /// What it says.
    pub source: Source<'a>,
}

/// Calls with each row that a bundle has in a table.
pub type Rows = fn(&Taken<'_>, &mut TakeRow<'_>) -> Result<(), ExportError>;

/// A table.
pub struct Table {
    /// The name of its directory.
    pub name: &'static str,
    /// The meaning of a row.
    pub about: &'static str,
    /// Its columns. The first is the run's key.
    pub columns: fn() -> &'static [Column],
    /// Its rows of a bundle; `None` for a table that is not about runs.
    pub rows: Option<Rows>,
}

/// Every table, in the order in which they are written: `run` comes last, so that all that it names exists.
pub static TABLES: &[&Table] = &[
    &machine::TABLE,
    &histogram::TABLE,
    &interval::TABLE,
    &finding::TABLE,
    &fact::TABLE,
    &series::TABLE,
    &run::TABLE,
];

pub use fact::TABLE as FACT;
pub use finding::TABLE as FINDING;
pub use machine::TABLE as MACHINE;
pub use run::TABLE as RUN;
pub use series::TABLE as SERIES;

/// Columns of a table by their names.
///
/// # Panics
/// Where the table has no such column.
#[must_use]
pub fn columns(table: &Table, names: &[&str]) -> Vec<Column> {
    let of = |name: &&str| {
        let column = (table.columns)().iter().find(|column| column.name == *name);
        *column.unwrap_or_else(|| panic!("{} has no column {name}", table.name))
    };
    names.iter().map(of).collect()
}

/// An owned copy of a cell.
#[must_use]
pub fn owned(cell: &Cell<'_>) -> Cell<'static> {
    match cell {
        Cell::Empty => Cell::Empty,
        Cell::Text(text) => Cell::Text(text.clone().into_owned().into()),
        Cell::Whole(number) => Cell::Whole(*number),
        Cell::Real(number) => Cell::Real(*number),
        Cell::Flag(flag) => Cell::Flag(*flag),
        Cell::Moment(moment) => Cell::Moment(*moment),
        Cell::Bytes(bytes) => Cell::Bytes(bytes.clone().into_owned().into()),
    }
}

/// The page of the book that says what the columns mean.
#[must_use]
pub fn page() -> String {
    let mut text = format!(
        "# Tables of a data set\n\n`tactus fleet collect BUNDLE... --into DATA` writes these tables, version \
         {}.{} of the data set (`DATA/data-set.json`, and `tactus.data-set` in the metadata of each file). \
         Each table is a directory with a Parquet file for each day on which runs began (UTC), as \
         `DATA/run/2026-11-24.parquet`. Times are in ns where a name ends so. Unknown and unmeasured values \
         are null, never 0. `run` joins the tables, `machine` the runs of a machine; `scenario` and `series` \
         are as in [the tables of a bundle](tables.md).\n\nA minor version may add tables, and columns at \
         the end of a table; existing ones keep their meaning in all versions {}.x.\n\nThis page is made \
         from the code (`UPDATE_DOCS=1 cargo test -p tactus-data table`).\n",
        VERSION.major, VERSION.minor, VERSION.major
    );
    for table in TABLES.iter().rev() {
        text += &format!(
            "\n## {}\n{}\n\n| column | Parquet | what it is |\n|---|---|---|\n",
            table.name, table.about
        );
        for column in (table.columns)() {
            let about = column.about.trim().replace('|', "\\|");
            text += &format!("| `{}` | {} | {about} |\n", column.name, column.kind.words().1);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_column_has_one_name_and_says_what_it_is() {
        for table in TABLES {
            let columns = (table.columns)();
            let names: BTreeSet<&str> = columns.iter().map(|column| column.name).collect();
            assert_eq!(names.len(), columns.len(), "{}", table.name);
            for column in columns {
                assert!(column.about.trim().ends_with('.'), "{}: {}", table.name, column.name);
            }
            assert!(table.rows.is_none() || columns[0].name == "run", "{}", table.name);
        }
    }

    /// The page of the book is made from the columns; `UPDATE_DOCS=1` writes it anew.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the book is compared with the code")]
    fn the_book_says_what_the_columns_are() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/data-set.md");
        let made = page();
        if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
            std::fs::write(path, &made).unwrap();
        }
        let published = std::fs::read_to_string(path).unwrap_or_default();
        assert!(published == made, "docs/reference/data-set.md is out of date: run with UPDATE_DOCS=1");
    }
}
