//! A PCI device is found, and taken by VFIO.

use std::collections::BinaryHeap;
use std::fs;
use std::path::{Path, PathBuf};

use tactus_model::device_card::PciId;
use tactus_model::message::Refusal;

use crate::sys::vfio::Device;

/// The kernel's directory of devices.
pub const DEVICES: &str = "/sys/bus/pci/devices";
/// The driver that leaves a device to a program.
const DRIVER: &str = "vfio-pci";
/// Whether VFIO may have devices that no IOMMU keeps in.
const UNSAFE: &str = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";

/// The rights to take a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// It may be taken from its driver: the machine belongs to the run.
    pub binds: bool,
    /// It may be taken without an IOMMU that confines it. It can then write to all memory of the machine.
    pub without_iommu: bool,
}

/// A device that this process has.
#[derive(Debug)]
pub struct Taken {
    /// The device.
    pub device: Device,
    /// Whether an IOMMU keeps it in.
    pub iommu: bool,
    /// Its directory.
    place: PathBuf,
}

/// The devices in `devices` with this identity, in the order of their addresses.
#[must_use]
pub fn find(devices: &Path, id: PciId) -> Vec<PathBuf> {
    let is = |device: &Path, file: &str, number: u16| {
        fs::read_to_string(device.join(file)).is_ok_and(|text| text.trim() == format!("0x{number:04x}"))
    };
    let entries = fs::read_dir(devices).into_iter().flatten().flatten().map(|entry| entry.path());
    let found = entries.filter(|device| is(device, "vendor", id.vendor) && is(device, "device", id.device));
    let names: BinaryHeap<String> = found.map(|device| name(&device)).collect();
    names.into_sorted_vec().into_iter().map(|name| devices.join(name)).collect()
}

/// The last part of a path.
#[must_use]
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn refusal(reason: String, hint: &str) -> Refusal {
    Refusal { reason, hint: Some(hint.to_owned()) }
}

fn failed(what: &str, error: &std::io::Error) -> Refusal {
    let hint = "the kernel needs vfio-pci and, for a device behind an IOMMU, vfio_iommu_type1";
    refusal(format!("the interrupt card cannot be taken: {what}: {error}"), hint)
}

/// The driver that has a device.
fn driver(place: &Path) -> Option<String> {
    fs::read_link(place.join("driver")).ok().map(|path| name(&path))
}

/// Gives a device to vfio-pci.
fn bind(place: &Path) -> Result<(), Refusal> {
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|error| failed(&path.display().to_string(), &error))
    };
    let address = name(place);
    if driver(place).is_some() {
        write(&place.join("driver/unbind"), &address)?;
    }
    write(&place.join("driver_override"), DRIVER)?;
    write(Path::new("/sys/bus/pci/drivers_probe"), &address)
}

/// Takes the device with this directory.
///
/// # Errors
/// The driver that has it, or the missing condition, with a hint.
pub fn take(place: &Path, rights: Rights) -> Result<Taken, Refusal> {
    let (address, iommu) = (name(place), place.join("iommu_group").exists());
    // vfio-pci also gives a device without an IOMMU a group, with a special name.
    let iommu = iommu && !in_no_iommu(place);
    if !iommu && !rights.without_iommu {
        return Err(refusal(
            format!("no IOMMU restricts {address}: it could write to all memory of this machine"),
            "enable the IOMMU (in the firmware, and with `intel_iommu=on` on the kernel's command line); or \
             write `without_iommu = true` in the card's description, which is unsafe",
        ));
    }
    if driver(place).as_deref() != Some(DRIVER) {
        if !rights.binds {
            let by =
                driver(place).map_or_else(|| "no driver".to_owned(), |driver| format!("the driver {driver}"));
            return Err(refusal(
                format!(
                    "{address} is bound to {by}, not to {DRIVER}; tactus does not unbind a host's device \
                        from its driver"
                ),
                &format!(
                    "as root: `modprobe {DRIVER}`, then `driverctl --nosave set-override {address} {DRIVER}`; or, in \
                     {DEVICES}/{address}: `echo {address} > driver/unbind`, `echo {DRIVER} > driver_override`, and `echo \
                     {address} > /sys/bus/pci/drivers_probe`"
                ),
            ));
        }
        if !iommu {
            fs::write(UNSAFE, "Y").map_err(|error| {
                failed(
                    "this machine has no IOMMU, and its VFIO may not work without one (CONFIG_VFIO_NOIOMMU)",
                    &error,
                )
            })?;
        }
        bind(place)?;
    }
    let group = fs::read_link(place.join("iommu_group"));
    let group = name(&group.map_err(|error| failed("vfio-pci has not taken it", &error))?);
    let file = if iommu { format!("/dev/vfio/{group}") } else { format!("/dev/vfio/noiommu-{group}") };
    let device = Device::open(&file, &address, iommu).map_err(|error| failed(&file, &error))?;
    device.switch_on().map_err(|error| failed("its configuration", &error))?;
    Ok(Taken { device, iommu, place: place.to_owned() })
}

