//! One row per series, with its histogram.

use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use tactus_format::columns;
use tactus_format::export::{ExportError, counted};
use tactus_model::buckets::Packed;
use tactus_model::latency;

use super::Table;

/// The table.
pub const TABLE: Table = Table {
    name: "histogram",
    about: "A row for each series that has a histogram, over all of its time. The format is HdrHistogram in \
        its standard encoding (V2, compressed with DEFLATE), values in ns, from 1 ns with three significant \
        digits. Histograms of one layout can be added up: those of a machine over a month, those of a fleet.",
    columns: || COLUMNS,
    rows: Some(|taken, take| {
        taken.source.rows().try_for_each(|one| {
            counted(one.row).try_for_each(|series| {
                let Some(raw) = series.raw.filter(|raw| !raw.is_empty()) else { return Ok(()) };
                let row = Own {
                    run: taken.run,
                    scenario: one.number,
                    series: series.result.key.to_string(),
                    count: raw.total(),
                    histogram: encoded(raw)?,
                    missed: series.missed.filter(|missed| !missed.is_empty()).map(encoded).transpose()?,
                };
                take(&cells(&row))
            })
        })
    }),
};

fn encoded(counts: &Packed) -> Result<Vec<u8>, ExportError> {
    let mut histogram = latency::histogram();
    counts.add_to(&mut histogram);
    let mut bytes = Vec::new();
    let done = V2DeflateSerializer::new().serialize(&histogram, &mut bytes);
    done.map_err(|error| ExportError::TooLarge(format!("a histogram cannot be encoded: {error}")))?;
    Ok(bytes)
}

struct Own<'a> {
    run: &'a str,
    scenario: usize,
    series: String,
    count: u64,
    histogram: Vec<u8>,
    missed: Option<Vec<u8>>,
}

columns! { row: Own<'_>;
    /// The run.
    run: Text = row.run;
    /// Number of the scenario, as in `series`.
    scenario: Whole = row.scenario;
    /// The series.
    series: Text = row.series.as_str();
    /// How many values it counts.
    count: Whole = row.count;
    /// The histogram of what was measured.
    histogram: Bytes = row.histogram.clone();
    /// That of the periods which late wake-ups missed; added to the other it is the corrected one. Null where none was missed.
    missed: Bytes = row.missed.clone();
}
