//! The histograms of rows as pictures need them.

use hdrhistogram::Histogram;
use tactus_model::bundle::Row;
use tactus_statistics::{Bins, Exceedance, Recorded};

use crate::row::figures;

/// The distributions of `rows` in common bins, from the smallest to the largest value of any.
#[must_use]
pub fn distribution(rows: &[&Row]) -> Bins {
    tactus_statistics::distribution(&recorded(rows, Row::histogram))
}

/// The exceedances of `rows`, corrected for missed periods.
#[must_use]
pub fn exceedance(rows: &[&Row]) -> Exceedance {
    tactus_statistics::exceedance(&recorded(rows, Row::corrected))
}

fn recorded(rows: &[&Row], histogram: fn(&Row) -> Histogram<u64>) -> Vec<Recorded> {
    let of = |row: &&Row| {
        let all = figures(&row.result);
        Recorded {
            histogram: histogram(row),
            min_ns: all.and_then(|all| all.min_ns),
            max_ns: all.and_then(|all| all.max_ns),
        }
    };
    rows.iter().map(of).collect()
}
