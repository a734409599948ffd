//! Tables as CSV (RFC 4180, UTF-8, with names of columns).

use std::io::{BufWriter, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::table::{Cell, Table};
use super::{Export, ExportError, Out, Shape, Source};

/// The entry.
pub static ENTRY: Export = Export {
    name: "csv",
    about: "tables as CSV: a directory of scenarios, series, ticks, histograms, values and findings",
    ending: "csv",
    shape: Shape::Table(write),
    cannot: "figures over time of less than a report interval, the largest single values, facts, the plan",
    notes: |_, _| Vec::new(),
};

fn write(source: &Source<'_>, table: &Table, out: Out<'_>) -> Result<(), ExportError> {
    let mut out = BufWriter::with_capacity(64 << 10, out);
    let mut names: Vec<Cell<'_>> = Vec::new();
    names.extend(table.columns.iter().map(|column| Cell::from(column.name)));
    line(&mut out, &names)?;
    (table.rows)(source, &mut |cells| Ok(line(&mut out, cells)?))?;
    Ok(out.flush()?)
}

fn line(out: &mut impl Write, cells: &[Cell<'_>]) -> std::io::Result<()> {
    for (number, cell) in cells.iter().enumerate() {
        if number > 0 {
            out.write_all(b",")?;
        }
        match cell {
            Cell::Empty => {}
            Cell::Text(text) => self::text(out, text)?,
            Cell::Whole(number) => write!(out, "{number}")?,
            Cell::Real(number) => write!(out, "{number}")?,
            Cell::Flag(flag) => write!(out, "{flag}")?,
            Cell::Bytes(bytes) => out.write_all(STANDARD.encode(bytes).as_bytes())?,
            Cell::Moment(moment) => match jiff::Timestamp::from_microsecond(*moment) {
                Ok(moment) => write!(out, "{moment}")?,
                Err(error) => return Err(std::io::Error::other(error)),
            },
        }
    }
    out.write_all(b"\n")
}

/// Characters with which spreadsheets begin a formula. The words of a bundle may come from a stranger, and a
/// formula can send neighbouring cells to another server, or call a program.
const COMPUTED: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// A text. An empty one is quoted, so that it differs from a missing one. One that a spreadsheet would
/// compute gets an apostrophe before it, by which spreadsheets mark a text.
fn text(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    let is_computed =
        text.trim_start_matches(|c: char| c.is_whitespace() || c.is_control()).starts_with(COMPUTED);
    let mark = if is_computed { "'" } else { "" };
    let quoted = text.is_empty() || text.contains(['"', ',', '\n', '\r']) || text.trim() != text;
    if !quoted {
        return write!(out, "{mark}{text}");
    }
    write!(out, "\"{mark}{}\"", text.replace('"', "\"\""))
}
