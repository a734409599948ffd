//! The CPUs that the interrupts of a path's NICs are sent to. NICs and interrupts belong to the machine: before each
//! change, tactus promises to restore the former CPUs.

use std::path::Path;

use tactus_model::CpuSet;
use tactus_model::plan::NetworkPath;
use tactus_model::undo::Undo;
use tactus_system::System;
use tactus_system::guardian::{Guardian, Promise};

use crate::StartError;
use crate::support::cannot;

/// The PCI address of an interface's NIC; `None` if it is not on PCI. A virtio NIC is on a separate bus below its PCI
/// device.
pub fn pci(interface: &str, system: &dyn System) -> Option<String> {
    ["device", "device/.."].into_iter().find_map(|at| {
        let text = system.text(&format!("/sys/class/net/{interface}/{at}/uevent"))?;
        text.lines().find_map(|line| line.strip_prefix("PCI_SLOT_NAME=")).map(str::to_owned)
    })
}

/// Where the NICs of a path are whose interrupts are to be steered: asked while their interfaces are in sight.
pub fn nics(path: &NetworkPath, system: &dyn System) -> Vec<String> {
    let named = path.irq.as_ref().and(path.nics.as_ref());
    named.into_iter().flatten().filter_map(|name| pci(name, system)).collect()
}

/// Sends every interrupt of these NICs to some CPUs, until the returned values are dropped. Call it when their
/// interfaces are up: some drivers request their interrupts only then.
///
/// # Errors
/// When one cannot be moved: the measurement would not be the one that was asked for.
pub fn steer(
    nics: &[String],
    cpus: &CpuSet,
    system: &dyn System,
    guardian: &Guardian,
) -> Result<Vec<Promise>, StartError> {
    steer_below("", nics, cpus, system, guardian)
}

/// The same, of a machine whose files lie in a directory.
fn steer_below(
    root: &str,
    nics: &[String],
    cpus: &CpuSet,
    system: &dyn System,
    guardian: &Guardian,
) -> Result<Vec<Promise>, StartError> {
    let mut promises = Vec::new();
    for nic in nics {
        let all = interrupts(root, nic, system);
        if all.is_empty() {
            return Err(cannot(&format!("the interrupts of {nic} cannot be moved"), "it has none"));
        }
        for irq in all {
            let path = format!("{root}/proc/irq/{irq}/smp_affinity_list");
            let failed = |why: &dyn std::fmt::Display| StartError {
                reason: format!("interrupt {irq} of {nic} cannot be moved to CPU {cpus}: {why}"),
                hint: Some(
                    "for some drivers only the kernel spreads them (managed interrupts): leave out `irq`"
                        .into(),
                ),
            };
            let former = system.text(&path).ok_or_else(|| failed(&format!("{path} cannot be read")))?;
            let former = former.trim().to_owned();
            let how = Undo::Write { path: path.clone().into(), value: former };
            promises.push(guardian.promise(how).map_err(|error| failed(&error))?);
            system.write(Path::new(&path), cpus.to_string().as_bytes()).map_err(|error| failed(&error))?;
        }
    }
    Ok(promises)
}

/// The interrupts of a device: its messages, or the line of one that has none.
fn interrupts(root: &str, pci: &str, system: &dyn System) -> Vec<u32> {
    let device = format!("{root}/sys/bus/pci/devices/{pci}");
    let messages = system.list(Path::new(&format!("{device}/msi_irqs"))).unwrap_or_default();
    let number = |path: &std::path::PathBuf| path.file_name()?.to_str()?.parse().ok();
    let mut all: Vec<u32> = messages.iter().filter_map(number).collect();
    if all.is_empty() {
        let line = system.text(&format!("{device}/irq")).and_then(|text| text.trim().parse::<u32>().ok());
        all.extend(line.filter(|irq| *irq > 0));
    }
    all
}

#[cfg(test)]
mod tests {
    use tactus_model::plan::PathKind;
    use tactus_system::{Memory, Real};

    use super::*;

