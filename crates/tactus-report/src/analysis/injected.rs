//! What the faults of a run really did, beside what they were asked to do.

use tactus_model::bundle::{Contents, InjectedIn};
use tactus_model::number::float;

use super::tables::{Cell, Length, Table};
use crate::units::{NONE, clean, count, duration, latency, latency_or_none};

/// A table of every fault of every scenario; `None` where none was injected.
#[must_use]
pub fn injected(contents: &Contents) -> Option<Table> {
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
    (!rows.is_empty()).then(|| Table {
        title: "Injected faults".into(),
        head: ["scenario", "fault", "by", "asked for", "times", "longest held"].map(str::to_owned).to_vec(),
        rows,
        remarks: vec![format!("{NONE}: what carries it out does not say.")],
        length: Length::Whole,
    })
}
