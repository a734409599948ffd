//! What bundles of earlier formats say otherwise, put into today's words where they are read: nothing behind
//! this door knows of them.

use serde::Deserialize;
use serde_json::Value;
use tactus_model::bundle::RowResult;
use tactus_model::outcome::Ending;

/// The row of a `result.json` of any format of this major version.
///
/// # Errors
/// Where it is none.
pub fn result(bytes: &[u8]) -> serde_json::Result<RowResult> {
    let mut value: Value = serde_json::from_slice(bytes)?;
    // Before 1.3 how a row ended was in the sentence beside its status.
    if let Ok(Ending { ended, .. }) = Ending::deserialize(&value)
        && let Some(table) = value.as_object_mut()
    {
        table.entry("ended").or_insert(serde_json::to_value(ended)?);
    }
    serde_json::from_value(value)
}

/// The file's name of an environment in bundles whose writers let some environments share one.
pub fn file_name(environment: &str) -> String {
    environment.replace(['/', '\0'], "_").trim_start_matches('.').to_owned()
}
