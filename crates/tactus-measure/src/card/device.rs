//! A card that is a PCI device: a register raises its interrupt, and a thread of this process answers by another.
//!
//! Guest and card then share one process. They exchange numbers in a separate page. The device does not see that page:
//! only its registers control it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use tactus_model::CpuSet;
use tactus_model::catalogue::measure::Interrupt;
use tactus_model::device_card::{AnswerRegister, CardTime, DeviceCard, Raises, Shows, Trigger};
use tactus_model::message::{Note, Refusal};
use tactus_model::scheduling::Policy;

use super::pci::{self, DEVICES, Rights, Taken};
use super::{Answering, Card, Doorbell, Ring};
use crate::channel;
use crate::refuse;
use crate::sys::{self, Page, Registers, SchedAttr};

/// The handler's stack, in bytes: its deepest call is a system call.
const STACK: usize = 128 * 1024;

/// Puts the calling thread on a CPU, before others. Its stack is locked with all other memory of the job.
fn prefer(cpu: u32, priority: u32) -> Result<(), Refusal> {
    sys::set_affinity(&CpuSet::one(cpu))
        .map_err(|error| failed(&format!("no CPU {cpu} for its handler"), &error))?;
    sys::set_scheduler(SchedAttr::fifo(priority))
        .map_err(|error| refuse::scheduling(Policy::Fifo, priority, cpu, &error))
}

/// The side that raises.
#[derive(Debug)]
pub(super) struct Raising {
    registers: Arc<Registers>,
    trigger: Trigger,
    time: Option<CardTime>,
    /// The device belongs to this process as long as this value lives.
    _taken: Option<Taken>,
}

impl Raising {
    #[inline]
    pub(super) fn raise(&self) {
        self.registers.write(self.trigger.at, self.trigger.write);
    }

    pub(super) const fn has_clock(&self) -> bool {
        self.time.is_some()
    }

    /// The reading of the device's clock before an interrupt is raised.
    #[inline]
    pub(super) fn ticks(&self) -> u32 {
        match self.time {
            Some(CardTime { at, shows: Shows::Counter, .. }) => self.registers.read(at),
            _ => 0,
        }
    }

    /// The time of the answer by the device's clock, in ns, if the clock showed `before` at the raise.
    #[inline]
    pub(super) fn took(&self, before: u32) -> u64 {
        let Some(time) = self.time else { return 0 };
        let ticks = self.registers.read(time.at);
        time.ns(if time.shows == Shows::Counter { ticks.wrapping_sub(before) } else { ticks })
    }
}