/// Whether VFIO made the device's group without an IOMMU.
fn in_no_iommu(place: &Path) -> bool {
    fs::read_to_string(place.join("iommu_group/name")).is_ok_and(|name| name.trim() == "vfio-noiommu")
}

impl Taken {
    /// A phrase on the access to the device, as the end of a sentence.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        if self.iommu { " (vfio-pci, behind an IOMMU)" } else { " (vfio-pci without an IOMMU: unsafe)" }
    }

    /// Leads its interrupts to a CPU.
    pub fn lead(&self, cpu: u32) {
        lead(&self.place, cpu);
    }
}

/// Directs the interrupts of a device to a CPU. If the kernel does not allow that, it chooses the CPU.
pub fn lead(place: &Path, cpu: u32) {
    for entry in fs::read_dir(place.join("msi_irqs")).into_iter().flatten().flatten() {
        let number = entry.file_name();
        let _ = fs::write(Path::new("/proc/irq").join(number).join("smp_affinity_list"), cpu.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHTS: Rights = Rights { binds: false, without_iommu: false };

    #[test]
    fn a_card_is_found_by_its_identity_and_never_taken_from_its_driver() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let add = |address: &str, vendor: &str, number: &str| {
            let device = dir.join(address);
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("vendor"), format!("{vendor}\n")).unwrap();
            fs::write(device.join("device"), format!("{number}\n")).unwrap();
        };
        let card: PciId = "1af4:1110".parse().unwrap();
        add("0000:00:01.0", "0x1af4", "0x1003");
        add("0000:00:02.0", "0x8086", "0x1110");
        assert!(find(dir, card).is_empty());
        add("0000:00:04.0", "0x1af4", "0x1110");
        add("0000:00:03.0", "0x1af4", "0x1110");
        let place = dir.join("0000:00:03.0");
        assert_eq!(find(dir, card), [place.clone(), dir.join("0000:00:04.0")]);
        assert!(find(&dir.join("none"), card).is_empty());

        let refused = |rights| take(&place, rights).unwrap_err();
        let without = refused(RIGHTS);
        assert!(without.reason.contains("no IOMMU restricts 0000:00:03.0"), "{without:?}");
        assert!(without.hint.unwrap().contains("without_iommu = true"));
        fs::create_dir(place.join("iommu_group")).unwrap();
        let nobody = refused(RIGHTS);
        assert!(nobody.reason.contains("bound to no driver"), "{nobody:?}");
        assert!(nobody.hint.unwrap().contains("0000:00:03.0 > driver/unbind"));
        fs::create_dir(dir.join("e1000e")).unwrap();
        std::os::unix::fs::symlink("../e1000e", place.join("driver")).unwrap();
        assert!(refused(RIGHTS).reason.contains("bound to the driver e1000e"));
        assert!(!place.join("driver_override").exists(), "nothing was changed");
    }
}
