//! Columns out of a Parquet file that was written here.

use std::collections::HashMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::export::ExportError;
use crate::export::table::{Cell, Column, Kind};

/// Values that are read at once.
const BATCH: usize = 64 * 1024;
/// Most rows of a group: those that are written here have 64 Ki, and other programs write up to this.
const MOST_ROWS: usize = 1 << 20;

/// The cells of a column, one for each row of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// The file lacks the column: no row has anything.
    Nothing,
    /// Texts: each of them once, and which one a row has.
    Text {
        /// The texts.
        words: Vec<String>,
        /// Their numbers, by row.
        of: Vec<Option<u32>>,
    },
    /// Bytes.
    Bytes(Vec<Option<Vec<u8>>>),
    /// Whole numbers; of moments microseconds since 1970.
    Whole(Vec<Option<i64>>),
    /// Numbers.
    Real(Vec<Option<f64>>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
}

/// Some columns of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Rows.
    pub rows: usize,
    /// The requested columns.
    pub columns: Vec<Values>,
    /// Its metadata, by key.
    pub about: Vec<(String, String)>,
}

impl Values {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text { words: Vec::new(), of: Vec::new() },
            Kind::Bytes => Self::Bytes(Vec::new()),
            Kind::Whole | Kind::Moment => Self::Whole(Vec::new()),
            Kind::Real => Self::Real(Vec::new()),
            Kind::Flag => Self::Flag(Vec::new()),
        }
    }

    /// The text of a row.
    #[must_use]
    pub fn text(&self, row: usize) -> Option<&str> {
        let Self::Text { words, of } = self else { return None };
        words.get(usize::try_from((*of.get(row)?)?).ok()?).map(String::as_str)
    }

    /// The whole number, or the moment, of a row.
    #[must_use]
    pub fn whole(&self, row: usize) -> Option<i64> {
        if let Self::Whole(all) = self { *all.get(row)? } else { None }
    }

    /// The flag of a row.
    #[must_use]
    pub fn flag(&self, row: usize) -> Option<bool> {
        if let Self::Flag(all) = self { *all.get(row)? } else { None }
    }

    /// The cell in a row, for a column of this kind.
    #[must_use]
    pub fn cell(&self, row: usize, kind: Kind) -> Cell<'_> {
        match self {
            Self::Nothing => Cell::Empty,
            Self::Text { .. } => self.text(row).into(),
            Self::Bytes(all) => {
                let bytes = all.get(row).and_then(Option::as_deref);
                bytes.map_or(Cell::Empty, |bytes| Cell::Bytes(bytes.into()))
            }
            Self::Whole(_) => match (self.whole(row), kind) {
                (Some(moment), Kind::Moment) => Cell::Moment(moment),
                (Some(number), _) => u64::try_from(number).ok().into(),
                (None, _) => Cell::Empty,
            },
            Self::Real(all) => all.get(row).copied().flatten().into(),
            Self::Flag(_) => self.flag(row).into(),
        }
    }
}

/// Puts values where the levels say that there is one.
fn place<T, U>(there: &[i16], values: Vec<T>, mut into: impl FnMut(Option<U>), mut of: impl FnMut(T) -> U) {
    let mut values = values.into_iter();
    for level in there {
        into(if *level > 0 { values.next().map(&mut of) } else { None });
    }
}

/// Reads these columns of a file, all of its rows. A column that the file lacks is empty: it was added to the
/// table later. The first is the key of the table, which every file has. Its values give the number of rows;
/// the file's statement about them is not trusted.
///
/// # Errors
/// When it is not such a file, is damaged, lacks the first column, has a column of another kind, or has a
/// group with too many rows.
pub fn read(file: File, columns: &[Column]) -> Result<Found, ExportError> {
    unpanicked(|| read_columns(file, columns))
}

/// Calls `parquet`, which panics on some damage (a dictionary index without an entry, bits that end too
/// early). Its state is dropped then, and the file is reported as damaged.
fn unpanicked<T>(read: impl FnOnce() -> Result<T, ExportError>) -> Result<T, ExportError> {
    thread_local! {
        static READS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    // The message of such a panic is suppressed; those of others are printed as before.
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !READS.get() {
                others(panic);
            }
        }));
    });
    READS.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(read));
    READS.set(false);
    outcome.unwrap_or_else(|_| Err(ExportError::Damaged))
}

