//! Two rows cut into equal slots of time.

use tactus_model::bundle::Row;
use tactus_statistics::{IntervalsDiffer, OverTime, Slots};

use crate::units::duration;

/// Two rows in slots of one length.
///
/// # Errors
/// When their intervals do not go into each other: the sentence that says so.
pub fn slots_alike(base: &Row, with: &Row) -> Result<[Slots; 2], String> {
    let [base, with] = [base, with].map(|row| OverTime { measured: &row.histograms, missed: &row.missed });
    tactus_statistics::slots_alike(base, with).map_err(sentence)
}

fn sentence(IntervalsDiffer { base_ns, with_ns }: IntervalsDiffer) -> String {
    let (base, with) = (duration(base_ns), duration(with_ns));
    format!(
        "their report intervals differ: {base} and {with}. Either their `tick` differs, or reports came \
         late: leave tactus a free CPU"
    )
}
