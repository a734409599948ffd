//! One row per finding.

use std::sync::LazyLock;

use tactus_format::columns;
use tactus_format::export::table::{Cell, Column};

use super::joined::Exported;
use super::{Table, owned};

/// The table.
pub const TABLE: Table = Table {
    name: "finding",
    about: "A row for each finding of the audit of each environment, and for each check that could not be \
        known or read there. `tactus explain ID` prints its meaning and its fix.",
    columns: || &ALL,
    rows: Some(|taken, take| {
        let own = |_: &[Cell<'_>]| cells(&Own { run: taken.run }).iter().map(owned).collect();
        EXPORTED.rows(&taken.source, &own, take)
    }),
};

static EXPORTED: LazyLock<Exported> = LazyLock::new(|| {
    Exported::of("findings", &["environment", "role", "id", "state", "severity", "message"])
});

static ALL: LazyLock<Vec<Column>> =
    LazyLock::new(|| COLUMNS.iter().copied().chain(EXPORTED.columns()).collect());

struct Own<'a> {
    run: &'a str,
}

columns! { row: Own<'_>;
    /// The run.
    run: Text = row.run;
}
