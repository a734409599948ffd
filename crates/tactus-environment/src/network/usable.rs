//! Which paths this machine can make.

use std::path::Path;

use tactus_model::CpuSet;
use tactus_model::plan::{GuestDevice, NetworkPath, PathKind};
use tactus_system::System;

use super::interrupts::pci;
use crate::Usable;

/// Programs that make paths, and the package of each.
const PROGRAMS: [(&str, &str); 3] =
    [("ip", "iproute2"), ("unshare", "util-linux"), ("nsenter", "util-linux")];

/// Whether a path can be made here.
#[must_use]
pub fn usable(path: &NetworkPath, system: &dyn System) -> Usable {
    match obstacle(path, system) {
        Some((reason, remedy)) => Usable::No { reason, remedy },
        None => Usable::Yes { remark: None },
    }
}

fn obstacle(path: &NetworkPath, system: &dyn System) -> Option<(String, String)> {
    if path.kind == PathKind::Loopback {
        return None;
    }
    for (program, package) in PROGRAMS {
        if system.find_program(program).is_none() {
            let reason = format!("a {} path needs the program {program}, which is not installed", path.kind);
            return Some((reason, format!("install the package {package}")));
        }
    }
    if !system.is_root() {
        let reason = format!("a {} path needs network namespaces, which only root can create", path.kind);
        return Some((reason, "run tactus as root (sudo)".into()));
    }
    if (path.gro.is_some() || path.gso.is_some()) && system.find_program("ethtool").is_none() {
        let reason = "`gro` and `gso` need the program ethtool, which is not installed";
        return Some((reason.into(), "install the package ethtool".into()));
    }
    for (key, cpus) in [("rps", &path.rps), ("irq", &path.irq)] {
        if let Some(missing) = cpus.as_ref().and_then(|cpus| absent(key, cpus, system)) {
            return Some(missing);
        }
    }
    let mut nics = path.nics.iter().flatten();
    let taken = nics.clone().find_map(|name| nic(name, path.mtu(), system));
    taken
        .or_else(|| path.irq.as_ref().and_then(|_| nics.find_map(|name| unsteerable(name, system))))
        .or_else(|| device(path, system))
}

/// Why the interrupts of an interface cannot be sent anywhere else.
fn unsteerable(name: &str, system: &dyn System) -> Option<(String, String)> {
    pci(name, system).is_none().then(|| {
        let remedy = "leave out `irq`".to_owned();
        (format!("{name} is not a NIC on PCI: its interrupts are unknown"), remedy)
    })
}

/// Why these CPUs cannot take in what arrives.
fn absent(key: &str, cpus: &CpuSet, system: &dyn System) -> Option<(String, String)> {
    let online: CpuSet = system.text("/sys/devices/system/cpu/online")?.trim().parse().ok()?;
    let missing = cpus.minus(&online);
    (!missing.is_empty()).then(|| {
        let reason =
            format!("`{key}` names CPU {missing}, which this machine does not have, or which is offline");
        (reason, format!("use some of {online}"))
    })
}

/// Why an interface cannot be taken. Its MTU would stay with it after the run: it is the user's to set.
fn nic(name: &str, mtu: u32, system: &dyn System) -> Option<(String, String)> {
    let dir = format!("/sys/class/net/{name}");
    if !system.exists(Path::new(&dir)) {
        let there = system.list(Path::new("/sys/class/net")).unwrap_or_default();
        let there: Vec<&str> =
            there.iter().filter_map(|path| path.file_name()?.to_str()).filter(|name| *name != "lo").collect();
        let remedy =
            format!("name two of its interfaces that are joined by a cable; it has {}", there.join(", "));
        return Some((format!("this machine has no network interface {name}"), remedy));
    }
    if !system.exists(Path::new(&format!("{dir}/device"))) {
        let remedy = "name an interface of a NIC, or use a path of the kind veth, bridge or macvlan";
        return Some((
            format!("{name} is not an interface of a NIC: it could not be restored"),
            remedy.into(),
        ));
    }
    let flags = system.text(&format!("{dir}/flags")).unwrap_or_default();
    let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap_or(1);
    if flags & 1 == 1 {
        let remedy = format!("if it is not needed, take it down first: `ip link set {name} down`");
        return Some((format!("{name} is up: its users would lose it"), remedy));
    }
    let own: u32 = system.text(&format!("{dir}/mtu"))?.trim().parse().ok()?;
    (own != mtu).then(|| {
        let remedy =
            format!("`mtu = {own}` in the path takes it as it is; `ip link set {name} mtu {mtu}` sets it");
        (format!("{name} has an MTU of {own} bytes, but the path one of {mtu}"), remedy)
    })
}

