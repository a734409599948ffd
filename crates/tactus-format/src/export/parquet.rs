//! Tables as Parquet: columns that may be null, gzip, groups of rows that are written as they fill.

use std::sync::Arc;

use ::parquet::basic::{Compression, GzipLevel, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{Type, TypePtr};

use super::table::{Cell, Column, Kind, Table};
use super::{Export, ExportError, Out, Shape, Source};

/// The entry.
pub static ENTRY: Export = Export {
    name: "parquet",
    about: "the same tables as Parquet, for DuckDB, pandas and Polars",
    ending: "parquet",
    shape: Shape::Table(write),
    cannot: "figures over time of less than a tick, the largest single values, facts, the plan",
    notes: |_, _| Vec::new(),
};

/// So many rows are held before they are written.
const GROUP: usize = 64 * 1024;

fn write(source: &Source<'_>, table: &Table, out: Out<'_>) -> Result<(), ExportError> {
    let manifest = &source.contents.manifest;
    let format = format!("{}.{}", manifest.format.major, manifest.format.minor);
    let about = [
        ("tactus.version", manifest.tactus.clone()),
        ("tactus.format", format),
        ("tactus.plan", manifest.plan.clone()),
    ];
    let about = about.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
    let properties = WriterProperties::builder()
        .set_compression(Compression::GZIP(GzipLevel::default()))
        .set_created_by(format!("tactus version {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(about))
        .build();
    let mut writer = SerializedFileWriter::new(out, schema(table)?, Arc::new(properties))?;
    let mut held: Vec<Values> = table.columns.iter().map(|column| Values::of(column.kind)).collect();
    (table.rows)(source, &mut |cells| {
        if cells.len() != held.len() {
            return Err(ExportError::Table(format!("{} cells in {}", cells.len(), table.name)));
        }
        for ((values, cell), column) in held.iter_mut().zip(cells).zip(table.columns) {
            values.add(cell, column)?;
        }
        match held.first().is_some_and(|first| first.there.len() >= GROUP) {
            true => group(&mut writer, &mut held),
            false => Ok(()),
        }
    })?;
    group(&mut writer, &mut held)?;
    writer.close()?;
    Ok(())
}

fn schema(table: &Table) -> Result<TypePtr, ParquetError> {
    let field = |column: &Column| {
        let (physical, logical) = match column.kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Whole => (Physical::INT64, None),
            Kind::Real => (Physical::DOUBLE, None),
            Kind::Flag => (Physical::BOOLEAN, None),
            Kind::Moment => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        };
        let field = Type::primitive_type_builder(column.name, physical);
        field.with_logical_type(logical).with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder(table.name).with_fields(fields).build().map(Arc::new)
}

/// The cells of a column that are held.
struct Values {
    /// 1 for each that is there, 0 for each that is not.
    there: Vec<i16>,
    of: Of,
}

enum Of {
    Text(Vec<ByteArray>),
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Flag(Vec<bool>),
}

impl Values {
    const fn of(kind: Kind) -> Self {
        let of = match kind {
            Kind::Text => Of::Text(Vec::new()),
            Kind::Whole | Kind::Moment => Of::Whole(Vec::new()),
            Kind::Real => Of::Real(Vec::new()),
            Kind::Flag => Of::Flag(Vec::new()),
        };
        Self { there: Vec::new(), of }
    }

    fn add(&mut self, cell: &Cell<'_>, column: &Column) -> Result<(), ExportError> {
        if !cell.is(column.kind) {
            return Err(ExportError::Table(format!("{cell:?} in the column {}", column.name)));
        }
        self.there.push(i16::from(!matches!(cell, Cell::Empty)));
        match (&mut self.of, cell) {
            (Of::Text(all), Cell::Text(text)) => all.push(text.as_bytes().to_vec().into()),
            (Of::Whole(all), Cell::Whole(number)) => all.push(i64::try_from(*number).map_err(|_| {
                ExportError::TooLarge(format!(
                    "{number} in the column {} is more than Parquet holds",
                    column.name
                ))
            })?),
            (Of::Whole(all), Cell::Moment(moment)) => all.push(*moment),
            (Of::Real(all), Cell::Real(number)) => all.push(*number),
            (Of::Flag(all), Cell::Flag(flag)) => all.push(*flag),
            _ => {}
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.there.clear();
        match &mut self.of {
            Of::Text(all) => all.clear(),
            Of::Whole(all) => all.clear(),
            Of::Real(all) => all.clear(),
            Of::Flag(all) => all.clear(),
        }
    }
}

/// Writes what is held as a group of rows.
fn group(writer: &mut SerializedFileWriter<Out<'_>>, held: &mut [Values]) -> Result<(), ExportError> {
    if held.first().is_none_or(|first| first.there.is_empty()) {
        return Ok(());
    }
    let mut group = writer.next_row_group()?;
    for values in held {
        let Some(mut column) = group.next_column()? else { break };
        let there = Some(values.there.as_slice());
        match (column.untyped(), &values.of) {
            (ColumnWriter::ByteArrayColumnWriter(writer), Of::Text(all)) => {
                writer.write_batch(all, there, None)?
            }
            (ColumnWriter::Int64ColumnWriter(writer), Of::Whole(all)) => {
                writer.write_batch(all, there, None)?
            }
            (ColumnWriter::DoubleColumnWriter(writer), Of::Real(all)) => {
                writer.write_batch(all, there, None)?
            }
            (ColumnWriter::BoolColumnWriter(writer), Of::Flag(all)) => {
                writer.write_batch(all, there, None)?
            }
            _ => return Err(ExportError::Table("a column is of another kind".into())),
        };
        column.close()?;
        values.clear();
    }
    group.close()?;
    Ok(())
}
