//! Words that two rows must share to be compared. A row is looked up by them instead of compared with all
//! others.

use serde_json::Value;
use tactus_model::bundle::RowResult;
use tactus_model::catalogue::Measure;
use tactus_model::size::{Most, Sizes};

/// Two texts for a row. Rows share the first if they are alike in `alike` and have the same load and faults
/// in their environment. They share the second if the very same load ran in the same place.
pub(super) fn keys(alike: &str, result: &RowResult) -> [String; 2] {
    [true, false].map(|own| format!("{own} {alike}\n{}", conditions(result, own)))
}

/// A text that two rows share if they measure the same. The largest array is a multiple of the last-level
/// cache, which differs between machines. Values for each size are compared at the sizes that both have, the
/// others beyond the caches of each machine.
pub(super) fn measures(measure: &Measure) -> String {
    let Measure::Memory(table) = measure else { return format!("{measure:?}") };
    match table.sizes() {
        Sizes { least, most: Most::Caches { times, .. } } => format!("memory {least:?} to {times} caches"),
        sizes => format!("memory {sizes:?}"),
    }
}

/// The loads and faults of a row that must agree for a comparison: their kind, their parameters and where
/// they ran. `own` leaves out the row's environment. CPUs are left out, because each environment numbers them
/// anew.
fn conditions(result: &RowResult, own: bool) -> String {
    let words = |table: &Value| {
        let mut table = table.clone();
        if let Some(map) = table.as_object_mut() {
            map.remove("cpus");
            if own && map.get("in").and_then(Value::as_str).is_none_or(|place| place == result.environment) {
                map.remove("in");
            }
        }
        table.to_string()
    };
    let mut tables: Vec<String> = result.load.iter().chain(&result.fault).map(words).collect();
    tables.sort_unstable();
    tables.join("\n")
}
