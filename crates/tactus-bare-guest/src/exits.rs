//! The cost of operations that exit to the hypervisor.
//!
//! An operation is done in batches of about a millisecond. The cost of reading the counter around a batch is
//! subtracted. Items take turns, so that all of them have seen the same minutes (docs/design/values.md).

use alloc::vec::Vec;

use crate::clock::{Clock, hypervisor};
use crate::sys::apic::{self, Way};
use crate::sys::cpu;
use crate::timer;

/// How long a batch is to take, in ns.
const BATCH_NS: u64 = 1_000_000;
/// The most operations of a batch.
const MOST_IN_A_BATCH: u64 = 1 << 24;
/// The most repeats of an item that are kept; where there would be more, they keep a distance.
pub const MOST: u64 = 20_000;
/// How long after it is armed the timer wakes the CPU, in ns.
const HALT_NS: u64 = 50_000;

/// An item: its name in the catalogue, why it cannot be measured, and a function that does a number of operations.
/// That function returns the ticks of the time stamp counter that belong to the value.
struct Item {
    name: &'static str,
    obstacle: fn() -> Option<&'static str>,
    run: fn(&Clock, u64) -> u64,
}

/// Those of this guest, by their names in the catalogue (`tactus-model`, `catalogue/measure/exits.rs`).
static ITEMS: [Item; 7] = [
    Item { name: "cpuid", obstacle: || None, run: |_, n| timed(n, || _ = cpu::cpuid(0, 0)) },
    Item { name: "port write", obstacle: || None, run: |_, n| timed(n, || cpu::outb(PORT, 0)) },
    Item { name: "MMIO read", obstacle: || None, run: |_, n| timed(n, cpu::read_io_apic) },
    Item { name: "hypercall", obstacle: no_hypercall, run: |_, n| timed(n, cpu::hypercall) },
    Item { name: "timer register write", obstacle: || None, run: arm },
    Item { name: "IPI to itself", obstacle: || None, run: |_, n| timed(n, interrupt_itself) },
    Item { name: "wake from HLT", obstacle: || None, run: halt },
];

/// The port of the codes of a PC's self-test. Nothing is behind it.
const PORT: u16 = 0x80;

/// An item and what was measured of it.
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    run: fn(&Clock, u64) -> u64,
    /// How often it is done in each repeat.
    pub batch: u64,
    /// The time of one operation in each repeat, in ps.
    pub repeats: Vec<u64>,
    /// How many there were when they were said last.
    pub said: usize,
}

/// Makes the measurable items ready, which also warms everything up. `not` gets each of the other items, with the
/// reason.
pub fn ready(clock: &Clock, mut not: impl FnMut(&str, &str)) -> Vec<Measured> {
    let mut ready = Vec::new();
    for Item { name, obstacle, run } in &ITEMS {
        match obstacle() {
            Some(why) => not(name, why),
            None => {
                let batch = batch_of(clock, *run);
                ready.push(Measured { name, run: *run, batch, repeats: Vec::new(), said: 0 });
            }
        }
    }
    ready
}

impl Measured {
    /// Does a batch. One that is too short was found while something else had the CPU: the next ones are longer.
    pub fn repeat(&mut self, clock: &Clock) {
        let began = cpu::tsc();
        let ticks = (self.run)(clock, self.batch);
        if clock.ns(cpu::tsc() - began) < BATCH_NS / 2 && self.batch < MOST_IN_A_BATCH {
            self.batch *= 2;
        } else {
            self.repeats.push(clock.ns(ticks * 1000) / self.batch);
        }
    }

    /// Whether the number of repeats has grown by half since the last report.
    pub fn has_more_to_say(&self) -> bool {
        self.said == 0 || self.repeats.len() >= self.said + self.said.div_ceil(2)
    }
}

/// How many operations take as long as a batch should.
fn batch_of(clock: &Clock, run: fn(&Clock, u64) -> u64) -> u64 {
    let mut batch = 1;
    loop {
        let began = cpu::tsc();
        run(clock, batch);
        let took = clock.ns(cpu::tsc() - began);
        if took >= BATCH_NS / 2 || batch >= MOST_IN_A_BATCH {
            return (batch * BATCH_NS / took.max(1)).max(1);
        }
        batch *= 2;
    }
}

/// Ticks that `n` operations take, without the cost of reading the counter.
fn timed(n: u64, operation: impl Fn()) -> u64 {
    let began = cpu::tsc();
    let cost = cpu::tsc() - began;
    let began = cpu::tsc();
    for _ in 0..n {
        operation();
    }
    (cpu::tsc() - began).saturating_sub(cost)
}

/// Arms the timer for a time so late that it never comes.
fn arm(clock: &Clock, n: u64) -> u64 {
    let late = cpu::tsc() + clock.ticks(3_600_000_000_000);
    let ticks = match timer::way() {
        Way::Deadline => timed(n, || apic::fire_at(late)),
        Way::OneShot => timed(n, || apic::fire_after(u32::MAX)),
    };
    timer::disarm();
    ticks
}

/// This CPU sends itself an interrupt, and has handled it.
fn interrupt_itself() {
    let before = apic::handled_of_itself();
    apic::send_to_itself();
    cpu::interrupts_on();
    while apic::handled_of_itself() == before {
        core::hint::spin_loop();
    }
    cpu::interrupts_off();
}

/// How late the timer wakes the CPU that waits in `hlt`: from when it was due to the first instruction of the handler. That
/// reads the counter itself, so that nothing is to be taken off.
fn halt(clock: &Clock, n: u64) -> u64 {
    (0..n).map(|_| timer::nap(clock.ticks(HALT_NS))).sum()
}

/// The reason why there is no hypervisor to call.
fn no_hypercall() -> Option<&'static str> {
    let is_kvm = hypervisor().is_some_and(|(name, _)| &name == b"KVMKVMKVM\0\0\0");
    (!is_kvm).then_some("KVM alone answers it, and what is below this guest is not KVM")
}
