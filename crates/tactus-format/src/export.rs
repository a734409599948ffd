//! A bundle in the formats of the field. Pure: a bundle as it was read in, bytes out.
//!
//! An entry of [`EXPORTS`] is one file here. [`Export::notes`] names everything in a bundle that a format
//! cannot express: nothing is left out silently.

#[cfg(feature = "parquet")]
pub mod columnar;
mod csv;
mod cyclictest;
mod cyclictest_histogram;
mod cyclictest_json;
mod hlog;
pub mod openmetrics;
mod oslat;
mod oslat_json;
#[cfg(feature = "parquet")]
mod parquet;
mod rt_tests;
mod series;
pub mod table;

use std::io::{self, Write};

use tactus_model::bundle::{Contents, Row, slug};
use tactus_model::document::{Document, Entry};
use tactus_model::histograms::Place;
use tactus_model::outcome::Yields;
use tactus_model::series::SeriesKey;
use tactus_model::ticks::TickScalars;

use table::{TABLES, Table};

pub use cyclictest_histogram::whole as cyclictest_histogram;
pub use cyclictest_json::whole as cyclictest_json;
pub use oslat::{Rows as OslatRows, whole as oslat_table};
pub use oslat_json::whole as oslat_json;
pub use series::{Counted, of as counted};

/// The callback for each tick of a row.
pub type TakeTick<'a> = dyn FnMut(&SeriesKey, &TickScalars) -> io::Result<()> + 'a;
/// The callback for each interval of a row's histogram log: tag, place, and counts by number of the bucket.
pub type TakeInterval<'a> = dyn FnMut(&str, Place, &[(usize, u64)]) -> io::Result<()> + 'a;

/// The logs of a bundle's rows, which are too long to be held: read again, line by line.
pub trait Logs {
    /// Every tick of a row, each series in its order; false: the row has no such log.
    ///
    /// # Errors
    /// When the log cannot be read, and those of `take`.
    fn ticks(&self, row: usize, take: &mut TakeTick<'_>) -> io::Result<bool>;

    /// Calls with every interval of a row; not at all if the row has no such log.
    ///
    /// # Errors
    /// When the log cannot be read, and those of `take`.
    fn intervals(&self, row: usize, take: &mut TakeInterval<'_>) -> io::Result<()>;
}

/// The data to export.
pub struct Source<'a> {
    /// The bundle, or the requested ones of its rows.
    pub contents: &'a Contents,
    /// The same in numbers: verdicts, tail bounds, published figures.
    pub document: &'a Document,
    /// The number of each row in the bundle, from 0.
    pub numbers: &'a [usize],
    /// Their logs.
    pub logs: &'a dyn Logs,
}

/// How it is exported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// One unit of cyclictest's numbers, in ns: 1 or 1000.
    pub unit_ns: Option<u64>,
    /// Values of at least this many units are in no row of cyclictest's histogram, and are counted as
    /// overflows.
    pub histogram: Option<u64>,
    /// cyclictest's histogram has all these rows, those of nothing but zeros too, as versions before 2.7 write it.
    pub every_row: bool,
    /// cyclictest's histogram has a column of the sums, as with `-H`.
    pub sums: bool,
}

impl Options {
    fn unit_ns(self) -> u64 {
        self.unit_ns.unwrap_or(1_000).max(1)
    }
}

/// A row, with all known facts about it.
#[derive(Clone, Copy)]
pub struct Measured<'a> {
    /// Its number in the bundle, from 1.
    pub number: usize,
    /// Its logs and histograms.
    pub row: &'a Row,
    /// Its figures.
    pub entry: &'a Entry,
}

impl<'a> Source<'a> {
    /// Every row.
    pub fn rows(&self) -> impl Iterator<Item = Measured<'a>> {
        let rows = self.contents.rows.iter().zip(&self.document.scenarios);
        rows.zip(self.numbers).map(|((row, entry), number)| Measured { number: number + 1, row, entry })
    }

    /// The rows that measured latencies.
    fn latencies(&self) -> impl Iterator<Item = Measured<'a>> {
        self.rows().filter(|measured| !measured.row.result.series().is_empty())
    }
}

impl Measured<'_> {
    /// As it is called in a sentence.
    fn name(&self) -> String {
        let name = &self.entry.name;
        match self.entry.repeat {
            Some(repeat) => format!("scenario {}, `{name}`, run {repeat}", self.number),
            None => format!("scenario {}, `{name}`", self.number),
        }
    }

    /// The name of its file, without the ending.
    fn file(&self) -> String {
        format!("{:02}-{}", self.number, slug(&self.entry.name))
    }
}

