//! `exits`: what operations cost for which a guest exits to its hypervisor.

use crate::catalogue::Item;
use crate::catalogue::declare::word;
use crate::outcome::Unit;

word! {
    /// Each operation is done in batches of a half to one millisecond, one item after the other, again and again until the
    /// duration is over. A value is the median of the repeats, with the interval that holds it with 95 % certainty whatever
    /// their distribution. What reading the clock around a batch takes is none of it.
    ///
    /// On a machine each costs what the processor takes for it; in a guest those are dearer for which the hypervisor steps
    /// in, and the difference is the exit. Programs can do the first three: they are measured on the host, in containers and
    /// in guests, and a repeat during which something else had the CPU for more than a fiftieth of it is dropped and
    /// counted. The others need the processor to themselves: the kind of environment `bare` measures them, and the first two
    /// by the same instructions. Nobody tells a `bare` guest that something else had its CPU: it drops nothing. An item that
    /// an environment cannot do has no value there, and a note says why.
    #[derive(Default)]
    pub struct Exits = Measure "exits": "what operations cost for which a guest exits to its hypervisor" {}
    yields [CPUID, PORT_WRITE, TIMER_ARM, MMIO_READ, HYPERCALL, TIMER_WRITE, IPI, HALT];
}

/// What the processor says of itself.
pub const CPUID: Item = Item::lower(
    "cpuid",
    Unit::Ns,
    "the instruction CPUID with leaf 0, which every hypervisor answers itself",
);

/// A port that a hypervisor has to look behind.
pub const PORT_WRITE: Item = Item::lower(
    "port write",
    Unit::Ns,
    "OUT of a byte to port 0x80 (the codes of a PC's self-test, with nothing behind it); a program needs CAP_SYS_RAWIO for it",
);

/// A timer, as a program has one.
pub const TIMER_ARM: Item = Item::lower(
    "timer re-arm",
    Unit::Ns,
    "timerfd_settime(2) to 100 us from now: sooner than most timers of a kernel, so that it sets the timer of the CPU",
);

/// Memory that is a device.
pub const MMIO_READ: Item =
    Item::lower("MMIO read", Unit::Ns, "a register of the I/O APIC is read, which lies in memory");

/// A call to the hypervisor.
pub const HYPERCALL: Item = Item::lower(
    "hypercall",
    Unit::Ns,
    "VMCALL, or VMMCALL on AMD's processors, with a number that KVM does not know; where KVM is below",
);

/// A timer, as a kernel has it.
pub const TIMER_WRITE: Item = Item::lower(
    "timer register write",
    Unit::Ns,
    "a time is written to the timer of the CPU's interrupt controller: the register TSC_DEADLINE, else its initial count",
);

/// An interrupt between CPUs.
pub const IPI: Item = Item::lower(
    "IPI to itself",
    Unit::Ns,
    "the CPU sends itself an interrupt by its interrupt controller, and has handled it",
);

/// The end of idleness.
pub const HALT: Item = Item::lower(
    "wake from HLT",
    Unit::Ns,
    "the CPU waits in HLT for its timer: from when that was due, 50 us later, to the first instruction of the handler",
);
