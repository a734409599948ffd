//! Rows into a Parquet file: columns that may be null, gzip, groups of rows that are written as they fill.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, GzipLevel, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use crate::export::table::{Cell, Column, Kind};
use crate::export::{ExportError, Out};

/// Rows that are held before they are written.
const GROUP: usize = 64 * 1024;

/// Writes a file, row by row.
pub struct Writer<'a> {
    name: &'static str,
    columns: &'a [Column],
    file: SerializedFileWriter<Out<'a>>,
    held: Vec<Values>,
}

impl<'a> Writer<'a> {
    /// Begins a file of this table; `about` is what stands in its metadata, by key.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(
        name: &'static str,
        columns: &'a [Column],
        about: Vec<(&'static str, String)>,
        out: Out<'a>,
    ) -> Result<Self, ExportError> {
        let about = about.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect();
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::GZIP(GzipLevel::default()))
            .set_created_by(format!("tactus version {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(about))
            // Of each group of rows; those of each page would be a tenth of a small file.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true);
        for (column, encoding) in columns.iter().filter_map(|column| Some((column, encoding(name, column)?)))
        {
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, encoding);
        }
        let properties = properties.build();
        let file = SerializedFileWriter::new(out, schema(name, columns)?, Arc::new(properties))?;
        let held = columns.iter().map(|column| Values::of(column.kind)).collect();
        Ok(Self { name, columns, file, held })
    }

    /// Writes a row: one cell for each column.
    ///
    /// # Errors
    /// When a cell does not fit its column, or it cannot be written.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), ExportError> {
        fitting(self.name, self.columns, cells)?;
        for ((values, cell), column) in self.held.iter_mut().zip(cells).zip(self.columns) {
            values.add(cell, column)?;
        }
        match self.held.first().is_some_and(|first| first.there.len() >= GROUP) {
            true => self.group(),
            false => Ok(()),
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<(), ExportError> {
        self.group()?;
        self.file.close()?;
        Ok(())
    }

    /// Writes what is held as a group of rows.
    fn group(&mut self) -> Result<(), ExportError> {
        if self.held.first().is_none_or(|first| first.there.is_empty()) {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for values in &mut self.held {
            let Some(mut column) = group.next_column()? else { break };
            let there = Some(values.there.as_slice());
            match (column.untyped(), &values.of) {
                (ColumnWriter::ByteArrayColumnWriter(writer), Of::Bytes(all)) => {
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
}

/// Whether these cells are a row of these columns.
///
/// # Errors
/// With the first that is not.
pub fn fitting(name: &str, columns: &[Column], cells: &[Cell<'_>]) -> Result<(), ExportError> {
    if cells.len() != columns.len() {
        return Err(ExportError::Table(format!("{} cells in {name}", cells.len())));
    }
    match cells.iter().zip(columns).find(|(cell, column)| !cell.is(column.kind)) {
        Some((cell, column)) => Err(ExportError::Table(format!("{cell:?} in the column {}", column.name))),
        None => Ok(()),
    }
}

/// How a column is written where a dictionary, as Parquet has it of itself, would be longer than what is in it.
fn encoding(table: &str, column: &Column) -> Option<Encoding> {
    match (column.kind, column.name) {
        // Of a run each row is another one: keys of 64 bits, and names.
        (Kind::Text, "run" | "machine" | "content" | "name" | "job") if table == "run" => {
            Some(Encoding::DELTA_LENGTH_BYTE_ARRAY)
        }
        // Rows of one run follow each other.
        (Kind::Text, "run") => Some(Encoding::DELTA_BYTE_ARRAY),
        // Quantiles are rounded to three digits: of those that are no rare events many are the same.
        (Kind::Whole, "cycles" | "p50_ns" | "p99_ns" | "p999_ns") => None,
        // Of moments and latencies few are twice the same.
        (Kind::Whole | Kind::Moment, _) => Some(Encoding::DELTA_BINARY_PACKED),
        _ => None,
    }
}

fn schema(name: &str, columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let field = |column: &Column| {
        let (physical, logical) = match column.kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Bytes => (Physical::BYTE_ARRAY, None),
            Kind::Whole => (Physical::INT64, None),
            Kind::Real => (Physical::DOUBLE, None),
            Kind::Flag => (Physical::BOOLEAN, None),
            Kind::Moment => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        };
        let field = Type::primitive_type_builder(column.name, physical);
        field.with_logical_type(logical).with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder(name).with_fields(fields).build().map(Arc::new)
}

/// The cells of a column that are held.
struct Values {
    /// 1 for each that is there, 0 for each that is not.
    there: Vec<i16>,
    of: Of,
}

enum Of {
    Bytes(Vec<ByteArray>),
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Flag(Vec<bool>),
}

impl Values {
    const fn of(kind: Kind) -> Self {
        let of = match kind {
            Kind::Text | Kind::Bytes => Of::Bytes(Vec::new()),
            Kind::Whole | Kind::Moment => Of::Whole(Vec::new()),
            Kind::Real => Of::Real(Vec::new()),
            Kind::Flag => Of::Flag(Vec::new()),
        };
        Self { there: Vec::new(), of }
    }

    fn add(&mut self, cell: &Cell<'_>, column: &Column) -> Result<(), ExportError> {
        self.there.push(i16::from(!matches!(cell, Cell::Empty)));
        match (&mut self.of, cell) {
            (Of::Bytes(all), Cell::Text(text)) => all.push(text.as_bytes().to_vec().into()),
            (Of::Bytes(all), Cell::Bytes(bytes)) => all.push(bytes.to_vec().into()),
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
            Of::Bytes(all) => all.clear(),
            Of::Whole(all) => all.clear(),
            Of::Real(all) => all.clear(),
            Of::Flag(all) => all.clear(),
        }
    }
}
