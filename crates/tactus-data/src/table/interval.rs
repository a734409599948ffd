//! One row per series and 10 seconds.

use std::collections::BTreeMap;
use std::io;

use tactus_format::columns;
use tactus_format::export::table::TakeRow;
use tactus_format::export::{ExportError, Measured};
use tactus_model::latency::ratio_mean;
use tactus_model::series::SeriesKey;
use tactus_model::ticks::{Stretch, TickScalars};

use super::{Table, Taken};

/// The shortest interval, in ns.
const SHORTEST_NS: u64 = 10_000_000_000;
/// Most intervals of a series: those of a longer one have twice the length, or four times, and so on.
const MOST: u64 = 1_024;

/// The table.
pub const TABLE: Table = Table {
    name: "interval",
    about: "A row for each series and interval of time: 10 s, doubled until a series has at most 1024 of \
        them.",
    columns: || COLUMNS,
    rows: Some(|taken, take| taken.source.rows().try_for_each(|one| of_row(taken, one, take))),
};

/// The length of the intervals of a row that measured for this time, in ns.
fn length_ns(measured_ns: u64) -> u64 {
    let mut length = SHORTEST_NS;
    while measured_ns / length >= MOST {
        length *= 2;
    }
    length
}

fn of_row(taken: &Taken<'_>, one: Measured<'_>, take: &mut TakeRow<'_>) -> Result<(), ExportError> {
    let length_ns = length_ns(one.row.result.measured_ns.max(one.row.result.planned_ns));
    let mut open: BTreeMap<SeriesKey, Own<'_>> = BTreeMap::new();
    let mut done: Vec<Own<'_>> = Vec::new();
    // Other tools do not count them.
    let counted = one.entry.all.as_ref().is_none_or(|all| all.overruns.is_some());
    let most = usize::try_from(MOST * 2).unwrap_or(usize::MAX);
    let mut add = |key: &SeriesKey, tick: &TickScalars, summed: u64| {
        // A tick belongs to the interval that it ends in.
        let number = tick.at_ns.saturating_sub(1) / length_ns;
        let fresh = || Own {
            run: taken.run,
            scenario: one.number,
            series: key.to_string(),
            number,
            length_ns,
            cycles: 0,
            overruns: counted.then_some(0),
            min_ns: None,
            summed: 0,
            sum_ns: 0,
            p99_ns: None,
            max_ns: None,
        };
        if !open.contains_key(key) {
            open.insert(key.clone(), fresh());
        }
        let Some(own) = open.get_mut(key) else { return };
        if own.number != number {
            let full = std::mem::replace(own, fresh());
            if done.len() < most.saturating_mul(one.row.result.series().len().max(1)) {
                done.push(full);
            }
        }
        own.cycles = own.cycles.saturating_add(tick.cycles);
        own.overruns = own.overruns.map(|overruns: u64| overruns.saturating_add(tick.overruns));
        own.min_ns = own.min_ns.into_iter().chain(tick.min_ns).min();
        own.max_ns = own.max_ns.max(tick.max_ns);
        own.p99_ns = own.p99_ns.max(tick.p99_ns);
        own.sum_ns = own.sum_ns.saturating_add(tick.sum_ns.unwrap_or(0));
        own.summed = own.summed.saturating_add(if tick.sum_ns.is_some() { summed } else { 0 });
    };
    let logged = taken.source.logs.ticks(one.number - 1, &mut |key, tick| {
        add(key, tick, tick.cycles);
        Ok::<(), io::Error>(())
    })?;
    if !logged {
        for (key, stretch) in one.row.ticks.iter() {
            add(key, &joined(stretch), stretch.summed);
        }
    }
    done.into_iter().chain(open.into_values()).try_for_each(|own| take(&cells(&own)))
}

/// Ticks that were joined.
fn joined(stretch: &Stretch) -> TickScalars {
    TickScalars {
        n: stretch.last,
        at_ns: stretch.at_ns,
        cycles: stretch.cycles,
        overruns: stretch.overruns,
        min_ns: stretch.min_ns,
        sum_ns: (stretch.summed > 0).then_some(stretch.sum_ns),
        p99_ns: None,
        max_ns: stretch.max_ns,
    }
}

struct Own<'a> {
    run: &'a str,
    scenario: usize,
    series: String,
    number: u64,
    length_ns: u64,
    cycles: u64,
    overruns: Option<u64>,
    min_ns: Option<u64>,
    /// Wake-ups whose latencies are in the sum.
    summed: u64,
    sum_ns: u64,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

columns! { row: Own<'_>;
    /// The run.
    run: Text = row.run;
    /// Number of the scenario, as in `series`.
    scenario: Whole = row.scenario;
    /// The series.
    series: Text = row.series.as_str();
    /// Beginning of the interval, in ns since the beginning of the measurement.
    at_ns: Whole = row.number.saturating_mul(row.length_ns);
    /// Length of the interval, in ns; the last one may have ended sooner.
    length_ns: Whole = row.length_ns;
    /// Wake-ups.
    cycles: Whole = row.cycles;
    /// Periods that late wake-ups missed; null if they were not counted.
    overruns: Whole = row.overruns;
    /// Smallest latency, exact; null if there was no wake-up, or the tool does not report it.
    min_ns: Whole = row.min_ns;
    /// Mean latency, to the ns.
    mean_ns: Real = ratio_mean(row.sum_ns, row.summed).map(f64::round);
    /// The largest 99th percentile of its ticks. A tick is a second, unless the measurement was shorter. The interval's
    /// 99th percentile is at most this.
    p99_most_ns: Whole = row.p99_ns;
    /// Largest latency, exact.
    max_ns: Whole = row.max_ns;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_measurements_have_longer_intervals_and_no_more_of_them() {
        let minute = 60_000_000_000;
        assert_eq!(length_ns(10 * minute), SHORTEST_NS);
        assert_eq!(length_ns(170 * minute), SHORTEST_NS);
        assert_eq!(length_ns(171 * minute), 2 * SHORTEST_NS);
        assert_eq!(length_ns(24 * 60 * minute) / SHORTEST_NS, 16);
        assert!(length_ns(u64::MAX) > 0);
    }
}
