//! What a guest's numbers are worth: that depends on the machine below it.

use tactus_model::Evidence;
use tactus_model::facts::Facts;
use tactus_system::System;

use super::Accel;

/// What a guest's numbers are worth. Under KVM its code runs on the machine's own processor: what
/// counts is whether that is real.
pub fn evidence(accel: Accel, system: &dyn System) -> Evidence {
    match accel {
        Accel::Tcg => Evidence::Emulated,
        Accel::Kvm if host_facts(system).virtualized() => Evidence::VirtualHost,
        Accel::Kvm => Evidence::BareMetal,
    }
}

/// What tells whether this machine is itself virtual.
fn host_facts(system: &dyn System) -> Facts {
    let mut facts = Facts::default();
    for path in ["/proc/cpuinfo", "/sys/hypervisor/type", "/proc/device-tree/hypervisor/compatible"] {
        if let Some(text) = system.text(path) {
            // The flags stand in the first processor's lines.
            let first = text.split("\n\n").next().unwrap_or_default().to_owned();
            facts.keep(path, first);
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn a_guest_stands_on_the_ground_of_its_host() {
        let of = |flags: &str| {
            let info = format!("processor\t: 0\nflags\t\t: fpu {flags}\n\nprocessor\t: 1\nflags\t\t: fpu\n");
            let machine = Memory::new().file("/proc/cpuinfo", info);
            assert_eq!(evidence(Accel::Tcg, &machine), Evidence::Emulated);
            evidence(Accel::Kvm, &machine)
        };
        assert_eq!(of("hypervisor vmx"), Evidence::VirtualHost);
        assert_eq!(of("vmx"), Evidence::BareMetal);
    }
}
