//! Files of tables that say something else than they have.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use tactus_format::export::ExportError;
use tactus_format::export::columnar::{Found, Values, Writer, read};
use tactus_format::export::table::{Cell, Column, Kind};

const KEY: Column = Column { name: "run", kind: Kind::Text, about: "The run." };
const LATER: Column = Column { name: "later", kind: Kind::Whole, about: "Added to the table since." };
/// As many as are found among the digits of a footer.
const ROWS: u64 = 3_333;

/// Writes a file that has the key alone.
fn written() -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let columns = [KEY];
    let mut writer = Writer::begin("run", &columns, Vec::new(), Box::new(&mut bytes)).unwrap();
    (0..ROWS).for_each(|row| writer.row(&[Cell::Text(row.to_string().into())]).unwrap());
    writer.finish().unwrap();
    bytes.into_inner()
}

/// A number as footers have it (Thrift, compact).
fn digits(number: u64) -> Vec<u8> {
    let (mut left, mut bytes) = (number << 1, Vec::new());
    while left > 127 {
        bytes.push(u8::try_from(left & 127).unwrap() | 128);
        left >>= 7;
    }
    bytes.push(u8::try_from(left).unwrap());
    bytes
}

/// The same file, with a footer that claims `rows` rows.
fn saying(bytes: &[u8], rows: u64) -> Vec<u8> {
    let length = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap());
    let at = bytes.len() - 8 - usize::try_from(length).unwrap();
    let (mut own, mut left, mut found) = (Vec::new(), &bytes[at..bytes.len() - 8], 0);
    while !left.is_empty() {
        if let Some(rest) = left.strip_prefix(digits(ROWS).as_slice()) {
            own.extend(digits(rows));
            (left, found) = (rest, found + 1);
        } else {
            own.push(left[0]);
            left = &left[1..];
        }
    }
    assert!(found >= 2, "{found}");
    let length = u32::try_from(own.len()).unwrap().to_le_bytes();
    [&bytes[..at], &own, &length, b"PAR1"].concat()
}

fn found(dir: &Path, bytes: &[u8], columns: &[Column]) -> Result<Found, ExportError> {
    let path = dir.join("a.parquet");
    fs::write(&path, bytes).unwrap();
    read(fs::File::open(path).unwrap(), columns)
}

#[test]
fn rows_that_a_file_only_says_it_has_are_refused_and_a_column_that_is_not_there_takes_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = written();
    let whole = found(dir.path(), &bytes, &[KEY, LATER]).unwrap();
    assert_eq!((whole.rows, &whole.columns[1]), (3_333, &Values::Nothing));
    assert_eq!(whole.columns[1].cell(7, Kind::Whole), Cell::Empty);
    // A file without its key.
    let error = found(dir.path(), &bytes, &[LATER]).unwrap_err();
    assert!(error.to_string().contains("later is not there"), "{error}");
    for rows in [3_334, 1_000_000, 4_000_000_000_000] {
        for columns in [&[KEY, LATER][..], &[LATER, KEY], &[LATER]] {
            assert!(found(dir.path(), &saying(&bytes, rows), columns).is_err(), "{rows}");
        }
    }
    let error = found(dir.path(), &saying(&bytes, 4_000_000_000_000), &[KEY]).unwrap_err();
    assert!(error.to_string().contains("a group has too many rows"), "{error}");
}

/// A file of every kind of column, some cells empty, and many rows with the same text.
fn mixed() -> (Vec<u8>, Vec<Column>) {
    let column = |name, kind| Column { name, kind, about: "One." };
    let columns = vec![
        KEY,
        column("number", Kind::Whole),
        column("share", Kind::Real),
        column("flag", Kind::Flag),
        column("bytes", Kind::Bytes),
    ];
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = Writer::begin("run", &columns, Vec::new(), Box::new(&mut bytes)).unwrap();
    for row in 0..40_u64 {
        let of_three = |cell: Cell<'static>| if row % 3 == 0 { Cell::Empty } else { cell };
        let cells = [
            Cell::Text(format!("run {}", row % 5).into()),
            of_three(Cell::Whole(row * 1_000)),
            of_three(Cell::from(Some(0.5))),
            of_three(Cell::from(Some(row % 2 == 0))),
            of_three(Cell::Bytes(vec![7; 3].into())),
        ];
        writer.row(&cells).unwrap();
    }
    writer.finish().unwrap();
    (bytes.into_inner(), columns)
}

#[test]
fn a_file_that_was_damaged_anywhere_is_read_or_refused_and_ends_no_reader() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, columns) = mixed();
    assert_eq!(found(dir.path(), &bytes, &columns).unwrap().rows, 40);
    let mut refused = 0;
    for at in 4..bytes.len() - 8 {
        for change in [0x01, 0x80, 0xff] {
            let mut own = bytes.clone();
            own[at] ^= change;
            refused += usize::from(found(dir.path(), &own, &columns).is_err());
        }
    }
    assert!(refused > bytes.len() / 4, "{refused} of {} bytes", bytes.len());
}
