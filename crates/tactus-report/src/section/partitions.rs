//! The part of a divided cache that groups of CPUs held: it shows whether a partition works.

use tactus_model::bundle::Contents;
use tactus_model::document::{CacheHeldEntry, Document};
use tactus_model::number::float;
use tactus_model::partition::{CacheHeld, Phase};

use super::Section;
use crate::part::{Cell, Head, Part, Reader, Table};
use crate::units::{NONE, clean};

/// The section.
pub struct Partitions;
/// Its entry.
pub static ENTRY: Partitions = Partitions;

impl Section for Partitions {
    fn name(&self) -> &'static str {
        "partitions"
    }

    fn heading(&self) -> &'static str {
        "Use of the divided cache"
    }

    fn about(&self) -> &'static str {
        "Counted by the processor (llc_occupancy, mbm_total_bytes) once a second while the cache was \
         divided: smallest and largest value. A group that uses almost nothing does not need its part."
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| !row.held.is_empty())
    }

    fn parts(&self, contents: &Contents, _: Reader) -> Vec<Part> {
        table(contents).map(Part::Table).into_iter().collect()
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.partitions = partitions(contents);
    }
}

/// An entry for each group and time, in the order in which they were seen. Rows of one scenario saw the same.
fn partitions(contents: &Contents) -> Vec<CacheHeldEntry> {
    let mut all: Vec<CacheHeldEntry> = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for row in &contents.rows {
        if row.held.is_empty() || told.contains(&row.result.name.as_str()) {
            continue;
        }
        told.push(&row.result.name);
        all.extend(row.held.iter().map(|one| entry(&row.result.name, one)));
    }
    all
}

fn entry(scenario: &str, held: &CacheHeld) -> CacheHeldEntry {
    CacheHeldEntry {
        scenario: scenario.to_owned(),
        phase: held.phase,
        group: held.group.clone(),
        cpus: held.cpus.to_string(),
        looks: held.looks,
        least_bytes: held.occupancy_bytes.map(|(least, _)| least),
        most_bytes: held.occupancy_bytes.map(|(_, most)| most),
        memory_bytes: held.moved_bytes(),
    }
}

/// The same as a table; `None` where nothing counted.
fn table(contents: &Contents) -> Option<Table> {
    let rows: Vec<Vec<Cell>> = partitions(contents).iter().map(row).collect();
    let head = Head::all(["scenario", "when", "whose", "CPUs", "held", "moved to and from memory"]);
    (!rows.is_empty()).then(|| Table::whole("", head, rows))
}

fn row(entry: &CacheHeldEntry) -> Vec<Cell> {
    let when = match entry.phase {
        Phase::Before => "before it",
        Phase::With => "with it",
        Phase::After => "after it",
    };
    let held = match (entry.least_bytes, entry.most_bytes) {
        (Some(least), Some(most)) if size(least) != size(most) => {
            format!("{} to {}", size(least), size(most))
        }
        (Some(one), _) => size(one),
        _ => NONE.into(),
    };
    let moved = entry.memory_bytes.map_or_else(|| NONE.into(), size);
    [clean(&entry.scenario), when.to_owned(), clean(&entry.group), clean(&entry.cpus), held, moved]
        .map(Cell::from)
        .to_vec()
}

/// A number of bytes, to three digits.
fn size(bytes: u64) -> String {
    let (unit, one) = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        .into_iter()
        .find(|(_, one)| bytes >= *one)
        .unwrap_or(("B", 1));
    let value = float(bytes) / float(one);
    let places = if one == 1 || value >= 99.95 { 0 } else { 1 };
    format!("{value:.places$} {unit}")
}
