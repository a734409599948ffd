//! `exits`: cost of the operations for which a guest exits to its hypervisor.

use crate::catalogue::Item;
use crate::catalogue::declare::word;
use crate::outcome::Unit;

word! {
    /// Each operation runs in batches of a half to one millisecond, one item after the other, until the duration is
    /// over. A value is the median of the repeats, with an interval that contains it with 95 % certainty for any
    /// distribution. The time to read the clock around a batch is not part of it.
    ///
    /// On a machine each operation costs the processor's own time. In a guest, operations that the hypervisor
    /// intercepts cost more, and the difference is the exit. Programs can do the first three items. These are measured
    /// on the host, in containers and in guests. A repeat is dropped and counted if something else had the CPU for more
    /// than a fiftieth of it. The other items need the whole processor. The environment kind `bare` measures them, and
    /// the first two with the same instructions. A `bare` guest cannot see that something else had its CPU, and drops
    /// nothing. An item that an environment cannot do has no value there, and a note says why.
    #[derive(Default)]
    pub struct Exits = Measure "exits": "cost of the operations for which a guest exits to its hypervisor" {}
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
    "the CPU sends itself an interrupt through its interrupt controller, and handles it",
);

/// The end of idleness.
pub const HALT: Item = Item::lower(
    "wake from HLT",
    Unit::Ns,
    "the CPU waits in HLT for its timer, which is due 50 us later: from that time to the first instruction \
     of the handler",
);
