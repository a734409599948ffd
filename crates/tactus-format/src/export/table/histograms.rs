//! One row per series and bucket.

use std::collections::BTreeMap;

use super::{Table, columns};
use crate::export::series::{lowest, of};

/// The table.
pub const TABLE: Table = Table {
    name: "histograms",
    about: "A row for each series and non-empty bucket of its histogram, over all of the time. A bucket is \
        0.1 % wide.",
    columns: COLUMNS,
    rows: |source, take| {
        source.rows().try_for_each(|one| {
            of(one.row).try_for_each(|counted| {
                let series = counted.result.key.to_string();
                let mut both: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
                for (value, count) in counted.raw.iter().flat_map(|counts| counts.buckets()) {
                    both.entry(value).or_default().0 = count;
                }
                for (value, count) in counted.missed.iter().flat_map(|counts| counts.buckets()) {
                    both.entry(value).or_default().1 = count;
                }
                both.into_iter().try_for_each(|(to_ns, (count, missed))| {
                    take(&cells(&Row { scenario: one.number, series: &series, to_ns, count, missed }))
                })
            })
        })
    },
};

struct Row<'a> {
    scenario: usize,
    series: &'a str,
    to_ns: u64,
    count: u64,
    missed: u64,
}

columns! { row: Row<'_>;
    /// Number of the scenario, as in `scenarios`.
    scenario: Whole = row.scenario;
    /// The series, as in `series`.
    series: Text = row.series;
    /// The smallest value that the bucket counts.
    from_ns: Whole = lowest(row.to_ns);
    /// The largest one.
    to_ns: Whole = row.to_ns;
    /// Number of values that were measured.
    count: Whole = row.count;
    /// Number of periods missed by late wake-ups that would have had such a latency. `count` plus `missed` is the
    /// corrected histogram.
    missed: Whole = row.missed;
}
