//! Tables: the common part of CSV and Parquet. A table is one file here. Each column stands with its meaning
//! beside the code that fills it, and the book's page of columns is made from that.

mod findings;
mod histograms;
mod scenarios;
mod series;
mod ticks;
mod values;

use std::borrow::Cow;

use super::{ExportError, Source};

/// The kind of values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words.
    Text,
    /// A whole number that is not negative.
    Whole,
    /// A number.
    Real,
    /// Yes or no.
    Flag,
    /// A moment: microseconds since 1970, UTC.
    Moment,
    /// Bytes that are no text.
    Bytes,
}

impl Kind {
    /// As the book says it: in CSV, and in Parquet.
    #[must_use]
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("text", "STRING"),
            Self::Whole => ("whole number", "INT64"),
            Self::Real => ("number", "DOUBLE"),
            Self::Flag => ("true or false", "BOOLEAN"),
            Self::Moment => ("time, RFC 3339", "TIMESTAMP(us, UTC)"),
            Self::Bytes => ("base64", "BINARY"),
        }
    }
}

/// The cell of a row. An unknown value is [`Cell::Empty`], never 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Empty,
    /// Words.
    Text(Cow<'a, str>),
    /// A whole number.
    Whole(u64),
    /// A number.
    Real(f64),
    /// Yes or no.
    Flag(bool),
    /// Microseconds since 1970, UTC.
    Moment(i64),
    /// Bytes that are no text.
    Bytes(Cow<'a, [u8]>),
}

impl Cell<'_> {
    /// Whether a column of this kind may have it.
    #[must_use]
    pub const fn is(&self, kind: Kind) -> bool {
        match self {
            Self::Empty => true,
            Self::Text(_) => matches!(kind, Kind::Text),
            Self::Whole(_) => matches!(kind, Kind::Whole),
            Self::Real(_) => matches!(kind, Kind::Real),
            Self::Flag(_) => matches!(kind, Kind::Flag),
            Self::Moment(_) => matches!(kind, Kind::Moment),
            Self::Bytes(_) => matches!(kind, Kind::Bytes),
        }
    }
}

/// A moment of RFC 3339; empty if the text is not one.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a>(pub Option<&'a str>);

impl From<Moment<'_>> for Cell<'_> {
    fn from(Moment(text): Moment<'_>) -> Self {
        let moment = text.and_then(|text| text.parse::<jiff::Timestamp>().ok());
        moment.map_or(Self::Empty, |moment| Self::Moment(moment.as_microsecond()))
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Vec<u8>> for Cell<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<u64> for Cell<'_> {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<u32> for Cell<'_> {
    fn from(number: u32) -> Self {
        Self::Whole(number.into())
    }
}

impl From<usize> for Cell<'_> {
    fn from(number: usize) -> Self {
        Self::Whole(u64::try_from(number).unwrap_or(u64::MAX))
    }
}

impl From<f64> for Cell<'_> {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Real(number) } else { Self::Empty }
    }
}

impl From<bool> for Cell<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<'a, T: Into<Self>> From<Option<T>> for Cell<'a> {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Empty, Into::into)
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// Their meaning, with the unit.
    pub about: &'static str,
}

/// The callback for each row.
pub type TakeRow<'a> = dyn FnMut(&[Cell<'_>]) -> Result<(), ExportError> + 'a;

/// A table.
pub struct Table {
    /// The name of its file, without the ending.
    pub name: &'static str,
    /// The meaning of a row.
    pub about: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
    /// Calls with each of its rows: one cell for each column.
    pub rows: fn(&Source<'_>, &mut TakeRow<'_>) -> Result<(), ExportError>,
}

/// Every table.
pub static TABLES: &[Table] =
    &[scenarios::TABLE, series::TABLE, ticks::TABLE, histograms::TABLE, values::TABLE, findings::TABLE];

/// The columns of a table beside what fills them: `COLUMNS`, and `cells` of a row.
#[macro_export]
macro_rules! columns {
    ($row:ident: $Row:ty; $($(#[doc = $about:literal])+ $column:ident: $kind:ident = $value:expr;)+) => {
        const COLUMNS: &[$crate::export::table::Column] = &[$($crate::export::table::Column {
            name: stringify!($column),
            kind: $crate::export::table::Kind::$kind,
            about: concat!($($about),+),
        }),+];

        fn cells<'a>($row: &'a $Row) -> Vec<$crate::export::table::Cell<'a>> {
            vec![$($crate::export::table::Cell::from($value)),+]
        }
    };
}
pub use crate::columns;

/// The page of the book that says what the columns mean.
#[must_use]
pub fn page() -> String {
    let mut text = String::from(
        "# Tables of a bundle\n\n`tactus convert BUNDLE --to csv --out DIR` and `--to parquet` write a file \
         for each of these tables. Times are in ns where a name ends so. Unknown and unmeasured values are \
         empty (CSV) or null (Parquet), never 0. Numbers in CSV have a point and no blanks; texts are UTF-8, \
         quoted by RFC 4180. A text that a spreadsheet would take for a formula (it begins with `=`, `+`, \
         `-` or `@`) has an apostrophe before it in CSV. Bundles of others may contain such names. In \
         Parquet every text is unchanged.\n\n`scenario` and `series` join the tables. Columns are added at \
         the end of a table; existing ones keep their meaning.\n\nThis page is made from the code \
         (`UPDATE_DOCS=1 cargo test -p tactus-format export`).\n",
    );
    for table in TABLES {
        text += &format!(
            "\n## {}\n{}\n\n| column | CSV | Parquet | what it is |\n|---|---|---|---|\n",
            table.name, table.about
        );
        for column in table.columns {
            let (csv, parquet) = column.kind.words();
            text += &format!(
                "| `{}` | {csv} | {parquet} | {} |\n",
                column.name,
                column.about.trim().replace('|', "\\|")
            );
        }
    }
    text
}
