//! Whether a hypervisor is below a system. The audit, the evidence of numbers and the role of a system all use this
//! answer.
//!
//! An x86 processor has a bit for it (CPUID leaf 1, ECX bit 31). On other processors the firmware's tables (SMBIOS),
//! the device tree and devices that only QEMU has show it; their absence proves nothing. The names are those of
//! systemd-detect-virt (src/basic/virt.c).

use crate::Evidence;
use crate::facts::{Facts, Reading};

/// The readings' answer on a hypervisor below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below<'a> {
    /// A hypervisor, with its name if it reports one.
    Hypervisor(Option<&'a str>),
    /// The processor has a bit for it and does not set it.
    Nothing,
    /// Nothing that was read tells.
    Unknown,
}

const CPUINFO: &str = "/proc/cpuinfo";
const XEN: &str = "/sys/hypervisor/type";
const NODE: &str = "/proc/device-tree/hypervisor/compatible";
const MODELS: [&str; 2] = ["/proc/device-tree/model", "/sys/firmware/devicetree/base/model"];
const PRODUCT: &str = "/sys/class/dmi/id/product_name";
const FIRMWARE: [&str; 4] = [
    "/sys/class/dmi/id/sys_vendor",
    PRODUCT,
    "/sys/class/dmi/id/product_version",
    "/sys/class/dmi/id/bios_vendor",
];

/// The files that show it, beside a node of [`DEVICE_TREE`] whose name begins with [`FW_CFG`].
pub const FILES: [&str; 9] =
    [CPUINFO, XEN, NODE, MODELS[0], MODELS[1], FIRMWARE[0], FIRMWARE[1], FIRMWARE[2], FIRMWARE[3]];
/// The root of the device tree.
pub const DEVICE_TREE: &str = "/proc/device-tree";
/// How the name of QEMU's configuration device begins there.
pub const FW_CFG: &str = "fw-cfg@";

/// Beginnings of names in the firmware's tables that only a virtual machine has.
const VIRTUAL: [&str; 15] = [
    "QEMU",
    "KVM",
    "VMware",
    "VMW",
    "innotek",
    "VirtualBox",
    "Xen",
    "Parallels",
    "Bochs",
    "BHYVE",
    "Hyper-V",
    "Apple Virtualization",
    "OpenStack",
    "KubeVirt",
    "Firecracker",
];
/// Names of clouds, which also rent out whole machines.
const CLOUDS: [&str; 2] = ["Amazon EC2", "Google Compute Engine"];

impl Facts {
    /// Whether a hypervisor lies below this system.
    #[must_use]
    pub fn below(&self) -> Below<'_> {
        let bit =
            self.field(CPUINFO, "flags", ':').map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
        let whole = bit == Some(false) || self.text(PRODUCT).is_some_and(|product| product.contains("metal"));
        let dmi = |names: &[&str]| {
            let texts = FIRMWARE.iter().filter_map(|path| self.text(path));
            texts.into_iter().find(|text| names.iter().any(|name| text.starts_with(name)))
        };
        let named = self
            .text(XEN)
            .or_else(|| dmi(&VIRTUAL))
            .or_else(|| dmi(&CLOUDS).filter(|_| !whole))
            .or_else(|| self.text(NODE).map(terminated))
            .or_else(|| self.made_up_board());
        match (named, bit) {
            (None, Some(false)) => Below::Nothing,
            (None, None) => Below::Unknown,
            (named, _) => Below::Hypervisor(named),
        }
    }

    /// Whether a hypervisor is known to lie below this system.
    #[must_use]
    pub fn virtualized(&self) -> bool {
        matches!(self.below(), Below::Hypervisor(_))
    }

    /// The kind of evidence of this system's numbers, as far as the readings tell. Without a reading of the processor
    /// it is never bare hardware.
    #[must_use]
    pub fn evidence(&self) -> Evidence {
        match self.below() {
            Below::Nothing => Evidence::BareMetal,
            Below::Unknown if self.text(CPUINFO).is_some() => Evidence::BareMetal,
            Below::Unknown | Below::Hypervisor(_) => Evidence::VirtualHost,
        }
    }

    /// A board that only exists in QEMU: by its device tree, or by a device that QEMU makes up (Red Hat's second
    /// PCI vendor id, docs/specs/pci-ids of QEMU).
    fn made_up_board(&self) -> Option<&'static str> {
        let model = || MODELS.iter().any(|path| self.text(path).map(terminated) == Some("linux,dummy-virt"));
        let tree = || {
            let nodes = self.under(DEVICE_TREE).filter_map(|(name, reading)| {
                let node = name.strip_prefix(DEVICE_TREE)?.strip_prefix('/')?;
                matches!(reading, Reading::Text(_)).then_some(node)
            });
            nodes.into_iter().any(|node| node.starts_with(FW_CFG))
        };
        let device = || {
            self.under("pci:").any(|(_, reading)| {
                matches!(reading, Reading::Text(text)
                    if text.split_ascii_whitespace().nth(1).is_some_and(|id| id.starts_with("1b36:")))
            })
        };
        (model() || tree() || device()).then_some("QEMU")
    }
}

