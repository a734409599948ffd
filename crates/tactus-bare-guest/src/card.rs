//! Answers an interrupt card: QEMU's ivshmem-doorbell, with a thread of the host behind it (docs/design/card.md).
//!
//! Card and guest share a page. The card writes a number to one word and raises an interrupt; its handler copies the number
//! to another word, and counts. That is all that there is between the device and the handler's first effect, with no
//! operating system in between. Or the guest looks at the word itself, again and again, and nothing is raised.

use core::cell::Cell;

use crate::sys::apic::CARD;
use crate::sys::cpu::{self, Single};
use crate::sys::interrupts;
use crate::sys::pci::Device;
use crate::sys::shared::Shared;
use crate::timer;

/// The PCI vendor and device number of the card.
const VENDOR: u16 = 0x1af4;
const NUMBER: u16 = 0x1110;
/// Which of its memory is shared.
const SHARED: u8 = 2;

/// The word that the card writes, the one that it is copied to, and the one that counts.
const SENT: usize = 0;
const ANSWERED: usize = 1;
const HANDLED: usize = 2;

/// The page, for the handler.
static PAGE: Single<Cell<Option<Shared>>> = Single::new(Cell::new(None));

/// A card that is answered.
#[derive(Clone, Copy)]
pub struct Card {
    device: Device,
    page: Shared,
    polls: bool,
}

/// The handler.
fn answer(_: u64) {
    let Some(page) = PAGE.get().get() else { return };
    page.write(ANSWERED, page.read(SENT));
    page.write(HANDLED, page.read(HANDLED).wrapping_add(1));
}

impl Card {
    /// Takes the card of this machine and answers from now on; `None` if the machine has no card.
    pub fn take(polls: bool) -> Option<Self> {
        let device = Device::find(VENDOR, NUMBER)?;
        let page = device.shared(SHARED)?;
        PAGE.get().set(Some(page));
        interrupts::handle(CARD, answer);
        device.interrupts(CARD)?;
        Some(Self { device, page, polls })
    }

    /// Answers for `ticks` ticks of the time stamp counter, and does nothing else.
    pub fn serve(self, ticks: u64) {
        if !self.polls {
            return timer::rest(ticks);
        }
        let until = cpu::tsc() + ticks;
        while cpu::tsc() < until {
            if self.page.read(SENT) != self.page.read(ANSWERED) {
                answer(0);
            }
        }
    }

    /// Answers no more.
    pub fn leave(self) {
        self.device.no_interrupts();
    }
}
