//! Instructions that no language has.

use core::arch::asm;
use core::arch::x86_64::{__cpuid_count, _rdtsc};
use core::sync::atomic::{AtomicU8, Ordering};

pub use core::arch::x86_64::CpuidResult;

/// The processor's description of itself.
pub fn cpuid(leaf: u32, subleaf: u32) -> CpuidResult {
    __cpuid_count(leaf, subleaf)
}

/// The time stamp counter, read after everything before it was done.
pub fn tsc() -> u64 {
    // SAFETY: every processor in 64-bit mode has both instructions; they touch no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        _rdtsc()
    }
}

/// Reads a model specific register. One that the processor does not have ends in a fault, which is said.
pub fn rdmsr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads no memory.
    unsafe { asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nomem, nostack)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model specific register.
///
/// # Safety
/// Some of them change what memory is where.
pub unsafe fn wrmsr(register: u32, value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    // SAFETY: the caller's.
    unsafe { asm!("wrmsr", in("ecx") register, in("eax") low, in("edx") high, options(nostack)) };
}

/// Reads a byte from an I/O port.
pub fn inb(port: u16) -> u8 {
    let value;
    // SAFETY: devices of this guest do nothing to its memory when a port is read.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack)) };
    value
}

/// Writes a byte to an I/O port.
pub fn outb(port: u16, value: u8) {
    // SAFETY: no device that is spoken to by bytes (serial line, end of the machine, port 0x80) writes to memory.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack)) };
}

/// Reads four bytes from an I/O port.
pub fn inl(port: u16) -> u32 {
    let value;
    // SAFETY: as `inb`.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack)) };
    value
}

/// Writes four bytes to an I/O port: the address and the data of a device's configuration.
pub fn outl(port: u16, value: u32) {
    // SAFETY: this only configures where a device's interrupts go, which is a vector that has a handler.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack)) };
}

/// Writes bytes to an I/O port, one after the other, in one instruction: KVM takes a page of them per exit.
pub fn outs(port: u16, bytes: &[u8]) {
    // SAFETY: reads the bytes and nothing else.
    unsafe {
        asm!("rep outsb", in("dx") port, inout("rsi") bytes.as_ptr() => _, inout("rcx") bytes.len() => _, options(readonly, nostack));
    }
}

/// Reads the version of the I/O APIC, by memory: which device's register it is says which exit it takes, and this one's is
/// in every machine.
pub fn read_io_apic() {
    const IO_APIC: usize = 0xfec0_0000;
    const VALUE: usize = IO_APIC + 0x10;
    // SAFETY: the registers' page, mapped, not cached; register 0 is selected after a reset, and reading it changes nothing.
    let _ = unsafe { core::ptr::read_volatile(VALUE as *const u32) };
}

/// Calls the hypervisor, with a number that it does not know. Intel's and AMD's processors have an instruction each, and an
/// exception for the other's.
pub fn hypercall() {
    const UNKNOWN: u64 = u64::MAX;
    if is_intel() {
        // SAFETY: KVM answers an unknown call with an error in rax, and changes nothing else.
        unsafe { asm!("vmcall", inout("rax") UNKNOWN => _, options(nostack)) };
    } else {
        // SAFETY: as above.
        unsafe { asm!("vmmcall", inout("rax") UNKNOWN => _, options(nostack)) };
    }
}

/// Whether the processor is one of Intel's. Asked once: the question is an exit itself.
fn is_intel() -> bool {
    static ASKED: AtomicU8 = AtomicU8::new(0);
    match ASKED.load(Ordering::Relaxed) {
        0 => {
            let intel = cpuid(0, 0).ebx == u32::from_le_bytes(*b"Genu");
            ASKED.store(if intel { 1 } else { 2 }, Ordering::Relaxed);
            intel
        }
        known => known == 1,
    }
}

/// Writes two bytes to an I/O port: the end of the machine, on machines with ACPI.
fn outw(port: u16, value: u16) {
    // SAFETY: as `outb`.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack)) };
}

/// No interrupt comes until they are on again.
pub fn interrupts_off() {
    // SAFETY: touches a flag of the processor.
    unsafe { asm!("cli", options(nomem, nostack)) };
}

/// Interrupts come.
pub fn interrupts_on() {
    // SAFETY: handlers are there (`interrupts::begin`) and keep all registers.
    unsafe { asm!("sti", options(nostack)) };
}

/// Waits for an interrupt. They must be off: between `sti` and `hlt` none can slip in, because `sti` holds them for one
/// instruction more. They are off again afterwards.
pub fn wait() {
    // SAFETY: as `interrupts_on`.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) };
}

/// Ends the machine: QEMU's `isa-debug-exit` where it is, ACPI's port of `pc` and `q35`, else nothing happens any more.
pub fn power_off() -> ! {
    outb(0xf4, 0);
    outw(0x604, 0x2000);
    loop {
        // SAFETY: nothing happens any more.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}

/// A value that the session and handlers of interrupts share on the one CPU. Code that takes it and can be
/// interrupted must switch interrupts off meanwhile.
pub struct Single<T>(T);

// SAFETY: there is one CPU; the inner type (`RefCell`) prevents a second borrow.
unsafe impl<T> Sync for Single<T> {}

impl<T> Single<T> {
    /// Holds something.
    pub const fn new(inside: T) -> Self {
        Self(inside)
    }

    /// The value.
    pub const fn get(&self) -> &T {
        &self.0
    }
}
