//! Nanoseconds out of the time stamp counter.

use crate::sys::apic;
use crate::sys::cpu::{cpuid, inb, outb, tsc};

/// How fast the time stamp counter and the LAPIC's timer run, and how that is known.
#[derive(Clone, Copy)]
pub struct Clock {
    /// Ticks of the time stamp counter a second.
    pub tsc_hz: u64,
    /// Ticks of the LAPIC's timer a second.
    pub timer_hz: u64,
    /// The source of the frequency.
    pub source: &'static str,
    began: u64,
}

/// The LAPIC timer's clock of QEMU and of KVM (`hw/intc/apic.c`; `APIC_BUS_FREQUENCY`), ticks a second.
const HYPERVISORS_TIMER_HZ: u64 = 1_000_000_000;

/// The 8254's clock, ticks a second.
const PIT_HZ: u64 = 1_193_182;

impl Clock {
    /// Finds it out: the processor's own word, the hypervisor's, else by measuring for 50 ms.
    pub fn find() -> Self {
        let began = tsc();
        let with = |tsc_hz, timer_hz, source| Self { tsc_hz, timer_hz, source, began };
        let hypervisor = hypervisor();
        if let Some((name, most)) = hypervisor {
            // KHz of both clocks, where a hypervisor says them (VMware's leaf, KVM has it, too).
            let said = cpuid(0x4000_0010, 0);
            if most >= 0x4000_0010 && said.eax != 0 && said.ebx != 0 {
                return with(
                    u64::from(said.eax) * 1000,
                    u64::from(said.ebx) * 1000,
                    "the hypervisor (CPUID 40000010h)",
                );
            }
            if matches!(&name, b"KVMKVMKVM\0\0\0" | b"TCGTCGTCGTCG") {
                return with(
                    against_the_timer(HYPERVISORS_TIMER_HZ),
                    HYPERVISORS_TIMER_HZ,
                    "the LAPIC timer of the hypervisor, 1 GHz",
                );
            }
        }
        let (tsc_hz, timer_hz) = against_the_pit();
        with(tsc_hz, timer_hz, "the 8254 timer, over 50 ms")
    }

    /// Nanoseconds since the guest began.
    pub fn now_ns(&self) -> u64 {
        self.ns(tsc() - self.began)
    }

    /// Nanoseconds that some ticks of the time stamp counter take.
    pub fn ns(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * 1_000_000_000 / u128::from(self.tsc_hz)) as u64
    }

    /// Ticks of the time stamp counter that some nanoseconds take.
    pub fn ticks(&self, ns: u64) -> u64 {
        (u128::from(ns) * u128::from(self.tsc_hz) / 1_000_000_000) as u64
    }

    /// Ticks of the LAPIC's timer that some of the time stamp counter take, rounded up, so that it fires no earlier.
    pub fn timer_ticks(&self, tsc_ticks: u64) -> u32 {
        let ticks = (u128::from(tsc_ticks) * u128::from(self.timer_hz)).div_ceil(u128::from(self.tsc_hz));
        u32::try_from(ticks).unwrap_or(u32::MAX).max(1)
    }
}

/// The name of the hypervisor, and the last leaf in which it says something.
pub fn hypervisor() -> Option<([u8; 12], u32)> {
    if cpuid(1, 0).ecx & 1 << 31 == 0 {
        return None;
    }
    let said = cpuid(0x4000_0000, 0);
    let mut name = [0; 12];
    for (at, word) in [said.ebx, said.ecx, said.edx].into_iter().enumerate() {
        name[at * 4..][..4].copy_from_slice(&word.to_le_bytes());
    }
    Some((name, said.eax))
}

/// Ticks of the time stamp counter a second, against 50 ms of the LAPIC's timer.
fn against_the_timer(timer_hz: u64) -> u64 {
    let wanted = timer_hz / 20;
    apic::count();
    let (first, began) = (apic::left(), tsc());
    let mut passed = 0;
    while passed < wanted {
        passed = u64::from(first - apic::left());
    }
    let ticks = tsc() - began;
    apic::fire_after(0);
    (u128::from(ticks) * u128::from(timer_hz) / u128::from(passed)) as u64
}

/// Ticks of the time stamp counter and of the LAPIC's timer a second, against 50 ms of the 8254's first counter.
fn against_the_pit() -> (u64, u64) {
    // Counter 0, both bytes, counts down from 65536 once and again (mode 2).
    outb(0x43, 0x34);
    outb(0x40, 0);
    outb(0x40, 0);
    let wanted = PIT_HZ / 20;
    apic::count();
    let (mut last, began, first) = (pit(), tsc(), apic::left());
    let mut passed = 0;
    while passed < wanted {
        let now = pit();
        passed += u64::from(last.wrapping_sub(now));
        last = now;
    }
    let (ticks, timer) = (tsc() - began, u64::from(first - apic::left()));
    apic::fire_after(0);
    (ticks * PIT_HZ / passed, timer * PIT_HZ / passed)
}

fn pit() -> u16 {
    outb(0x43, 0);
    u16::from_le_bytes([inb(0x40), inb(0x40)])
}
