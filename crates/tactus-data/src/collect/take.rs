//! A bundle as rows, once it was verified.

use std::collections::BTreeMap;
use std::io;

use tactus_bundle::{self as bundle, Trust};
use tactus_format::export::table::Cell;
use tactus_format::export::{self, Source, TakeInterval, TakeTick};
use tactus_model::facts::{Facts, Reading};
use tactus_report::document;

use super::reason;
use super::sort::Planned;
use crate::identity::{cut, cut_machine};
use crate::table::{FACT, TABLES, Taken, owned};

/// The rows that a bundle has in a table.
pub type Rows = Vec<Vec<Cell<'static>>>;

/// The data read from a bundle.
#[derive(Debug)]
pub struct Read {
    /// Its rows by table.
    pub rows: BTreeMap<&'static str, Rows>,
    /// Its facts, which are compared with those of the run before.
    pub facts: BTreeMap<String, Facts>,
}

impl Read {
    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        let reading = |(path, reading): (&String, &Reading)| {
            let text = match reading {
                Reading::Text(text) | Reading::Cut(text) | Reading::Unreadable(text) => text.len(),
                Reading::Absent => 0,
            };
            size_of::<(String, Reading)>() + path.len() + text
        };
        let facts = self.facts.values().flat_map(|facts| &facts.0).map(reading);
        self.rows.values().map(|rows| bytes(rows)).chain(facts).sum()
    }
}

/// About how much memory rows take.
pub fn bytes(rows: &[Vec<Cell<'static>>]) -> usize {
    let cell = |cell: &Cell<'_>| {
        size_of::<Cell<'_>>()
            + match cell {
                Cell::Text(text) => text.len(),
                Cell::Bytes(bytes) => bytes.len(),
                _ => 0,
            }
    };
    rows.iter().flatten().map(cell).sum()
}

/// Longest text of a cell, in bytes: a series has those of its scenario, and there are thousands.
const MOST_TEXT: usize = 16 * 1024;

/// Most readings of one environment: machines have some hundreds.
const MOST_READINGS: usize = 65_536;

/// An owned copy of a cell, with its text cut and its number within the table's range. After this no single
/// bundle can make a table fail.
fn short(cell: &Cell<'_>) -> Cell<'static> {
    match cell {
        Cell::Text(text) => Cell::Text(cut(text, MOST_TEXT).to_owned().into()),
        Cell::Whole(number) => Cell::Whole((*number).min(i64::MAX.unsigned_abs())),
        cell => owned(cell),
    }
}

/// The logs of a bundle.
struct Logs(bundle::Logs);

impl export::Logs for Logs {
    fn ticks(&self, row: usize, take: &mut TakeTick<'_>) -> io::Result<bool> {
        self.0.ticks(row, take)
    }

    fn intervals(&self, row: usize, take: &mut TakeInterval<'_>) -> io::Result<()> {
        self.0.intervals(row, take)
    }
}

/// Reads a bundle, every file of which must have the checksum that its manifest names.
///
/// # Errors
/// Why it is refused, in a sentence.
pub fn take(planned: &Planned) -> Result<Read, String> {
    let dir = planned.at.open()?;
    let (mut contents, logs) =
        bundle::read_with_logs(&dir, Trust::Whole).map_err(|error| reason::of(&error))?;
    if let Some(first) = contents.damage.first() {
        return Err(format!("it is incomplete: {first}"));
    }
    // Detects a writer that changed it meanwhile.
    if crate::identity::content_key(&contents.manifest) != planned.claim.content {
        return Err("it was changed while it was read".into());
    }
    if let Some(facts) = contents.facts.values().find(|facts| facts.0.len() > MOST_READINGS) {
        return Err(format!(
            "an environment of it has {} readings, more than the limit of {MOST_READINGS}",
            facts.0.len()
        ));
    }
    contents.manifest.machine = cut_machine(&contents.manifest.machine);
    let document = document(&contents);
    let numbers: Vec<usize> = (0..contents.rows.len()).collect();
    let logs = Logs(logs);
    let taken = Taken {
        run: &planned.claim.run,
        // The machine depends on the runs before; it is filled in when the rows are added to them.
        machine: "",
        identity: "",
        content: &planned.claim.content,
        source: Source { contents: &contents, document: &document, numbers: &numbers, logs: &logs },
    };
    let mut rows = BTreeMap::new();
    for table in TABLES.iter().filter(|table| table.name != FACT.name) {
        let Some(of) = table.rows else { continue };
        let own: &mut Rows = rows.entry(table.name).or_default();
        let read = of(&taken, &mut |cells| {
            own.push(cells.iter().map(short).collect());
            Ok(())
        });
        read.map_err(|error| format!("its {} is unknown: {error}", table.name))?;
    }
    Ok(Read { rows, facts: contents.facts })
}
