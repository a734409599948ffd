//! The seed of a run's random choices.

use tactus_system::{Real, System};

/// A number that no other run has. It fits into a plan: TOML has no larger ones.
pub fn new() -> u64 {
    let text = Real.text("/proc/sys/kernel/random/uuid").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(12).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}
