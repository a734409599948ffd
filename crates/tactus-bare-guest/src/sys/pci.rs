//! Devices on the PCI bus: how one is found, where its memory is, and how its interrupts become ours (PCI Local Bus 3.0).
//!
//! Every device has 256 bytes of *configuration space*. A PC reads and writes it through two ports: 0xcf8 takes the
//! device and register, 0xcfc the value. The firmware has placed the device's memory (its *BARs*).

use super::apic;
use super::cpu::{inl, outl};
use super::shared::Shared;

const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;

const COMMAND: u8 = 0x04;
/// The device answers to its memory, and may write to ours: an MSI is such a write.
const COMMAND_MEMORY_AND_MASTER: u32 = 0b110;
const FIRST_BAR: u8 = 0x10;
const BAR_IS_64_BITS: u32 = 0b100;
const CAPABILITIES: u8 = 0x34;
const MSI_X: u32 = 0x11;
const MSI_X_ENABLED: u32 = 1 << 31;
const MSI_X_ALL_MASKED: u32 = 1 << 30;

/// Where a write is an interrupt: the CPU's number is in bits 12 to 19, the vector is what is written.
const MESSAGES: u32 = 0xfee0_0000;

/// A device of the first bus.
#[derive(Clone, Copy)]
pub struct Device(u32);

impl Device {
    /// The first device with this vendor and this number.
    pub fn find(vendor: u16, number: u16) -> Option<Self> {
        let id = u32::from(number) << 16 | u32::from(vendor);
        (0..32).map(|slot| Self(1 << 31 | slot << 11)).find(|device| device.read(0) == id)
    }

    fn read(self, register: u8) -> u32 {
        outl(ADDRESS, self.0 | u32::from(register & 0xfc));
        inl(DATA)
    }

    fn write(self, register: u8, value: u32) {
        outl(ADDRESS, self.0 | u32::from(register & 0xfc));
        outl(DATA, value);
    }

    /// A page of its memory of this number.
    pub fn shared(self, bar: u8) -> Option<Shared> {
        // SAFETY: the device says that it has memory there, and no memory of a device is less than a page.
        Some(unsafe { Shared::at(self.memory(bar)?) })
    }

    /// Where its memory of this number is; none where that is beyond what is mapped here.
    fn memory(self, bar: u8) -> Option<usize> {
        let register = FIRST_BAR + 4 * bar;
        let low = self.read(register);
        let high = if low & BAR_IS_64_BITS == 0 { 0 } else { self.read(register + 4) };
        let at = (low & !0xf) as usize;
        (at != 0 && high == 0).then_some(at)
    }

    /// Sends its first interrupt (MSI-X) to this CPU as `vector`; `None` if it has no such interrupt.
    pub fn interrupts(self, vector: u8) -> Option<()> {
        self.write(COMMAND, self.read(COMMAND) | COMMAND_MEMORY_AND_MASTER);
        let capability = self.msi_x()?;
        // The table of messages lies in memory of the device: which, the lowest three bits say.
        let table = self.read(capability + 4);
        let entry = self.memory((table & 7) as u8)? + (table & !7) as usize;
        let message = [MESSAGES | apic::number() << 12, 0, u32::from(vector), 0];
        for (word, value) in message.into_iter().enumerate() {
            // SAFETY: the table's first entry, which the device says is there: address, its upper half, data, mask.
            unsafe { core::ptr::write_volatile((entry as *mut u32).add(word), value) };
        }
        self.write(capability, self.read(capability) & !MSI_X_ALL_MASKED | MSI_X_ENABLED);
        Some(())
    }

    /// No interrupt of it comes any more.
    pub fn no_interrupts(self) {
        if let Some(capability) = self.msi_x() {
            self.write(capability, self.read(capability) & !MSI_X_ENABLED);
        }
    }

    /// Its MSI-X capability, in the list of all that it has: a kind, and where the next one is.
    fn msi_x(self) -> Option<u8> {
        let mut at = (self.read(CAPABILITIES) & 0xfc) as u8;
        // No device has more of them than fit.
        for _ in 0..48 {
            let head = self.read(at);
            if at == 0 || head & 0xff == MSI_X {
                return Some(at).filter(|at| *at != 0);
            }
            at = (head >> 8 & 0xfc) as u8;
        }
        None
    }
}