/// The thread that answers.
#[derive(Debug)]
pub(super) struct Handler {
    pub(super) cpu: u32,
    vector: Arc<OwnedFd>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Handler {
    /// Starts the handler, and waits until its thread is ready.
    fn start(
        cpu: u32,
        priority: u32,
        vector: OwnedFd,
        registers: Arc<Registers>,
        answer: AnswerRegister,
        guest: Answering,
    ) -> Result<Self, Refusal> {
        let (vector, over) = (Arc::new(vector), Arc::<AtomicBool>::default());
        let (mine, ends) = (Arc::clone(&vector), Arc::clone(&over));
        let (sender, receiver) = channel::channel();
        let thread =
            std::thread::Builder::new().name(format!("handler-{cpu}")).stack_size(STACK).spawn(move || {
                let ready = prefer(cpu, priority);
                let is_ready = ready.is_ok();
                sender.send(ready);
                drop(sender);
                let mut count = [0; 8];
                while is_ready
                    && rustix::io::read(&*mine, &mut count).is_ok()
                    && !ends.load(Ordering::Acquire)
                {
                    let word =
                        answer.copies.map_or(answer.write.unwrap_or_default(), |at| registers.read(at));
                    registers.write(answer.at, word);
                    guest.handle();
                }
            });
        let thread = thread.map_err(|error| failed("no thread for its handler", &error))?;
        let handler = Self { cpu, vector, over, thread: Some(thread) };
        match receiver.receive() {
            Some(ready) => ready.map(|()| handler),
            None => Err(refusal("the handler ended before it was ready".into(), "this is a bug in tactus")),
        }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        let _ = rustix::io::write(&*self.vector, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn refusal(reason: String, hint: &str) -> Refusal {
    Refusal { reason, hint: Some(hint.to_owned()) }
}

fn failed(what: &str, error: &io::Error) -> Refusal {
    let hint = "compare the card's description with the output of `lspci -v`";
    refusal(format!("the interrupt card cannot be driven: {what}: {error}"), hint)
}

/// The one device that a description means.
fn the_one(card: &DeviceCard, devices: &Path) -> Result<std::path::PathBuf, Refusal> {
    let mut found = pci::find(devices, card.pci);
    if let Some(address) = &card.address {
        found.retain(|place| pci::name(place) == address.as_str());
    }
    match (&*found, &card.address) {
        ([one], _) => Ok(one.clone()),
        ([], Some(address)) => Err(refusal(
            format!("there is no device {} at {address}", card.pci),
            "`lspci -Dn` lists the devices there; leave `address` out where there is one of the kind",
        )),
        ([], None) => Err(refusal(
            format!("there is no device {} ({})", card.pci, card.name),
            "`lspci -Dn` lists the devices there; a guest of the kind qemu has those of its key `pci`",
        )),
        (several, _) => Err(refusal(
            format!(
                "there are {} devices {}: {}",
                several.len(),
                card.pci,
                several.iter().map(|place| pci::name(place)).collect::<Vec<_>>().join(", ")
            ),
            "name one with `address` in the card's description",
        )),
    }
}

impl Card {
    /// Takes the device, and starts the handler on `cpu` with SCHED_FIFO. Returns a note on the access to the device.
    ///
    /// # Errors
    /// When the device is missing, is in use, or differs from its description.
    pub fn of_device(
        card: &DeviceCard,
        binds: bool,
        (cpu, priority): (u32, u32),
        table: &Interrupt,
    ) -> Result<(Self, Note), Refusal> {
        let place = the_one(card, Path::new(DEVICES))?;
        let taken = pci::take(&place, Rights { binds, without_iommu: card.without_iommu })?;
        let registers = taken.device.registers(card.bar, card.registers());
        let registers = Arc::new(registers.map_err(|error| failed("its registers", &error))?);
        let vector =
            eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed("no eventfd", &error.into()))?;
        let raises = if card.interrupt == Raises::Msi { "MSI" } else { "MSI-X" };
        taken
            .device
            .raise(card.interrupt, card.vectors, vector.as_fd())
            .map_err(|error| failed(&format!("its {} vectors of {raises}", card.vectors), &error))?;
        taken.lead(cpu);
        let note = Note::info(format!(
            "the card is {} ({} at {}): BAR {}, {}. Its {raises} is answered in user space, by a thread on \
             CPU {cpu} with SCHED_FIFO {priority}, which its eventfd wakes{}; {}",
            card.name,
            card.pci,
            pci::name(&place),
            card.bar,
            if registers.are_mapped() { "mapped" } else { "reached by system calls" },
            taken.words(),
            match card.time.map(|time| time.shows) {
                None =>
                    "it has no readable clock: latencies are times by the processor's clock, from before \
                     the register write that raises the interrupt until the handler's write is seen",
                Some(Shows::Elapsed) => "latencies are the times to an answer by its own clock",
                Some(Shows::Counter) =>
                    "latencies are times by its own clock, from before it is told to raise until after the \
                                         handler has written",
            }
        ));
        Ok((Self::driven(card, registers, Some(taken), vector, (cpu, priority), table)?, note))
    }

    /// One whose registers and interrupts are had already.
    fn driven(
        card: &DeviceCard,
        registers: Arc<Registers>,
        taken: Option<Taken>,
        vector: OwnedFd,
        (cpu, priority): (u32, u32),
        table: &Interrupt,
    ) -> Result<Self, Refusal> {
        let page = Arc::new(Page::own().map_err(|error| failed("no memory", &error))?);
        let guest = Answering::here(Arc::clone(&page));
        let handler =
            Handler::start(cpu, priority.max(1), vector, Arc::clone(&registers), card.answer, guest)?;
        let ring = Ring::Device(Raising { registers, trigger: card.trigger, time: card.time, _taken: taken });
        Ok(Self { handler: Some(handler), ..Self::new(Doorbell { page, ring }, table) })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::Answer;
    use super::*;

    const CARD: &str = "iommu 1234:11e8 - 0 msi 1 96 1 100 - 36 - - - a card";

    /// A device that is a thread: it raises its interrupt when it is triggered, and shows its clock's reading. The file
    /// stands for its memory.
    fn with_device(words: &str, clock: impl Fn(u32) -> u32 + Sync, then: impl FnOnce(&Card)) {
        let description: DeviceCard = words.parse().unwrap();
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let outside = Registers::by_calls(file.try_clone().unwrap().into(), 0);
        let registers = Arc::new(Registers::by_calls(file.into(), 0));
        let vector = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let raises = vector.try_clone().unwrap();
        let cpu = sys::affinity().unwrap().first().unwrap();
        let table = Interrupt { warm_up: Some(0), ..Interrupt::default() };
        let card = Card::driven(&description, registers, None, vector, (cpu, 1), &table);
        let Ok(card) = card else {
            let why = card.unwrap_err();
            eprintln!("SKIPPED: no thread of SCHED_FIFO: {}", why.reason);
            return;
        };
        /// Ends the device, however the test ends.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Release);
            }
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _over = Over(&over);
            scope.spawn(|| {
                let mut number = 0;
                while !over.load(Ordering::Acquire) {
                    if outside.read(0x60) != 0 {
                        outside.write(0x60, 0);
                        number += 1;
                        outside.write(0x24, number);
                        outside.write(0x10, clock(number));
                        let _ = rustix::io::write(&raises, &1u64.to_ne_bytes());
                    }
                    std::thread::yield_now();
                }
            });
            then(&card);
            assert_eq!(
                outside.read(0x64),
                outside.read(0x24),
                "the handler copies what the interrupt was for"
            );
        });
    }

    #[test]
    fn the_handler_of_a_device_answers_by_its_register_and_is_timed_until_that_is_seen() {
        with_device(
            CARD,
            |_| 0,
            |card| {
                for _ in 0..50 {
                    let (raised, answer) = card.ask(|| false);
                    assert!(matches!(answer, Answer::At(at) if at > raised), "{answer:?}");
                }
                assert_eq!((card.trouble(), card.counts().duplicates), (None, 0));
                assert!(card.account().is_empty(), "{:?}", card.account());
            },
        );
    }

    #[test]
    fn where_the_card_has_a_clock_that_is_what_counts() {
        // 125 ticks in a microsecond.
        let elapsed = "iommu 1234:11e8 - 0 msi 1 96 1 100 - 36 16 125 elapsed a card";
        with_device(
            elapsed,
            |_| 250,
            |card| {
                let (raised, answer) = card.ask(|| false);
                assert_eq!(answer, Answer::At(raised + 2_000));
            },
        );
        // The counter does not restart: the earlier reading is subtracted.
        let counter = "iommu 1234:11e8 - 0 msi 1 96 1 100 - 36 16 125 counter a card";
        with_device(
            counter,
            |number| (u32::MAX - 124).wrapping_add(number * 250),
            |card| {
                let _ = card.ask(|| false);
                let (raised, answer) = card.ask(|| false);
                assert_eq!(answer, Answer::At(raised + 2_000));
                assert_eq!(card.trouble(), None);
            },
        );
    }

    #[test]
    fn a_clock_that_says_more_than_has_passed_ends_it() {
        let wrong = "iommu 1234:11e8 - 0 msi 1 96 1 100 - 36 16 1 elapsed a card";
        with_device(
            wrong,
            |_| 3_600_000_000,
            |card| {
                assert_eq!(card.ask(|| false).1, Answer::None);
                let why = card.trouble().unwrap();
                assert!(why.contains("own clock shows 1h") && why.contains("`time`"), "{why}");
            },
        );
    }

    #[test]
    fn a_device_that_raises_nothing_is_given_up_and_said_to_be_the_handlers_matter() {
        let card = "iommu 1234:11e8 - 0 msi 1 200 1 100 - 36 - - - a card";
        with_device(
            card,
            |_| 0,
            |card| {
                let (began, answer) = card.ask(|| false);
                assert!(
                    matches!(answer, Answer::Lost(at) if at >= began + super::super::LOST_NS),
                    "{answer:?}"
                );
                let told = &card.account()[0];
                assert!(told.hint.as_ref().unwrap().contains("/proc/interrupts"), "{told:?}");
            },
        );
    }

    #[test]
    fn one_device_is_meant_and_which_is_said_where_there_are_several() {
        let dir = tempfile::tempdir().unwrap();
        let add = |address: &str| {
            let device = dir.path().join(address);
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("vendor"), "0x1234\n").unwrap();
            fs::write(device.join("device"), "0x11e8\n").unwrap();
        };
        let card: DeviceCard = CARD.parse().unwrap();
        let why = |card: &DeviceCard| the_one(card, dir.path()).unwrap_err();
        assert!(why(&card).reason.contains("no device 1234:11e8 (a card)"));
        add("0000:03:00.0");
        assert_eq!(the_one(&card, dir.path()).unwrap(), dir.path().join("0000:03:00.0"));
        add("0000:04:00.0");
        let several = why(&card);
        assert!(several.reason.contains("0000:03:00.0, 0000:04:00.0"), "{several:?}");
        assert!(several.hint.unwrap().contains("`address`"));
        let at = |address: &str| DeviceCard { address: Some(address.parse().unwrap()), ..card.clone() };
        assert_eq!(the_one(&at("0000:04:00.0"), dir.path()).unwrap(), dir.path().join("0000:04:00.0"));
        assert!(why(&at("0000:05:00.0")).reason.contains("at 0000:05:00.0"));
    }
}