/// Why a guest cannot have a device.
fn device(path: &NetworkPath, system: &dyn System) -> Option<(String, String)> {
    if !path.kind.is_for_guests() {
        return None;
    }
    let device = path.device.unwrap_or(GuestDevice::Virtio);
    let lacks = |file: &str, remedy: &str| {
        (!system.opens(Path::new(file))).then(|| (format!("there is no {file} here"), remedy.to_owned()))
    };
    match device {
        GuestDevice::Vhost => lacks(
            "/dev/vhost-net",
            "load the module: `modprobe vhost_net`; a kernel without CONFIG_VHOST_NET does not have it",
        ),
        GuestDevice::Vfio => lacks(
            "/dev/vfio/vfio",
            "it needs an IOMMU (`intel_iommu=on`) and a NIC that is not in use, bound to vfio-pci",
        )
        .or_else(|| {
            let remedy = "use `device = \"virtio\"`, \"vhost\" or \"e1000\"";
            Some(("this tactus cannot give a NIC of the machine to a guest".into(), remedy.into()))
        }),
        GuestDevice::Virtio | GuestDevice::E1000 => None,
    }
    .or_else(|| {
        let named = path.kind == PathKind::Tap;
        named.then(|| lacks("/dev/net/tun", "load the module: `modprobe tun`")).flatten()
    })
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    fn path(kind: PathKind) -> NetworkPath {
        NetworkPath { kind, mtu: None, device: None, nics: None, gro: None, gso: None, rps: None, irq: None }
    }

    fn machine() -> Memory {
        Memory::new().root().program("ip").program("unshare").program("nsenter")
    }

    fn why(path: &NetworkPath, system: &Memory) -> String {
        match usable(path, system) {
            Usable::Yes { .. } => String::new(),
            Usable::No { reason, remedy } => format!("{reason}; {remedy}"),
        }
    }

    #[test]
    fn the_loopback_needs_nothing_and_everything_else_root_and_programs() {
        assert_eq!(why(&path(PathKind::Loopback), &Memory::new()), "");
        assert_eq!(why(&path(PathKind::Veth), &machine()), "");
        assert!(why(&path(PathKind::Veth), &Memory::new().root()).contains("install the package iproute2"));
        let user = Memory::new().program("ip").program("unshare").program("nsenter");
        assert!(why(&path(PathKind::Veth), &user).contains("as root"));
    }

    #[test]
    fn an_interface_that_is_not_there_is_virtual_or_in_use_is_not_taken() {
        let of = |first: &str| NetworkPath {
            nics: Some([first.to_owned(), "ens2".to_owned()]),
            ..path(PathKind::Nic)
        };
        let nic = |machine: Memory, name: &str, flags: &str| {
            let dir = format!("/sys/class/net/{name}");
            machine.file(format!("{dir}/device/vendor"), "0x8086\n").file(format!("{dir}/flags"), flags)
        };
        let two = nic(nic(machine(), "ens1", "0x1002\n"), "ens2", "0x1002\n");
        assert_eq!(why(&of("ens1"), &two), "");
        let words = why(&of("ens9"), &two);
        assert!(words.contains("no network interface ens9") && words.contains("ens1, ens2"), "{words}");
        let up = nic(nic(machine(), "ens1", "0x1003\n"), "ens2", "0x1002\n");
        assert!(why(&of("ens1"), &up).contains("ens1 is up"));
        let jumbo = two.clone().file("/sys/class/net/ens2/mtu", "9000\n");
        let words = why(&of("ens1"), &jumbo);
        assert!(words.contains("ens2 has an MTU of 9000 bytes") && words.contains("`mtu = 9000`"), "{words}");
        assert_eq!(why(&NetworkPath { mtu: Some(9000), ..of("ens1") }, &jumbo), "");
        let virtual_one = nic(machine(), "ens2", "0x1002\n").file("/sys/class/net/br0/flags", "0x1002\n");
        assert!(why(&of("br0"), &virtual_one).contains("not an interface of a NIC"));
        let unreadable = machine()
            .file("/sys/class/net/ens1/device/vendor", "")
            .file("/sys/class/net/ens2/device/vendor", "");
        assert!(why(&of("ens1"), &unreadable).contains("ens1 is up"), "what is not known is not taken");
    }

    #[test]
    fn what_is_to_be_set_needs_its_program_and_cpus_that_there_are() {
        let gro = NetworkPath { gro: Some(false), ..path(PathKind::Veth) };
        assert!(why(&gro, &machine()).contains("install the package ethtool"));
        assert_eq!(why(&gro, &machine().program("ethtool")), "");
        let machine = machine().file("/sys/devices/system/cpu/online", "0-1\n");
        let steered = |cpus: &str| NetworkPath { rps: Some(cpus.parse().unwrap()), ..path(PathKind::Veth) };
        assert_eq!(why(&steered("0-1"), &machine), "");
        let words = why(&steered("1-3"), &machine);
        assert!(words.contains("CPU 2,3") && words.contains("use some of 0,1"), "{words}");
    }

    #[test]
    fn interrupts_are_steered_to_cpus_that_there_are_and_of_nics_on_pci_alone() {
        let of = |cpus: &str| NetworkPath {
            nics: Some(["ens1".to_owned(), "ens2".to_owned()]),
            irq: Some(cpus.parse().unwrap()),
            ..path(PathKind::Nic)
        };
        let nic = |machine: Memory, name: &str, uevent: &str| {
            let dir = format!("/sys/class/net/{name}");
            machine.file(format!("{dir}/device/uevent"), uevent).file(format!("{dir}/flags"), "0x1002\n")
        };
        let machine = machine().file("/sys/devices/system/cpu/online", "0-1\n");
        let one = nic(machine, "ens1", "DRIVER=igb\nPCI_SLOT_NAME=0000:03:00.0\n");
        let two = nic(one.clone(), "ens2", "PCI_SLOT_NAME=0000:03:00.1\n");
        assert_eq!(why(&of("0-1"), &two), "");
        let words = why(&of("0,7"), &two);
        assert!(words.contains("`irq` names CPU 7"), "{words}");
        let words = why(&of("0"), &nic(one, "ens2", "DRIVER=usbnet\n"));
        assert!(words.contains("ens2 is not a NIC on PCI"), "{words}");
    }

    #[test]
    fn a_guest_has_no_device_that_the_machine_cannot_give_it() {
        let of = |device| NetworkPath { device: Some(device), ..path(PathKind::Tap) };
        let taps = machine().device("/dev/net/tun");
        assert_eq!(why(&of(GuestDevice::Virtio), &taps), "");
        assert_eq!(why(&of(GuestDevice::E1000), &taps), "");
        assert!(why(&of(GuestDevice::Virtio), &machine()).contains("/dev/net/tun"));
        assert_eq!(why(&path(PathKind::Macvtap), &machine()), "", "a macvtap is a file of its own");
        assert!(why(&of(GuestDevice::Vhost), &taps).contains("/dev/vhost-net"));
        assert_eq!(why(&of(GuestDevice::Vhost), &taps.device("/dev/vhost-net")), "");
        assert!(why(&of(GuestDevice::Vfio), &machine()).contains("/dev/vfio/vfio"));
        let words = why(&of(GuestDevice::Vfio), &machine().device("/dev/vfio/vfio"));
        assert!(
            words.contains("cannot give a NIC of the machine to a guest") && words.contains("\"vhost\""),
            "{words}"
        );
    }
}
