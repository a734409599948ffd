//! What two rows must have in common to be compared, as words: a row is looked up by them and not held against all others.

use serde_json::Value;
use tactus_model::bundle::RowResult;
use tactus_model::catalogue::Measure;
use tactus_model::size::{Most, Sizes};

/// Words that two rows share where they are alike in what is said first and have the same load and faults in their own
/// environment; and those that they share where it is the very same load where it was.
pub(super) fn keys(alike: &str, result: &RowResult) -> [String; 2] {
    [true, false].map(|own| format!("{own} {alike}\n{}", conditions(result, own)))
}

/// Words that two rows share where they measure the same. Another machine's largest array is as many times a last-level
/// cache of its own: what is measured size by size is compared where both have the size, and the rest beyond the caches of
/// each.
pub(super) fn measures(measure: &Measure) -> String {
    let Measure::Memory(table) = measure else { return format!("{measure:?}") };
    match table.sizes() {
        Sizes { least, most: Most::Caches { times, .. } } => format!("memory {least:?} to {times} caches"),
        sizes => format!("memory {sizes:?}"),
    }
}

/// The loads and faults of a row as far as they must agree for a comparison: their kind and
/// parameters, and where they ran (`own`: leaving out the row's own environment). CPUs are numbered
/// anew in each environment.
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
