//! Whether this machine is itself virtual, as its files tell it.

use std::path::Path;

use tactus_model::facts::Facts;
use tactus_model::hypervisor::{DEVICE_TREE, FILES, FW_CFG};

use crate::System;

/// Whether a hypervisor is known to lie below this machine; the same answer as [`Facts::virtualized`] gives of its
/// facts.
#[must_use]
pub fn virtualized(system: &dyn System) -> bool {
    let mut facts = Facts::default();
    for path in FILES {
        if let Some(text) = system.text(path) {
            // The flags of a processor stand in the first one's lines.
            facts.keep(path, text.split("\n\n").next().unwrap_or_default());
        }
    }
    for node in system.list(Path::new(DEVICE_TREE)).unwrap_or_default() {
        if node.file_name().is_some_and(|name| name.to_string_lossy().starts_with(FW_CFG)) {
            facts.keep(node.to_string_lossy(), "");
        }
    }
    facts.virtualized()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn a_machine_is_virtual_by_what_its_files_say() {
        let arm = || Memory::new().file("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
        assert!(!virtualized(&arm()));
        assert!(virtualized(&arm().file("/proc/device-tree/model", "linux,dummy-virt\0")));
        assert!(virtualized(
            &arm().file("/proc/device-tree/fw-cfg@9020000/compatible", "qemu,fw-cfg-mmio\0")
        ));
        assert!(virtualized(&arm().file("/sys/class/dmi/id/sys_vendor", "QEMU\n")));
        let info = |first: &str| {
            format!("processor\t: 0\nflags\t\t: fpu {first}\n\nprocessor\t: 1\nflags\t\t: fpu\n")
        };
        assert!(virtualized(&Memory::new().file("/proc/cpuinfo", info("hypervisor vmx"))));
        assert!(!virtualized(&Memory::new().file("/proc/cpuinfo", info("vmx"))));
    }
}
