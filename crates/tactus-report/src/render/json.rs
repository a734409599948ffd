//! The document of `tactus show --json`, for people and programs.

use tactus_model::bundle::Contents;

use super::RenderError;
use crate::document;

/// The document as indented JSON.
///
/// # Errors
/// When a number has no form in JSON, which a bundle that was read from JSON cannot hold.
pub fn render(contents: &Contents) -> Result<String, RenderError> {
    Ok(serde_json::to_string_pretty(&document(contents))? + "\n")
}
