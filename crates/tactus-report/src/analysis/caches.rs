//! Latencies by what caches a CPU shares with the one that is loaded.

use tactus_model::bundle::{Contents, Row};
use tactus_model::caches::groups;
use tactus_model::number::float;
use tactus_model::{CpuSet, Evidence};

use super::document::{figures, reason};
use super::published::published;
use super::tables::{Cell, Table};
use crate::units::{clean, latency, latency_or_none};

/// A table of every measured CPU: without the load, with it, and what it shares with the loaded CPUs. The
/// first scenario is without, the second with.
#[must_use]
pub fn caches(contents: &Contents, scenarios: &[String]) -> Option<Table> {
    let row = |n: usize| contents.rows.iter().find(|row| scenarios.get(n) == Some(&row.result.name));
    let (rest, with) = (row(0)?, row(1)?);
    let title = "Latency by shared cache".to_owned();
    let head = ["CPU", "its caches", "max without", "max with", "published with"];
    let head = head.map(str::to_owned).to_vec();
    let mut remarks = Vec::new();
    for row in [rest, with] {
        if figures(&row.result).is_none() {
            let why = reason(contents, &row.result).unwrap_or_default();
            remarks.push(format!("{}: not measured: {}", clean(&row.result.name), clean(&why)));
        }
    }
    let loaded = loaded(with);
    let facts = contents.facts.get(&with.result.place());
    let groups = facts.map(|facts| groups(facts, &loaded));
    let published = published(&contents.plan, &with.result.name, &with.result.environment);
    let max = |row: &Row, cpu: u32| {
        let own = row.result.series.iter().filter(|series| series.key.cpu == cpu);
        own.filter_map(|series| series.summary.max_ns).max()
    };
    let cpus: CpuSet = with.result.series.iter().map(|series| series.key.cpu).collect();
    let rows = cpus
        .iter()
        .zip(0..)
        .map(|(cpu, n)| {
            let theirs = published.as_ref().and_then(|all| all.threads_ns.get(n)).map(|three| three[2]);
            let shares =
                groups.as_ref().and_then(|groups| groups.title(cpu)).unwrap_or_else(|| "not known".into());
            [
                cpu.to_string(),
                shares,
                latency_or_none(max(rest, cpu)),
                latency_or_none(max(with, cpu)),
                latency_or_none(theirs),
            ]
            .map(Cell::from)
            .to_vec()
        })
        .collect();
    remarks.extend(
        groups.and_then(|groups| groups.obstacle()).map(|why| format!("Nothing to compare with: {why}.")),
    );
    if let Some(published) = published.filter(|all| all.threads_ns.len() > cpus.len()) {
        let maxima: Vec<String> = published.threads_ns.iter().map(|three| latency(float(three[2]))).collect();
        remarks.push(format!(
            "The document's maxima, CPU by CPU: {} ({}).",
            maxima.join(", "),
            clean(&published.source)
        ));
    }
    if with.result.evidence == Some(Evidence::VirtualHost) {
        remarks.push(
            "As seen inside this virtual machine: what else runs on the same hardware shares its caches too."
                .into(),
        );
    }
    Some(Table { title, head, rows, remarks, long: false })
}

/// The CPUs on which the row's environment is loaded.
fn loaded(row: &Row) -> CpuSet {
    let of = |table: &serde_json::Value| table.get("cpus")?.as_str()?.parse::<CpuSet>().ok();
    row.result.load.iter().filter_map(of).fold(CpuSet::default(), |all, cpus| all.or(&cpus))
}