    /// A machine with a NIC of two messages, one of a line and one without interrupts, and their files' text.
    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("sys/bus/pci/devices/0000:03:00.0/msi_irqs/24", "msix\n"),
            ("sys/bus/pci/devices/0000:03:00.0/msi_irqs/25", "msix\n"),
            ("sys/bus/pci/devices/0000:03:00.0/irq", "16\n"),
            ("sys/bus/pci/devices/0000:04:00.0/irq", "17\n"),
            ("sys/bus/pci/devices/0000:05:00.0/irq", "0\n"),
            ("proc/irq/16/smp_affinity_list", "0-3\n"),
            ("proc/irq/17/smp_affinity_list", "1\n"),
            ("proc/irq/24/smp_affinity_list", "2\n"),
            ("proc/irq/25/smp_affinity_list", "0-3\n"),
        ] {
            let path = dir.path().join(path);
            Real.make_dir(path.parent().unwrap()).unwrap();
            Real.write(&path, text.as_bytes()).unwrap();
        }
        dir
    }

    /// The present CPUs of the interrupts 16, 17, 24 and 25.
    fn now(dir: &tempfile::TempDir) -> [String; 4] {
        let of = |irq: u32| dir.path().join(format!("proc/irq/{irq}/smp_affinity_list"));
        [16, 17, 24, 25].map(|irq| Real.text(of(irq).to_str().unwrap()).unwrap().trim().to_owned())
    }

    fn steered(
        dir: &tempfile::TempDir,
        nics: &[&str],
        guardian: &Guardian,
    ) -> Result<Vec<Promise>, StartError> {
        let nics: Vec<String> = nics.iter().map(|nic| (*nic).to_owned()).collect();
        steer_below(dir.path().to_str().unwrap(), &nics, &"0-1".parse().unwrap(), &Real, guardian)
    }

    #[test]
    fn every_interrupt_of_the_nics_is_sent_there_and_goes_back_to_where_it_was() {
        let (dir, guardian) = (machine(), Guardian::start(&Real).unwrap());
        let promises = steered(&dir, &["0000:03:00.0", "0000:04:00.0"], &guardian).unwrap();
        assert_eq!(now(&dir), ["0-3", "0,1", "0,1", "0,1"], "a NIC with messages does not use its line");
        drop(promises);
        assert_eq!(now(&dir), ["0-3", "1", "2", "0-3"]);
    }

    #[test]
    fn what_a_run_leaves_behind_the_guardian_puts_back() {
        let (dir, guardian) = (machine(), Guardian::start(&Real).unwrap());
        steered(&dir, &["0000:03:00.0"], &guardian).unwrap().into_iter().for_each(Promise::defer);
        assert_eq!(now(&dir), ["0-3", "1", "0,1", "0,1"]);
        guardian.finish();
        assert_eq!(now(&dir), ["0-3", "1", "2", "0-3"]);
    }

    #[test]
    fn one_that_cannot_be_sent_there_is_named_and_those_before_it_go_back() {
        let (dir, guardian) = (machine(), Guardian::start(&Real).unwrap());
        Real.remove(&dir.path().join("proc/irq/25/smp_affinity_list")).unwrap();
        let error = steered(&dir, &["0000:04:00.0", "0000:03:00.0"], &guardian).err().unwrap();
        assert!(error.reason.contains("interrupt 25 of 0000:03:00.0"), "{}", error.reason);
        assert!(error.hint.unwrap().contains("managed"));
        Real.write(&dir.path().join("proc/irq/25/smp_affinity_list"), b"0-3\n").unwrap();
        assert_eq!(now(&dir), ["0-3", "1", "2", "0-3"]);
        let error = steered(&dir, &["0000:05:00.0"], &guardian).err().unwrap();
        assert!(error.reason.contains("0000:05:00.0") && error.reason.contains("none"), "{}", error.reason);
    }

    #[test]
    fn a_nic_is_found_on_pci_by_its_interface_that_of_virtio_too_and_only_where_it_is_to_be_steered() {
        let system = Memory::new()
            .file("/sys/class/net/ens1/device/uevent", "DRIVER=igb\nPCI_SLOT_NAME=0000:03:00.0\n")
            .file("/sys/class/net/ens2/device/uevent", "DRIVER=virtio_net\nMODALIAS=virtio:d1v1AF4\n")
            .file("/sys/class/net/ens2/device/../uevent", "DRIVER=virtio-pci\nPCI_SLOT_NAME=0000:00:03.0\n")
            .file("/sys/class/net/usb0/device/uevent", "DRIVER=usbnet\n");
        let mut path = NetworkPath {
            kind: PathKind::Nic,
            mtu: None,
            device: None,
            nics: Some(["ens1".into(), "ens2".into()]),
            gro: None,
            gso: None,
            rps: None,
            irq: None,
        };
        assert!(nics(&path, &system).is_empty());
        path.irq = Some(CpuSet::one(0));
        assert_eq!(nics(&path, &system), ["0000:03:00.0", "0000:00:03.0"]);
        assert_eq!(pci("usb0", &system), None);
    }
}
