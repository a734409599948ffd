//! Answers an interrupt card in a Linux guest (docs/design/card.md): a thread of this program has the device, by VFIO.
//!
//! The guest's kernel counts its interrupt in an eventfd, and the thread that reads it, before all others of its CPU,
//! copies the number. Or it polls, and nothing is raised. Or a module answers, which was loaded when the guest came up.
//! It runs in a [`crate::worker`], and is for ever.

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use tactus_measure::card::Answering;
use tactus_model::CpuSet;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::AnswerBy;
use tactus_model::message::{Activity, CardEnd, Note, Refusal, What};

use crate::sys::vfio::Device;
use crate::sys::{self, SchedAttr};
use crate::work::{Work, over, tell_note};

/// What the card says it is: QEMU's ivshmem.
const VENDOR: &str = "0x1af4";
const NUMBER: &str = "0x1110";
/// The module that answers it.
const MODULE: &str = "tactus_card";
/// Which of its memory is shared.
const SHARED: u32 = 2;
/// Where the kernel lists the devices.
const DEVICES: &str = "/sys/bus/pci/devices";
/// Whether VFIO may have devices that no IOMMU keeps in.
const UNSAFE: &str = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";

/// Whether an activity answers a card of somebody else's.
pub fn answers(activity: &Activity) -> bool {
    activity.card == Some(CardEnd::Answers)
}

/// Takes the card, and says how.
pub fn works(activity: &Activity) -> Result<Vec<Work>, Refusal> {
    let What::Measure { measure: Measure::Interrupt(table), priority, .. } = &activity.what else {
        return Err(refusal("nobody answers a card for what is no `interrupt`".into(), None));
    };
    let Some(cpu) = activity.cpus.first() else {
        return Err(refusal("the card's answers have no CPU".into(), None));
    };
    let card = find(Path::new(DEVICES)).ok_or_else(|| {
        refusal("this machine has no interrupt card".into(), Some("it is QEMU's ivshmem-doorbell"))
    })?;
    if table.answer() == AnswerBy::Kernel {
        return by_module(&card, cpu);
    }
    let taken = Taken::new(&card)?;
    let (polls, priority) = (table.answer() == AnswerBy::Poll, *priority);
    if polls {
        tell_note(&Note::info(format!("the card is polled by a process on CPU {cpu}{}", taken.words())));
        return Ok(vec![Box::new(move |rounds| taken.poll(cpu, rounds))]);
    }
    let vector = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed("no eventfd", &error.into()))?;
    taken.device.raise(vector.as_fd()).map_err(|error| failed("it has no vector of MSI-X", &error))?;
    lead(&card, cpu);
    tell_note(&Note::info(format!(
        "the card's interrupts are answered in user space, by a process on CPU {cpu} with SCHED_FIFO {priority}, which its \
         eventfd wakes{}",
        taken.words()
    )));
    Ok(vec![Box::new(move |rounds| {
        prefer(cpu, priority);
        let mut count = [0; 8];
        while rustix::io::read(&vector, &mut count).is_ok() {
            taken.shared.handle();
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    })])
}

/// Leaves the answers to the module, where that has the card.
fn by_module(card: &Path, cpu: u32) -> Result<Vec<Work>, Refusal> {
    let driver = fs::read_link(card.join("driver")).unwrap_or_default();
    if driver.file_name().is_none_or(|name| name != MODULE) {
        let hint = "the guest's console, which the bundle keeps, has the kernel's own words";
        return Err(refusal(format!("the module {MODULE} has not taken the interrupt card"), Some(hint)));
    }
    lead(card, cpu);
    tell_note(&Note::info(format!(
        "the card's interrupts are answered in the kernel, by the handler of the module {MODULE} on CPU {cpu}"
    )));
    Ok(vec![Box::new(|_| {
        loop {
            std::thread::park();
        }
    })])
}

fn refusal(reason: String, hint: Option<&str>) -> Refusal {
    Refusal { reason, hint: hint.map(str::to_owned) }
}

fn failed(what: &str, error: &std::io::Error) -> Refusal {
    let hint = "the guest's kernel needs vfio-pci and, for a device that an IOMMU keeps in, vfio_iommu_type1";
    refusal(format!("the interrupt card cannot be taken: {what}: {error}"), Some(hint))
}

