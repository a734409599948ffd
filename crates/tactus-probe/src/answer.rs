//! Answers an interrupt card in a Linux guest (docs/design/card.md): by default, a thread of this program has the
//! device, by VFIO.
//!
//! The guest's kernel counts its interrupt in an eventfd. The thread that reads it has the highest priority on its CPU,
//! and copies the number. Alternatively the thread polls, and no interrupt is raised, or a module answers that was
//! loaded when the guest came up. It runs in a [`crate::worker`], for ever.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use tactus_measure::card::Answering;
use tactus_measure::card::pci::{self, DEVICES, Rights};
use tactus_model::CpuSet;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::AnswerBy;
use tactus_model::device_card::{PciId, Raises};
use tactus_model::message::{Activity, CardEnd, Note, Refusal, What};

use crate::sys::{self, SchedAttr};
use crate::work::{Work, over, tell_note};

/// The PCI ids of the card: QEMU's ivshmem.
const CARD: PciId = PciId { vendor: 0x1af4, device: 0x1110 };
/// The module that answers it.
const MODULE: &str = "tactus_card";
/// The number of its memory region that is shared.
const SHARED: u32 = 2;

/// Whether an activity answers a card outside of this system.
pub fn answers(activity: &Activity) -> bool {
    activity.card == Some(CardEnd::Answers)
}

/// Takes the card, and says how.
pub fn works(activity: &Activity) -> Result<Vec<Work>, Refusal> {
    let What::Measure { measure: Measure::Interrupt(table), priority, .. } = &activity.what else {
        return Err(refusal("only an `interrupt` has a card to answer".into(), None));
    };
    let Some(cpu) = activity.cpus.first() else {
        return Err(refusal("the card's answers have no CPU".into(), None));
    };
    let card = pci::find(Path::new(DEVICES), CARD).into_iter().next().ok_or_else(|| {
        refusal("this machine has no interrupt card".into(), Some("it is QEMU's ivshmem-doorbell"))
    })?;
    if table.answer() == AnswerBy::Kernel {
        return by_module(&card, cpu);
    }
    let taken = pci::take(&card, Rights { binds: true, without_iommu: true })?;
    let shared = taken.device.memory(SHARED).and_then(|at| Answering::at(taken.device.as_fd(), at));
    let shared = shared.map_err(|error| failed("its memory", &error))?;
    let (polls, priority) = (table.answer() == AnswerBy::Poll, *priority);
    if polls {
        tell_note(&Note::info(format!("the card is polled by a process on CPU {cpu}{}", taken.words())));
        return Ok(vec![Box::new(move |rounds| {
            let _taken = taken;
            poll(&shared, cpu, rounds)
        })]);
    }
    let vector = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed("no eventfd", &error.into()))?;
    let raised = taken.device.raise(Raises::MsiX, 1, vector.as_fd());
    raised.map_err(|error| failed("it has no vector of MSI-X", &error))?;
    taken.lead(cpu);
    tell_note(&Note::info(format!(
        "the card's interrupts are answered in user space, by a process on CPU {cpu} with SCHED_FIFO {priority}, which its \
         eventfd wakes{}",
        taken.words()
    )));
    Ok(vec![Box::new(move |rounds| {
        let _taken = taken;
        prefer(cpu, priority);
        let mut count = [0; 8];
        while rustix::io::read(&vector, &mut count).is_ok() {
            shared.handle();
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    })])
}

/// Leaves the answers to the module, if that has the card.
fn by_module(card: &Path, cpu: u32) -> Result<Vec<Work>, Refusal> {
    let driver = fs::read_link(card.join("driver")).unwrap_or_default();
    if driver.file_name().is_none_or(|name| name != MODULE) {
        let hint = "the guest's console, which the bundle keeps, has the kernel's own words";
        return Err(refusal(format!("the module {MODULE} has not taken the interrupt card"), Some(hint)));
    }
    pci::lead(card, cpu);
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
    let hint = "the guest's kernel needs vfio-pci and, for a device behind an IOMMU, vfio_iommu_type1";
    refusal(format!("the interrupt card cannot be taken: {what}: {error}"), Some(hint))
}

/// Answers by looking, with ordinary scheduling: it takes all of its CPU, and whatever else runs there must come to run.
fn poll(shared: &Answering, cpu: u32, rounds: &AtomicU64) -> ! {
    crate::work::reset_scheduling(&CpuSet::one(cpu));
    loop {
        if shared.is_asked() {
            shared.handle();
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        std::hint::spin_loop();
    }
}

/// Puts this process on a CPU, before others, without a page that it must wait for.
fn prefer(cpu: u32, priority: u32) {
    let _ = sys::set_affinity(&CpuSet::one(cpu));
    let _ = rustix::mm::mlockall(rustix::mm::MlockAllFlags::CURRENT);
    if let Err(error) = sys::set_scheduler(SchedAttr::fifo(priority)) {
        over(&format!("SCHED_FIFO {priority} was refused: {error}"));
    }
}
