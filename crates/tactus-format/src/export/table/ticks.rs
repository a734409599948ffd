//! One row per series and tick.

use std::collections::BTreeMap;
use std::io;

use tactus_model::latency::ratio_mean;
use tactus_model::series::SeriesKey;
use tactus_model::ticks::{Stretch, TickScalars};

use super::{Table, columns};
use crate::export::{ExportError, Measured, Source};

/// The table.
pub const TABLE: Table = Table {
    name: "ticks",
    about: "A row for each series and tick, which is a second unless the measurement was shorter; an imported file is one tick.",
    columns: COLUMNS,
    rows: |source, take| source.rows().try_for_each(|one| of_row(source, one, take)),
};

/// Every tick of a row as it was logged; without a log, the stretches that are in memory.
fn of_row(source: &Source<'_>, one: Measured<'_>, take: &mut super::TakeRow<'_>) -> Result<(), ExportError> {
    let mut names: BTreeMap<SeriesKey, String> = BTreeMap::new();
    let mut failed = None;
    let mut each = |key: &SeriesKey, row: Row<'_>| {
        if !names.contains_key(key) {
            names.insert(key.clone(), key.to_string());
        }
        let series = names.get(key).map_or("", String::as_str);
        take(&cells(&Row { series, ..row })).map_err(|error| {
            failed = Some(error);
            io::Error::other("a row was refused")
        })
    };
    let scenario = one.number;
    // Other tools do not count them.
    let counted = one.entry.all.as_ref().is_none_or(|all| all.overruns.is_some());
    let logged = source.logs.ticks(scenario - 1, &mut |key, tick| {
        each(key, Row { scenario, series: "", key, first: tick.n, tick, counted })
    });
    let told = match logged {
        Ok(false) => one.row.ticks.iter().try_for_each(|(key, stretch)| {
            let tick = joined(stretch);
            each(key, Row { scenario, series: "", key, first: stretch.first, tick: &tick, counted })
        }),
        Ok(true) => Ok(()),
        Err(error) => Err(error),
    };
    match failed {
        Some(error) => Err(error),
        None => Ok(told?),
    }
}

/// Ticks that were joined. (Their 99th percentiles do not add up.)
fn joined(stretch: &Stretch) -> TickScalars {
    TickScalars {
        n: stretch.last,
        at_ns: stretch.at_ns,
        cycles: stretch.cycles,
        overruns: stretch.overruns,
        min_ns: stretch.min_ns,
        sum_ns: (stretch.summed == stretch.cycles).then_some(stretch.sum_ns),
        p99_ns: None,
        max_ns: stretch.max_ns,
    }
}

struct Row<'a> {
    scenario: usize,
    series: &'a str,
    key: &'a SeriesKey,
    first: u64,
    tick: &'a TickScalars,
    /// Whether the periods that were missed were counted.
    counted: bool,
}

columns! { row: Row<'_>;
    /// Number of the scenario, as in `scenarios`.
    scenario: Whole = row.scenario;
    /// The series, as in `series`.
    series: Text = row.series;
    /// Its CPU.
    cpu: Whole = row.key.cpu;
    /// Number of the tick, from 0; a missing one did not arrive.
    tick: Whole = row.tick.n;
    /// Number of the first tick of this row; the same as `tick` if no ticks were joined.
    first: Whole = row.first;
    /// End of the tick, since the measurement began.
    at_ns: Whole = row.tick.at_ns;
    /// Wake-ups.
    cycles: Whole = row.tick.cycles;
    /// Periods that late wake-ups missed; empty if they were not counted.
    overruns: Whole = row.counted.then_some(row.tick.overruns);
    /// Smallest latency, exact; empty if there was no wake-up, or the tool does not report it.
    min_ns: Whole = row.tick.min_ns;
    /// Mean latency.
    mean_ns: Real = row.tick.sum_ns.and_then(|sum| ratio_mean(sum, row.tick.cycles));
    /// 99th percentile, within 0.1 %.
    p99_ns: Whole = row.tick.p99_ns;
    /// Largest latency, exact.
    max_ns: Whole = row.tick.max_ns;
}
