//! wip
pub fn render(_: &tactus_model::bundle::Contents) -> Result<String, super::RenderError> { Ok(String::new()) }
