//! Facts: raw readings of the system in one pass.

use tactus_model::facts::Facts;

/// Reads everything.
pub fn collect() -> Facts {
    let mut facts = Facts::default();
    for path in [
        "/proc/cmdline",
        "/proc/version",
        "/proc/cpuinfo",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/isolated",
    ] {
        if let Ok(text) = std::fs::read_to_string(path) {
            facts.keep(path, text);
        }
    }
    facts.keep("sched:affinity", crate::measure::thread::allowed().to_string());
    facts
}
