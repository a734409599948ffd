//! Rows that are added to those of their day.

use std::collections::{BTreeMap, BTreeSet};

use tactus_format::export::ExportError;

use super::claim::Claim;
use super::facts::History;
use super::sort::Entered;
use super::take::{self, Read, Rows};
use crate::table::{FACT, RUN, TABLES, fact_rows};
use crate::{DataError, DataSet};

/// Bundles whose rows are held in memory at once.
const HELD: usize = 256;
/// Bytes of their rows, about: with these no more bundles are read before they are written.
const HELD_BYTES: usize = 128 << 20;

/// The rows to write to a day.
#[derive(Debug)]
pub struct Batch {
    day: String,
    /// The runs of these rows: earlier rows of theirs, from an interrupted collection, are left out.
    runs: BTreeSet<String>,
    /// The runs whose facts stay as they are.
    known: BTreeSet<String>,
    rows: BTreeMap<&'static str, Rows>,
    bytes: usize,
}

impl Batch {
    /// Nothing yet.
    pub fn of(day: &str) -> Self {
        Self {
            day: day.to_owned(),
            runs: BTreeSet::new(),
            known: BTreeSet::new(),
            rows: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// Whether it has as much as is held in memory at once.
    pub fn is_full(&self) -> bool {
        self.runs.len() >= HELD || self.bytes >= HELD_BYTES
    }

    /// Whether it contains no run.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a bundle.
    pub fn add(&mut self, claim: &Claim, entered: &Entered, read: Read, history: &mut History) {
        self.runs.insert(claim.run.clone());
        // Its readings are held as those of its machine.
        self.bytes = self.bytes.saturating_add(read.bytes());
        for (table, mut rows) in read.rows {
            if table == RUN.name {
                entered.tell(&mut rows);
            }
            self.rows.entry(table).or_default().extend(rows);
        }
        // Later runs may have been compared with the facts of a run that was continued since: they stay.
        if entered.instead {
            self.known.insert(claim.run.clone());
        } else {
            let told = history.changes(&entered.machine, claim.started_us, &read.facts);
            let rows = fact_rows(&claim.run, &told);
            self.bytes = self.bytes.saturating_add(take::bytes(&rows));
            self.rows.entry(FACT.name).or_default().extend(rows);
        }
    }

    /// Writes it, the runs last.
    pub fn save(self, data: &DataSet) -> Result<(), DataError> {
        if self.is_empty() {
            return Ok(());
        }
        for table in TABLES.iter().filter(|table| table.rows.is_some()) {
            let columns = (table.columns)();
            let before = data.read(table, &self.day, columns)?;
            let rows = self.rows.get(table.name).map_or(&[][..], Vec::as_slice);
            if rows.is_empty() && before.is_none() {
                continue;
            }
            data.write(table, &self.day, |take| {
                if let Some(found) = &before {
                    for row in 0..found.rows {
                        let run = found.columns.first().and_then(|runs| runs.text(row));
                        let replaced = run.is_some_and(|run| {
                            self.runs.contains(run) && !(table.name == FACT.name && self.known.contains(run))
                        });
                        if replaced {
                            continue;
                        }
                        let cells: Vec<_> = found
                            .columns
                            .iter()
                            .zip(columns)
                            .map(|(values, column)| values.cell(row, column.kind))
                            .collect();
                        take(&cells)?;
                    }
                }
                rows.iter().try_for_each(|cells| take(cells))?;
                Ok::<(), ExportError>(())
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tactus_format::export::table::Cell;
    use tactus_model::bundle::Machine;
    use tactus_model::facts::Facts;

    use super::*;
    use crate::identity::Identity;

    #[test]
    fn what_is_held_is_bounded_by_its_bytes_too() {
        let rows = vec![vec![Cell::Text("x".repeat(1_000).into()), Cell::Bytes(vec![0; 500].into())]; 10];
        let read = Read { rows: [("run", rows)].into(), facts: BTreeMap::new() };
        assert!((15_000..20_000).contains(&read.bytes()), "{}", read.bytes());
        let mut batch = Batch::of("2026-11-01");
        batch.bytes = HELD_BYTES - 1;
        assert!(!batch.is_full());
        batch.bytes += read.bytes();
        assert!(batch.is_full());
    }

    /// A bundle of a few rows may have facts up to the limit.
    #[test]
    fn readings_and_the_rows_of_facts_count_among_what_is_held() {
        let mut facts = Facts::default();
        (0..100).for_each(|number| facts.keep(format!("/{number:04}"), "y".repeat(1_000)));
        let read = Read { rows: BTreeMap::new(), facts: [("host".to_owned(), facts)].into() };
        let readings = read.bytes();
        assert!((100_000..120_000).contains(&readings), "{readings}");
        let claim = Claim {
            run: "r".into(),
            machine: Machine::default(),
            content: String::new(),
            sessions: 1,
            started_us: 1,
            day: "2026-11-01".into(),
        };
        let entered = Entered { machine: "m".into(), identity: Identity::Name, instead: false };
        let mut batch = Batch::of(&claim.day);
        batch.add(&claim, &entered, read, &mut History::default());
        assert!(batch.bytes > readings + 100_000, "{} and {readings}", batch.bytes);
    }
}