/// The card among the devices.
fn find(devices: &Path) -> Option<PathBuf> {
    let is = |device: &Path, file: &str, what: &str| {
        fs::read_to_string(device.join(file)).is_ok_and(|text| text.trim() == what)
    };
    let mut devices = fs::read_dir(devices).ok()?.flatten().map(|entry| entry.path());
    devices.find(|device| is(device, "vendor", VENDOR) && is(device, "device", NUMBER))
}

/// A card that this process has.
struct Taken {
    shared: Answering,
    device: Device,
    iommu: bool,
}

impl Taken {
    fn new(card: &Path) -> Result<Self, Refusal> {
        let address = card.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let iommu = card.join("iommu_group").exists();
        if !iommu {
            fs::write(UNSAFE, "Y").map_err(|error| {
                failed(
                    "this machine has no IOMMU, and its VFIO may not do without (CONFIG_VFIO_NOIOMMU)",
                    &error,
                )
            })?;
        }
        let write = |path: &Path, text: &str| {
            fs::write(path, text).map_err(|error| failed(&path.display().to_string(), &error))
        };
        write(&card.join("driver_override"), "vfio-pci")?;
        write(Path::new("/sys/bus/pci/drivers_probe"), &address)?;
        let group = fs::read_link(card.join("iommu_group"));
        let group = group.map_err(|error| failed("vfio-pci has not taken it", &error))?;
        let group = group.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = if iommu { format!("/dev/vfio/{group}") } else { format!("/dev/vfio/noiommu-{group}") };
        let device = Device::open(&file, &address, iommu).map_err(|error| failed(&file, &error))?;
        let shared = device.switch_on().and_then(|()| Answering::at(device.as_fd(), device.memory(SHARED)?));
        Ok(Self { shared: shared.map_err(|error| failed("its memory", &error))?, device, iommu })
    }

    /// How it has the device.
    fn words(&self) -> &'static str {
        if self.iommu { " (vfio-pci, behind an IOMMU)" } else { " (vfio-pci without an IOMMU)" }
    }

    /// Answers by looking, with ordinary scheduling: it takes all of its CPU, and whatever else runs there must come to run.
    fn poll(&self, cpu: u32, rounds: &AtomicU64) -> ! {
        crate::work::reset_scheduling(&CpuSet::one(cpu));
        loop {
            if self.shared.is_asked() {
                self.shared.handle();
                rounds.fetch_add(1, Ordering::Relaxed);
            }
            std::hint::spin_loop();
        }
    }
}

/// Puts this process on a CPU, before others, without a page that it must wait for.
fn prefer(cpu: u32, priority: u32) {
    let _ = sys::set_affinity(&CpuSet::one(cpu));
    let _ = rustix::mm::mlockall(rustix::mm::MlockAllFlags::CURRENT);
    if let Err(error) = sys::set_scheduler(SchedAttr::fifo(priority)) {
        over(&format!("SCHED_FIFO {priority} cannot be had: {error}"));
    }
}

/// Leads the card's interrupts to a CPU. Where the kernel does not let anybody they go where it wants them.
fn lead(card: &Path, cpu: u32) {
    for entry in fs::read_dir(card.join("msi_irqs")).into_iter().flatten().flatten() {
        let number = entry.file_name();
        let _ = fs::write(Path::new("/proc/irq").join(number).join("smp_affinity_list"), cpu.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_card_is_found_by_what_it_says_it_is() {
        let dir = std::env::temp_dir().join(format!("tactus-card-{}", std::process::id()));
        let add = |address: &str, vendor: &str, number: &str| {
            let device = dir.join(address);
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("vendor"), format!("{vendor}\n")).unwrap();
            fs::write(device.join("device"), format!("{number}\n")).unwrap();
        };
        add("0000:00:01.0", "0x1af4", "0x1003");
        add("0000:00:02.0", "0x8086", "0x1110");
        assert_eq!(find(&dir), None);
        add("0000:00:03.0", "0x1af4", "0x1110");
        assert_eq!(find(&dir), Some(dir.join("0000:00:03.0")));
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(find(&dir), None);
    }
}
