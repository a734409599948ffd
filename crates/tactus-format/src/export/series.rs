//! The series of a row, with their histograms.

use tactus_model::buckets::{Packed, bucket_of, value_of};
use tactus_model::bundle::Row;
use tactus_model::outcome::SeriesResult;

/// A series with its counts.
pub struct Counted<'a> {
    /// Its figures.
    pub result: &'a SeriesResult,
    /// Its histogram; `None` if it has none, or it is lost.
    pub raw: Option<&'a Packed>,
    /// That of the periods which it missed.
    pub missed: Option<&'a Packed>,
}

/// The series of a row. The tag of a histogram is the CPU, or the whole of the key if a CPU has several
/// series.
pub fn of(row: &Row) -> impl Iterator<Item = Counted<'_>> {
    row.result.series().iter().map(move |result| {
        let tag = row.result.tag(&result.key);
        Counted { result, raw: row.histograms.series.get(&tag), missed: row.missed.series.get(&tag) }
    })
}

/// The smallest value in ns of the bucket whose largest one is this.
pub(super) fn lowest(highest_ns: u64) -> u64 {
    bucket_of(highest_ns).checked_sub(1).map_or(0, |before| value_of(before) + 1)
}
