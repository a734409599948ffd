//! The evidence of a guest's numbers: it depends on the machine below.

use tactus_model::Evidence;
use tactus_system::System;

use super::Accel;

/// The evidence of a guest's numbers. Under KVM its code runs on the machine's own processor: then it depends on
/// whether that machine is itself virtual.
pub fn evidence(accel: Accel, system: &dyn System) -> Evidence {
    match accel {
        Accel::Tcg => Evidence::Emulated,
        Accel::Kvm if tactus_system::virtualized(system) => Evidence::VirtualHost,
        Accel::Kvm => Evidence::BareMetal,
    }
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
        let board = Memory::new().file("/proc/cpuinfo", "CPU implementer\t: 0x41\n");
        assert_eq!(evidence(Accel::Kvm, &board), Evidence::BareMetal);
        let virtual_board = board.file("/sys/class/dmi/id/sys_vendor", "QEMU\n");
        assert_eq!(evidence(Accel::Kvm, &virtual_board), Evidence::VirtualHost);
    }
}
