//! What bundles of earlier formats say otherwise, put into today's words where they are read: nothing behind
//! this door knows of them.

use tactus_model::bundle::{Format, RowResult};
use tactus_model::outcome::Ending;

/// The row of a `result.json` of any format of this major version.
///
/// # Errors
/// Where it is none.
pub fn result(bytes: &[u8]) -> serde_json::Result<RowResult> {
    // Before 1.3 how a row ended was in the sentence beside its status.
    let Ending { ended, .. } = serde_json::from_slice(bytes)?;
    Ok(RowResult { ended, ..serde_json::from_slice(bytes)? })
}

/// The last format whose writers let some environments share a file.
const SHARING: Format = Format { major: 1, minor: 4 };

/// The file's name of an environment in bundles of such a format.
pub fn file_name(format: Format, environment: &str) -> Option<String> {
    (format <= SHARING).then(|| environment.replace(['/', '\0'], "_").trim_start_matches('.').to_owned())
}
