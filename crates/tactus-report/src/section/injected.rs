//! What the faults of a run really did, beside what they were asked to do.

use tactus_model::bundle::{Contents, InjectedIn};
use tactus_model::number::float;

use super::Section;
use crate::part::{Cell, Head, Part, Reader, Table};
use crate::units::{NONE, clean, count, duration, latency, latency_or_none};

/// The section.
pub struct Injected;
/// Its entry.
pub static ENTRY: Injected = Injected;

impl Section for Injected {
    fn name(&self) -> &'static str {
        "injected"
    }

    fn heading(&self) -> &'static str {
        "Injected faults"
    }

    fn about(&self) -> &'static str {
        "What the faults of the run really did, beside what they were asked to do: how often, and how long the longest \
         of them held its CPU. A dash: what carries it out does not say."
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| !row.result.injected.is_empty())
    }

    fn parts(&self, contents: &Contents, _: Reader) -> Vec<Part> {
        vec![Part::Table(table(contents))]
    }
}

/// A table of every fault of every scenario.
fn table(contents: &Contents) -> Table {
    let mut seen: Vec<(&str, &InjectedIn)> = Vec::new();
    for row in &contents.rows {
        for at in &row.result.injected {
            let known = (row.result.name.as_str(), at);
            if !seen.contains(&known) {
                seen.push(known);
            }
        }
    }
    let rows: Vec<Vec<Cell>> = seen
        .into_iter()
        .map(|(name, at)| {
            let fault = &at.injected;
            let outside = at.outside.to_string();
            let cpus = if outside.is_empty() {
                format!("its own CPU {}", fault.cpus)
            } else if outside == fault.cpus.to_string() {
                format!("CPU {outside}")
            } else {
                format!("CPU {outside} ({} inside)", fault.cpus)
            };
            let asked = format!("{} every {}", latency(float(fault.length_ns)), duration(fault.every_ns));
            [
                clean(name),
                format!("{} in {}, {cpus}", clean(&fault.kind), clean(&at.environment)),
                clean(&fault.way),
                asked,
                fault.times.map_or_else(|| NONE.into(), count),
                latency_or_none(fault.longest_ns),
            ]
            .map(Cell::from)
            .to_vec()
        })
        .collect();
    let columns = ["scenario", "fault", "by", "asked for", "times", "longest held"];
    Table::whole("", Head::all(columns), rows)
}