/// Why something cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It cannot be written, or the bundle cannot be read on.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A figure is larger than a format can hold.
    #[error("{0}")]
    TooLarge(String),
    /// A cell does not fit its column.
    #[error("a row of the table does not fit its columns: {0}")]
    Table(String),
    /// A file of columns is not as it was written.
    #[error("it is damaged: its columns cannot be read")]
    Damaged,
    /// Parquet says so.
    #[cfg(feature = "parquet")]
    #[error(transparent)]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// Where bytes go.
pub type Out<'a> = Box<dyn Write + Send + 'a>;

/// The part of a bundle that one file contains.
#[derive(Clone, Copy)]
pub enum Shape {
    /// Everything.
    Bundle(fn(&Source<'_>, Out<'_>) -> Result<(), ExportError>),
    /// A scenario that measured latencies.
    Scenario(fn(&Source<'_>, Measured<'_>, Options, Out<'_>) -> Result<(), ExportError>),
    /// A table.
    Table(fn(&Source<'_>, &Table, Out<'_>) -> Result<(), ExportError>),
}

/// A format.
pub struct Export {
    /// As `--format` takes it.
    pub name: &'static str,
    /// One line for lists.
    pub about: &'static str,
    /// How its files end.
    pub ending: &'static str,
    /// The part of a bundle in one file.
    pub shape: Shape,
    /// Data that it cannot express for any bundle.
    pub cannot: &'static str,
    /// Data of this bundle that it cannot express, in sentences.
    notes: fn(&Source<'_>, Options) -> Vec<String>,
}

/// Every format.
pub static EXPORTS: &[&Export] = &[
    &cyclictest_json::ENTRY,
    &cyclictest_histogram::ENTRY,
    &oslat_json::ENTRY,
    &hlog::ENTRY,
    &csv::ENTRY,
    #[cfg(feature = "parquet")]
    &parquet::ENTRY,
    &openmetrics::ENTRY,
];

/// A file to be written.
pub struct Part<'a> {
    /// Its name where it is one of several.
    pub name: String,
    of: PartOf<'a>,
}

enum PartOf<'a> {
    Bundle,
    Scenario(Measured<'a>),
    Table(&'static Table),
}

impl Export {
    /// Whether it is always a directory of several files.
    #[must_use]
    pub const fn is_directory(&self) -> bool {
        matches!(self.shape, Shape::Table(_))
    }

    /// The files that a bundle becomes.
    #[must_use]
    pub fn parts<'a>(&self, source: &Source<'a>) -> Vec<Part<'a>> {
        let named = |name: &str, of| Part { name: format!("{name}.{}", self.ending), of };
        match self.shape {
            Shape::Bundle(_) => vec![named("bundle", PartOf::Bundle)],
            Shape::Scenario(_) => {
                source.latencies().map(|one| named(&one.file(), PartOf::Scenario(one))).collect()
            }
            Shape::Table(_) => TABLES.iter().map(|one| named(one.name, PartOf::Table(one))).collect(),
        }
    }

    /// Writes one of them.
    ///
    /// # Errors
    /// When a figure does not fit, or it cannot be written.
    pub fn write(
        &self,
        source: &Source<'_>,
        part: &Part<'_>,
        options: Options,
        out: Out<'_>,
    ) -> Result<(), ExportError> {
        match (self.shape, &part.of) {
            (Shape::Bundle(write), PartOf::Bundle) => write(source, out),
            (Shape::Scenario(write), PartOf::Scenario(one)) => write(source, *one, options, out),
            (Shape::Table(write), PartOf::Table(table)) => write(source, table, out),
            _ => Err(ExportError::Table("it is a part of another format".into())),
        }
    }

    /// Data of this bundle that it cannot express, in sentences.
    #[must_use]
    pub fn notes(&self, source: &Source<'_>, options: Options) -> Vec<String> {
        let mut notes = Vec::new();
        if let Shape::Scenario(_) = self.shape {
            notes.extend(source.rows().filter_map(|measured| left_out(self.name, &measured)));
        }
        notes.extend((self.notes)(source, options));
        notes
    }
}

/// Why a row has no file.
fn left_out(format: &str, measured: &Measured<'_>) -> Option<String> {
    let Measured { row, entry, .. } = measured;
    if !row.result.series().is_empty() {
        return None;
    }
    let why = match (row.result.outcome.yields(), &entry.reason) {
        (Yields::Values, _) if !row.result.values().is_empty() => {
            format!("it contains values, which {format} cannot hold: csv, parquet and openmetrics can")
        }
        (_, Some(reason)) => format!("nothing was measured: {reason}"),
        (_, None) => "nothing was measured".to_owned(),
    };
    Some(format!("{} is left out: {why}", measured.name()))
}

/// Says it once of several scenarios.
fn of_each<'a>(
    rows: impl Iterator<Item = Measured<'a>>,
    say: impl Fn(&Measured<'a>) -> Option<String>,
) -> Vec<String> {
    rows.filter_map(|measured| say(&measured).map(|what| format!("{}: {what}", measured.name()))).collect()
}

#[cfg(test)]
mod tests;
