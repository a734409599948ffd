//! Names of files and objects that a run makes outside of its directories.

use crate::Setting;

/// The name of an environment's container: it tells whose it is, and is unique on the machine.
pub fn container_name(setting: &Setting<'_>) -> String {
    let slug: String = setting
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    format!("tactus-{}-{}", setting.guardian.id(), slug.trim_matches('-'))
}
