//! Which boot a system is running.

use crate::System;

/// The file that tells it: one for each boot of a kernel, the same in all containers on it.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The id of the current boot: run-time settings of another boot are gone, and systems with the same id share a kernel.
/// Empty if it cannot be read.
#[must_use]
pub fn boot_id(system: &dyn System) -> String {
    system.text(BOOT_ID).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Real;

    #[test]
    fn this_machine_says_which_boot_it_runs() {
        assert!(!boot_id(&Real).is_empty());
    }
}
