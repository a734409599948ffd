//! The CPU's own interrupt controller, with its timer (Intel SDM, volume 3, chapter 11).
//!
//! It is spoken to in one of two ways: by memory (xAPIC: what an emulator without KVM has) or by model specific registers
//! (x2APIC: what KVM is fastest with). Register 0xN0 of the first is MSR 0x800 + N of the second.

use core::sync::atomic::{AtomicBool, Ordering};

use super::cpu::{cpuid, rdmsr, wrmsr};
use super::interrupts::{SELF, SPURIOUS, TIMER};

const BASE: u32 = 0x1b;
const BASE_ENABLED: u64 = 1 << 11;
const BASE_X2: u64 = 1 << 10;
const TSC_DEADLINE: u32 = 0x6e0;

/// Where its registers are in memory.
const MEMORY: usize = 0xfee0_0000;

const ID: u32 = 0x02;
const END_OF_INTERRUPT: u32 = 0x0b;
const SPURIOUS_VECTOR: u32 = 0x0f;
const COMMAND: u32 = 0x30;
const TIMER_VECTOR: u32 = 0x32;
const TIMER_INITIAL: u32 = 0x38;
const TIMER_CURRENT: u32 = 0x39;
const TIMER_DIVIDE: u32 = 0x3e;

const TIMER_MASKED: u32 = 1 << 16;
const TIMER_BY_DEADLINE: u32 = 2 << 17;
const DIVIDE_BY_ONE: u32 = 0b1011;

/// Whether it is spoken to by model specific registers.
static X2: AtomicBool = AtomicBool::new(false);

/// How its timer is told when to fire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By a number of its own clock's ticks.
    OneShot,
    /// By a value of the time stamp counter.
    Deadline,
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

/// The number by which others send to this CPU.
pub fn id() -> u32 {
    if is_x2() { read(ID) } else { read(ID) >> 24 }
}

/// An interrupt was handled: the next may come.
pub fn done() {
    write(END_OF_INTERRUPT, 0);
}

/// Reads a register: what such a read takes is measured.
pub fn touch() {
    let _ = read(ID);
}

/// Sends an interrupt to this CPU.
pub fn send_to_self() {
    if is_x2() {
        // SAFETY: the self-IPI register; it changes no memory.
        unsafe { wrmsr(0x83f, u64::from(SELF)) };
        return;
    }
    write(COMMAND, 1 << 18 | u32::from(SELF));
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

/// The timer fires after so many of its ticks; 0: never.
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
