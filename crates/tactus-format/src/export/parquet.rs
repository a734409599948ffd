//! Tables as Parquet.

use super::columnar::Writer;
use super::table::Table;
use super::{Export, ExportError, Out, Shape, Source};

/// The entry.
pub static ENTRY: Export = Export {
    name: "parquet",
    about: "the same tables as Parquet, for DuckDB, pandas and Polars",
    ending: "parquet",
    shape: Shape::Table(write),
    cannot: "figures over time of less than a report interval, the largest single values, facts, the plan",
    notes: |_, _| Vec::new(),
};

fn write(source: &Source<'_>, table: &Table, out: Out<'_>) -> Result<(), ExportError> {
    let manifest = &source.contents.manifest;
    let about = vec![
        ("tactus.version", manifest.tactus.clone()),
        ("tactus.format", format!("{}.{}", manifest.format.major, manifest.format.minor)),
        ("tactus.plan", manifest.plan.clone()),
    ];
    let mut writer = Writer::begin(table.name, table.columns, about, out)?;
    (table.rows)(source, &mut |cells| writer.row(cells))?;
    writer.finish()
}
