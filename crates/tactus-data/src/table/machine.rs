//! One row per machine, and for each other way in which it named itself.

use tactus_format::columns;
use tactus_format::export::table::Cell;

use super::Table;

/// The table.
pub const TABLE: Table = Table {
    name: "machine",
    about: "A row for each machine, and one more for each other name, installed system or mainboard that it \
        reported: one file, `all.parquet`.",
    columns: || COLUMNS,
    rows: None,
};

/// A machine as it named itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// Its key.
    pub machine: String,
    /// Its name.
    pub name: String,
    /// Its installed system.
    pub installation: Option<String>,
    /// Its mainboard.
    pub hardware: Option<String>,
}

impl Seen {
    /// Its row.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell<'_>> {
        cells(self)
    }
}

columns! { row: Seen;
    /// Key of the machine, as in `run`.
    machine: Text = &row.machine;
    /// Its name.
    name: Text = &row.name;
    /// Its installed system, made from machine-id(5); null if the machine did not report it.
    installation: Text = row.installation.as_deref();
    /// Its mainboard, made from the firmware's data (DMI); null if that was not readable.
    hardware: Text = row.hardware.as_deref();
}
