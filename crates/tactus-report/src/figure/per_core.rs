//! The latency of every measured CPU of a row, on one axis.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, Row};
use tactus_model::histograms::Histograms;
use tactus_model::outcome::{LatencyOutcome, Outcome};

use super::canvas::Figure;
use super::histogram::{histograms, name_of_all};
use crate::row::left_out;
use crate::units::clean;

/// CPUs in one figure: colours and dashes distinguish no more.
const CORES: usize = 8;

/// A figure per row, and more for one with many CPUs. Its title names the CPUs that were not measured.
pub fn per_core(title: &str, contents: &Contents, rows: &[&Row]) -> Vec<Figure> {
    rows.iter().flat_map(|row| of_row(title, contents, row)).collect()
}

fn of_row(title: &str, contents: &Contents, row: &Row) -> Vec<Figure> {
    let left = match left_out(contents, &row.result) {
        left if left.is_empty() => String::new(),
        left => format!(" (CPU {left} is for housekeeping: not measured, not shown)"),
    };
    let title = format!("{title}: {}{left}", clean(&row.result.name));
    let cores = cores(row);
    let several = cores.len() > CORES;
    cores
        .chunks(CORES)
        .map(|part| {
            let part: Vec<&Row> = part.iter().collect();
            let names = if several { format!(", {}", name_of_all(&part)) } else { String::new() };
            histograms(&format!("{title}{names}"), &part)
        })
        .collect()
}

/// A row for each CPU, with its samples and figures alone.
fn cores(row: &Row) -> Vec<Row> {
    let mut series: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (n, one) in row.result.series().iter().enumerate() {
        series.entry(one.key.cpu).or_default().push(n);
    }
    series
        .into_iter()
        .filter_map(|(cpu, numbers)| {
            // Several threads on one CPU have no common figures; the worst one's stand for it.
            let own: Vec<_> = numbers.iter().map(|n| &row.result.series()[*n]).collect();
            let worst = own.iter().max_by_key(|one| one.summary.max_ns)?;
            let mine = |tag: &str| tag == cpu.to_string() || own.iter().any(|one| tag == one.key.to_string());
            let mut result = row.result.clone();
            result.name = format!("CPU {cpu}");
            let all = Some(worst.summary.clone());
            result.outcome = Outcome::Latency(LatencyOutcome { series: Vec::new(), all });
            let counted = row.histograms.series.iter().filter(|(tag, _)| mine(tag));
            let series = counted.map(|(tag, counts)| (tag.clone(), counts.clone())).collect();
            let histograms = Histograms { series, ..Histograms::default() };
            Some(Row { histograms, ..Row::of(result) })
        })
        .collect()
}
