//! Why bundles are refused.

use tactus_bundle::BundleError;

/// The fault of a bundle, without its path, which is printed beside it.
pub fn of(error: &BundleError) -> String {
    match error {
        BundleError::NotABundle { reason, .. } => format!("it is not a bundle: {reason}"),
        BundleError::Altered { path, reason } => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            format!("{name} is not as the run wrote it: {reason}")
        }
        BundleError::OtherVersion { tactus, found, .. } => format!(
            "it was written by tactus {tactus} in format {}.{}, which this tactus does not read",
            found.major, found.minor
        ),
        other => other.to_string(),
    }
}
