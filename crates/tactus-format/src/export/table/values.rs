//! One row per value.

use tactus_model::document::ValueEntry;
use tactus_model::outcome::{Point, ValueResult};

use super::{Table, columns};

/// The table.
pub const TABLE: Table = Table {
    name: "values",
    about: "A row for each item of each measurement that yields values, and for each point of those that are curves.",
    columns: COLUMNS,
    rows: |source, take| {
        source.rows().try_for_each(|one| {
            let values = one.entry.values.iter().flatten();
            values.into_iter().try_for_each(|value| take(&cells(&Row { scenario: one.number, value })))
        })
    },
};

struct Row<'a> {
    scenario: usize,
    value: &'a ValueEntry,
}

impl Row<'_> {
    const fn result(&self) -> &ValueResult {
        &self.value.result
    }
}

columns! { row: Row<'_>;
    /// Number of the scenario, as in `scenarios`.
    scenario: Whole = row.scenario;
    /// The measured item, in the catalogue's words (`tactus explain MEASUREMENT`).
    item: Text = &row.result().item;
    /// For a curve, the quantity that was varied: `array` (bytes) or `processes`.
    axis: Text = row.result().at.map(Point::axis);
    /// Its amount at this point.
    at: Whole = row.result().at.map(Point::number);
    /// Its unit: `ns`, `MB/s`, ...; a MB is 10^6 bytes.
    unit: Text = row.result().unit.to_string();
    /// Whether `lower` or `higher` is better.
    better: Text = serde_json::to_value(row.result().better).ok().and_then(|word| word.as_str().map(str::to_owned));
    /// The median of the repeats.
    value: Real = row.result().value;
    /// Lower end of its 95 % interval; empty if there are too few repeats.
    low: Real = row.result().low;
    /// Upper end of it.
    high: Real = row.result().high;
    /// The smallest repeat.
    min: Real = row.result().min;
    /// The largest one.
    max: Real = row.result().max;
    /// Median of the repeats' distances from the value.
    deviation: Real = row.result().deviation;
    /// Standard deviation of the repeats over their mean.
    variation: Real = row.result().variation;
    /// Repeats that count.
    samples: Whole = row.result().samples;
    /// Repeats left out because something else had the CPU meanwhile.
    dropped: Whole = row.result().dropped;
    /// Number of times that the operation was done in each repeat.
    batch: Whole = row.result().batch;
    /// The figure that the study's document published, in the same unit.
    published: Real = row.value.published;
}