fn read_columns(file: File, columns: &[Column]) -> Result<Found, ExportError> {
    let file = SerializedFileReader::new(file)?;
    let metadata = file.metadata().file_metadata();
    let about = metadata.key_value_metadata().into_iter().flatten();
    let about = about.map(|one| (one.key.clone(), one.value.clone().unwrap_or_default())).collect();
    let names: Vec<String> =
        metadata.schema_descr().columns().iter().map(|column| column.name().to_owned()).collect();
    let at: Vec<Option<usize>> =
        columns.iter().map(|column| names.iter().position(|name| name == column.name)).collect();
    if let (Some(None), Some(key)) = (at.first(), columns.first()) {
        return Err(ExportError::Table(format!("the column {} is not there", key.name)));
    }
    let empty =
        |(column, at): (&Column, &Option<usize>)| at.map_or(Values::Nothing, |_| Values::of(column.kind));
    let mut found: Vec<Values> = columns.iter().zip(&at).map(empty).collect();
    let mut known: Vec<HashMap<Vec<u8>, u32>> = vec![HashMap::new(); columns.len()];
    let mut rows = 0;
    for number in 0..file.num_row_groups() {
        let group = file.get_row_group(number)?;
        let many = usize::try_from(group.metadata().num_rows())
            .ok()
            .filter(|many| *many <= MOST_ROWS)
            .ok_or_else(|| ExportError::Table("a group has too many rows".into()))?;
        for (((column, at), values), known) in columns.iter().zip(&at).zip(&mut found).zip(&mut known) {
            if let Some(at) = *at {
                column_of(group.get_column_reader(at)?, column, many, values, known)?;
            }
        }
        // They were read, so this number is right.
        rows += many;
    }
    Ok(Found { rows, columns: found, about })
}

/// Reads a column of a group.
fn column_of(
    reader: ColumnReader,
    column: &Column,
    rows: usize,
    into: &mut Values,
    known: &mut HashMap<Vec<u8>, u32>,
) -> Result<(), ExportError> {
    let other = || ExportError::Table(format!("the column {} is of another kind", column.name));
    let mut left = rows;
    macro_rules! batches {
        ($reader:ident, $take:expr) => {{
            let mut reader = $reader;
            while left > 0 {
                let (mut there, mut values) = (Vec::new(), Vec::new());
                let (many, _, _) =
                    reader.read_records(left.min(BATCH), Some(&mut there), None, &mut values)?;
                if many == 0 {
                    return Err(ExportError::Table(format!("the column {} ends too early", column.name)));
                }
                left -= many;
                $take(there, values)?;
            }
            Ok(())
        }};
    }
    match (reader, into) {
        (ColumnReader::ByteArrayColumnReader(reader), Values::Text { words, of }) => {
            batches!(reader, |there: Vec<i16>, values: Vec<ByteArray>| {
                let mut wrong = false;
                let mut number = |bytes: ByteArray| {
                    if let Some(number) = known.get(bytes.data()) {
                        return *number;
                    }
                    let number = u32::try_from(words.len()).unwrap_or(u32::MAX);
                    let word = bytes.as_utf8().map(str::to_owned);
                    wrong |= word.is_err();
                    words.push(word.unwrap_or_default());
                    known.insert(bytes.data().to_vec(), number);
                    number
                };
                place(&there, values, |cell| of.push(cell), &mut number);
                if wrong {
                    Err(ExportError::Table(format!("the column {} is not text", column.name)))
                } else {
                    Ok(())
                }
            })
        }
        (ColumnReader::ByteArrayColumnReader(reader), Values::Bytes(all)) => {
            batches!(reader, |there: Vec<i16>, values: Vec<ByteArray>| {
                place(&there, values, |cell| all.push(cell), |bytes: ByteArray| bytes.data().to_vec());
                Ok::<(), ExportError>(())
            })
        }
        (ColumnReader::Int64ColumnReader(reader), Values::Whole(all)) => {
            batches!(reader, |there: Vec<i16>, values: Vec<i64>| {
                place(&there, values, |cell| all.push(cell), |number| number);
                Ok::<(), ExportError>(())
            })
        }
        (ColumnReader::DoubleColumnReader(reader), Values::Real(all)) => {
            batches!(reader, |there: Vec<i16>, values: Vec<f64>| {
                place(&there, values, |cell| all.push(cell), |number| number);
                Ok::<(), ExportError>(())
            })
        }
        (ColumnReader::BoolColumnReader(reader), Values::Flag(all)) => {
            batches!(reader, |there: Vec<i16>, values: Vec<bool>| {
                place(&there, values, |cell| all.push(cell), |flag| flag);
                Ok::<(), ExportError>(())
            })
        }
        _ => Err(other()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_library_is_a_damage_of_the_file_and_ends_nobody() {
        let read = unpanicked(|| -> Result<(), ExportError> { panic!("index 7 of 5") });
        assert!(matches!(read, Err(ExportError::Damaged)));
        assert!(unpanicked(|| Ok(7)).is_ok_and(|seven| seven == 7));
    }
}
