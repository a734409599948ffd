//! The machine as a bundle names it.

use tactus_model::bundle::Machine;
use tactus_system::System;

/// The machine in one line's worth of facts.
#[must_use]
pub fn describe(system: &dyn System) -> Machine {
    let text = |path: &str| system.text(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let field = |path: &str, key: &str, separator: char| {
        text(path)
            .lines()
            .filter_map(|line| line.split_once(separator))
            .find(|(found, _)| found.trim() == key)
            .map(|(_, value)| value.trim().trim_matches('"').to_owned())
            .unwrap_or_default()
    };
    Machine {
        name: text("/proc/sys/kernel/hostname"),
        processor: field("/proc/cpuinfo", "model name", ':'),
        cpus: text("/sys/devices/system/cpu/online"),
        kernel: format!("{} {}", text("/proc/sys/kernel/osrelease"), text("/proc/sys/kernel/version")),
        system: field("/etc/os-release", "PRETTY_NAME", '='),
    }
}
