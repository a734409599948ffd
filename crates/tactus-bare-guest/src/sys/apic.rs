//! The CPU's own interrupt controller, with its timer (Intel SDM, volume 3, chapter 11).
//!
//! There are two ways to access it: by memory (xAPIC: an emulator without KVM has only this) or by model specific
//! registers (x2APIC: the fastest one with KVM). Register 0xN0 of the first is MSR 0x800 + N of the second.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::cpu::{cpuid, rdmsr, wrmsr};

/// The vector of its timer.
pub const TIMER: u8 = 0x40;
/// That of an interrupt that this CPU sends itself.
pub const ITSELF: u8 = 0x41;
/// That of the interrupt card.
pub const CARD: u8 = 0x42;
/// That of an interrupt that was withdrawn in the last moment.
pub const SPURIOUS: u8 = 0xff;

const BASE: u32 = 0x1b;
const BASE_ENABLED: u64 = 1 << 11;
const BASE_X2: u64 = 1 << 10;
const TSC_DEADLINE: u32 = 0x6e0;

/// Where its registers are in memory.
const MEMORY: usize = 0xfee0_0000;

/// The register of x2APIC alone that takes a vector.
const SELF_IPI: u32 = 0x3f;
/// The lower half of the command: a vector, and its destination.
const COMMAND: u32 = 0x30;
const COMMAND_TO_ITSELF: u32 = 1 << 18;
const NUMBER: u32 = 0x02;
const END_OF_INTERRUPT: u32 = 0x0b;
const SPURIOUS_VECTOR: u32 = 0x0f;
const TIMER_VECTOR: u32 = 0x32;
const TIMER_INITIAL: u32 = 0x38;
const TIMER_CURRENT: u32 = 0x39;
const TIMER_DIVIDE: u32 = 0x3e;

const TIMER_MASKED: u32 = 1 << 16;
const TIMER_BY_DEADLINE: u32 = 2 << 17;
const DIVIDE_BY_ONE: u32 = 0b1011;

/// Whether it is spoken to by model specific registers.
static X2: AtomicBool = AtomicBool::new(false);

/// How its timer is armed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Fires after a number of ticks of the APIC timer's clock.
    OneShot,
    /// By a value of the time stamp counter.
    Deadline,
}

impl Way {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneShot => "one shot",
            Self::Deadline => "TSC deadline",
        }
    }
}

/// Switches it on, by registers where it has them. Once, at the beginning.
pub fn begin() {
    let x2 = cpuid(1, 0).ecx & 1 << 21 != 0;
    let base = rdmsr(BASE) | BASE_ENABLED | if x2 { BASE_X2 } else { 0 };
    // SAFETY: the registers stay where they are, in memory that holds nothing else.
    unsafe { wrmsr(BASE, base) };
    X2.store(x2, Ordering::Relaxed);
    write(SPURIOUS_VECTOR, 1 << 8 | u32::from(SPURIOUS));
    write(TIMER_DIVIDE, DIVIDE_BY_ONE);
    write(TIMER_VECTOR, TIMER_MASKED);
}

/// Whether it is spoken to by model specific registers (x2APIC).
pub fn is_x2() -> bool {
    X2.load(Ordering::Relaxed)
}

/// The number by which devices address this CPU.
pub fn number() -> u32 {
    let number = read(NUMBER);
    if is_x2() { number } else { number >> 24 }
}

fn read(register: u32) -> u32 {
    if is_x2() {
        return rdmsr(0x800 + register) as u32;
    }
    // SAFETY: the registers' page, mapped, not cached; an aligned word of it.
    unsafe { core::ptr::read_volatile((MEMORY + (register as usize) * 16) as *const u32) }
}

fn write(register: u32, value: u32) {
    if is_x2() {
        // SAFETY: these registers change no memory.
        unsafe { wrmsr(0x800 + register, u64::from(value)) };
        return;
    }
    // SAFETY: as in `read`.
    unsafe { core::ptr::write_volatile((MEMORY + (register as usize) * 16) as *mut u32, value) }
}

/// An interrupt was handled: the next may come.
pub fn done() {
    write(END_OF_INTERRUPT, 0);
}

/// Interrupts that this CPU sent itself and handled.
static OF_ITSELF: AtomicU64 = AtomicU64::new(0);

/// Sends an interrupt to this CPU.
pub fn send_to_itself() {
    if is_x2() {
        write(SELF_IPI, u32::from(ITSELF));
    } else {
        write(COMMAND, COMMAND_TO_ITSELF | u32::from(ITSELF));
    }
}

/// How many of them were handled.
pub fn handled_of_itself() -> u64 {
    OF_ITSELF.load(Ordering::Relaxed)
}

/// The handler of such an interrupt.
pub fn count_of_itself(_: u64) {
    OF_ITSELF.fetch_add(1, Ordering::Relaxed);
}

/// Whether the timer can be told a value of the time stamp counter.
pub fn has_deadline() -> bool {
    cpuid(1, 0).ecx & 1 << 24 != 0
}

/// Prepares the timer.
pub fn timer(way: Way) {
    let mode = if way == Way::Deadline { TIMER_BY_DEADLINE } else { 0 };
    write(TIMER_VECTOR, mode | u32::from(TIMER));
}

/// Makes the timer fire after `ticks` of its ticks; 0: never.
pub fn fire_after(ticks: u32) {
    write(TIMER_INITIAL, ticks);
}

/// The timer fires when the time stamp counter has this value; 0: never.
pub fn fire_at(tsc: u64) {
    // SAFETY: tells the timer a time.
    unsafe { wrmsr(TSC_DEADLINE, tsc) };
}

/// How many of its ticks are left.
pub fn left() -> u32 {
    read(TIMER_CURRENT)
}

/// Lets the timer count without an interrupt, from the largest number on.
pub fn count() {
    write(TIMER_VECTOR, TIMER_MASKED | u32::from(TIMER));
    write(TIMER_INITIAL, u32::MAX);
}