/// A text of a device tree without its terminator.
fn terminated(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings of the processor: an x86 with and without the bit, and one of Arm.
    const SET: (&str, &str) = (CPUINFO, "processor\t: 0\nflags\t\t: fpu hypervisor lm\n");
    const CLEAR: (&str, &str) = (CPUINFO, "processor\t: 0\nflags\t\t: fpu vmx lm\n");
    const ARM: (&str, &str) = (CPUINFO, "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n");
    const VENDOR: &str = FIRMWARE[0];

    fn facts(readings: &[(&str, &str)]) -> Facts {
        let mut facts = Facts::default();
        readings.iter().for_each(|(name, text)| facts.keep(*name, *text));
        facts
    }

    #[test]
    fn the_bit_of_an_x86_processor_decides_unless_a_name_betrays_who_hides_it() {
        assert_eq!(facts(&[SET]).below(), Below::Hypervisor(None));
        assert_eq!(facts(&[CLEAR]).below(), Below::Nothing);
        assert_eq!(facts(&[CLEAR, (VENDOR, "QEMU")]).below(), Below::Hypervisor(Some("QEMU")));
        assert_eq!(
            facts(&[CLEAR, (VENDOR, "Amazon EC2")]).below(),
            Below::Nothing,
            "a whole machine of a cloud"
        );
        assert_eq!(facts(&[CLEAR, (XEN, "xen\n")]).below(), Below::Hypervisor(Some("xen")));
    }

    #[test]
    fn nothing_is_the_hardware_of_whose_processor_nothing_was_read() {
        assert_eq!(facts(&[CLEAR]).evidence(), Evidence::BareMetal);
        assert_eq!(facts(&[ARM]).evidence(), Evidence::BareMetal);
        assert_eq!(facts(&[SET]).evidence(), Evidence::VirtualHost);
        assert_eq!(facts(&[]).evidence(), Evidence::VirtualHost);
        assert_eq!(facts(&[(VENDOR, "a board")]).evidence(), Evidence::VirtualHost);
    }

    #[test]
    fn a_machine_without_such_a_bit_is_told_by_its_firmware_its_device_tree_or_its_devices() {
        for reading in [
            (VENDOR, "QEMU"),
            (VENDOR, "VMware, Inc."),
            (VENDOR, "Amazon EC2"),
            (PRODUCT, "KVM Virtual Machine"),
            (PRODUCT, "Google Compute Engine"),
            (PRODUCT, "Apple Virtualization Generic Platform"),
            (NODE, "linux,kvm\0"),
            (NODE, "jailhouse,cell"),
            (XEN, "xen"),
            (MODELS[0], "linux,dummy-virt\0"),
            (MODELS[1], "linux,dummy-virt"),
            ("/proc/device-tree/fw-cfg@9020000/compatible", "qemu,fw-cfg-mmio"),
            ("pci:0000:00:00.0", "0x060000 1b36:0008 - - -"),
        ] {
            assert!(facts(&[ARM, reading]).virtualized(), "{reading:?}");
        }
    }

    #[test]
    fn a_board_that_only_bears_a_makers_name_is_not_called_virtual_and_its_silence_proves_nothing() {
        for reading in [
            (VENDOR, "Google"),
            (VENDOR, "Apple Inc."),
            (VENDOR, "Microsoft Corporation"),
            (MODELS[0], "Raspberry Pi 4 Model B Rev 1.5"),
            ("/proc/device-tree/model", "fw-cfg@9020000"),
        ] {
            assert_eq!(facts(&[ARM, reading]).below(), Below::Unknown, "{reading:?}");
        }
        assert_eq!(facts(&[ARM, (VENDOR, "Amazon EC2"), (PRODUCT, "m6g.metal")]).below(), Below::Unknown);
        assert_eq!(facts(&[]).below(), Below::Unknown);
    }
}
