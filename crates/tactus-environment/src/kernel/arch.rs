//! Architectures, by the names that each calls them.

/// This machine's.
pub const OWN: &str = std::env::consts::ARCH;

/// Debian's name for an architecture.
pub fn debian(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
