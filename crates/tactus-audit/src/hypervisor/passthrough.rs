//! Devices that a guest owns: their driver on the host, and who else is in their IOMMU group.

use std::collections::BTreeMap;

use tactus_model::facts::Facts;
use tactus_model::finding::Severity;

use crate::vm::{OfWhole as _, Parameter, Vm, each};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "vfio-passthrough",
    title: "a passed-through device has the wrong driver or shares its IOMMU group",
    sources: &[Source::Xeon, Source::Qoriq, Source::Kernel("Documentation/driver-api/vfio.rst")],
    applies: &[Applies::Hypervisor],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::Libvirt],
    reversible: Reversible::Restart,
    hardware: false,
    reads: "-device vfio-pci of QEMU's command line; driver and IOMMU group of the PCI device (pci:*)",
    expected: "driver vfio-pci, and only bridges and devices of the same guest in its IOMMU group",
    why: "A dedicated device needs no exits for data, and with posted interrupts none for interrupts. Devices in one \
IOMMU group can reach each other without the IOMMU, so only the whole group is safe.",
    fix: "libvirt: <hostdev mode='subsystem' type='pci' managed='yes'>. Choose a slot, or a virtual function, with a \
separate IOMMU group.",
    risk: "The host loses the device; the guest cannot be migrated.",
    judge,
    changes: no_change,
}];

/// A PCI device of the host, from `pci:<address>`: `class vendor:device driver numa group`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pci<'a> {
    pub class: &'a str,
    pub driver: &'a str,
    pub node: Option<u32>,
    pub group: Option<&'a str>,
}

/// The PCI device with an address; `None` when the facts do not have it.
pub fn pci<'a>(facts: &'a Facts, address: &str) -> Option<Pci<'a>> {
    parse(facts.text(&format!("pci:{address}"))?)
}

fn parse(text: &str) -> Option<Pci<'_>> {
    let mut words = text.split_whitespace();
    let (class, _, driver) = (words.next()?, words.next()?, words.next()?);
    let node = words.next().and_then(|node| node.parse().ok());
    Some(Pci { class, driver, node, group: words.next().filter(|group| *group != "-") })
}

/// The host's address of a device that is given to a guest, with its domain.
pub fn given(device: &Parameter) -> Option<String> {
    if device.kind != "vfio-pci" {
        return None;
    }
    let address = match device.get("host") {
        Some(address) => address,
        None => device.get("sysfsdev")?.rsplit('/').next()?,
    };
    let colons = address.bytes().filter(|byte| *byte == b':').count();
    Some(if colons == 1 { format!("0000:{address}") } else { address.to_owned() })
}

fn judge(subject: &Subject<'_>) -> Verdict {
    let mut groups: BTreeMap<&str, Vec<(&str, Pci<'_>)>> = BTreeMap::new();
    for (name, _) in subject.facts.under("pci:") {
        let Some(device) = subject.facts.text(name).and_then(parse) else { continue };
        if let (Some(group), Some(address)) = (device.group, name.strip_prefix("pci:")) {
            groups.entry(group).or_default().push((address, device));
        }
    }
    each(subject, |vm| of(subject, vm, &groups))
}

fn of(subject: &Subject<'_>, vm: &Vm, groups: &BTreeMap<&str, Vec<(&str, Pci<'_>)>>) -> Verdict {
    let arguments = vm.qemu()?;
    let addresses: Vec<String> = arguments.devices().filter_map(given).collect();
    if addresses.is_empty() {
        return Err(arguments.without(Judgement::not_applicable("it has no dedicated device")));
    }
    let (mut faults, mut unknown, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for address in &addresses {
        let Some(device) = pci(subject.facts, address) else {
            unknown.push(address.as_str());
            continue;
        };
        read.push((address, device));
        if device.driver != "vfio-pci" {
            faults.push(format!(
                "{address} has the driver {}",
                if device.driver == "-" { "none" } else { device.driver }
            ));
        }
        let Some(group) = device.group else {
            faults.push(format!("{address} is in no IOMMU group"));
            continue;
        };
        let company: Vec<_> = groups
            .get(group)
            .into_iter()
            .flatten()
            .filter(|(other, pci)| !pci.class.starts_with("0x0604") && !addresses.iter().any(|a| a == other))
            .map(|(other, _)| *other)
            .collect();
        if let Some(first) = company.first() {
            let more = company.len() - 1;
            let more = if more > 0 { format!(" ({more} more)") } else { String::new() };
            faults.push(format!("{address} shares its IOMMU group {group} with {first}{more}"));
        }
    }
    let judgement = if !faults.is_empty() {
        Judgement::finding(faults.join(", "))
    } else if !unknown.is_empty() {
        Judgement::unreadable(format!("the facts do not include PCI device {}", unknown.join(", ")))
    } else {
        let each = if addresses.len() == 1 { "has" } else { "each have" };
        Judgement::ok(format!("{} {each} a separate IOMMU group", addresses.join(", ")))
    };
    Ok(read.into_iter().take(8).fold(judgement, |judgement, (address, device)| {
        let value = format!("driver {}, IOMMU group {}", device.driver, device.group.unwrap_or("-"));
        judgement.read(format!("PCI device {address}"), value)
    }))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::vm::testing::{arguments, host};

    const ID: &str = "vfio-passthrough";
    const NIC: (&str, &str) = ("pci:0000:3b:00.0", "0x020000 8086:1572 vfio-pci 0 12");

    #[test]
    fn a_device_is_bound_for_its_guest_and_alone() {
        let good = host().with(&[NIC, ("pci:0000:3a:00.0", "0x060400 8086:2030 pcieport 0 12")]);
        assert_eq!(good.state(ID), State::Ok, "{}", good.said(ID));
        let other = good.clone().and("pci:0000:3b:00.1", "0x020000 8086:1572 i40e 0 12");
        assert_eq!(
            (other.state(ID), other.said(ID).as_str()),
            (State::Finding, "rt (process 812): 0000:3b:00.0 shares its IOMMU group 12 with 0000:3b:00.1")
        );
        let bound = good.clone().and(NIC.0, "0x020000 8086:1572 i40e 0 12");
        assert!(bound.state(ID) == State::Finding && bound.said(ID).contains("has the driver i40e"));
        let unguarded = good.and(NIC.0, "0x020000 8086:1572 vfio-pci 0 -");
        assert!(unguarded.said(ID).contains("no IOMMU group"));
    }

    #[test]
    fn addresses_are_read_in_all_their_forms() {
        for form in ["host=3b:00.0", "sysfsdev=/sys/bus/pci/devices/0000:3b:00.0", "host=0000:3b:00.0"] {
            let line = format!("qemu-system-x86_64 -accel kvm -device vfio-pci,{form}");
            assert_eq!(host().with(&[NIC, ("vm:812:cmdline", &line)]).state(ID), State::Ok, "{form}");
        }
    }

    #[test]
    fn without_a_device_or_without_facts_there_is_no_verdict() {
        assert_eq!(host().state(ID), State::Unreadable);
        assert_eq!(host().and(NIC.0, "0x020000").state(ID), State::Unreadable);
        assert_eq!(arguments("vfio-pci", "virtio-rng-pci").state(ID), State::NotApplicable);
        assert_eq!(host().without("vm:812:cmdline").state(ID), State::Unreadable);
    }
}
