//! `block`: interrupts or preemption off.

use crate::catalogue::declare::word;
use crate::duration::Nanos;
use crate::wire::row::choice;

word! {
    /// The kernel keeps interrupts off for `length`, every `every`, on exactly the CPUs asked for. It is
    /// carried out by the first of these that is to be had: a BPF program in the interrupt of each CPU's clock
    /// of performance events (Linux 5.17, CAP_BPF and CAP_PERFMON), OSADL's /dev/blocksys, the hwlat tracer, the
    /// osnoise tracer with OSNOISE_IRQ_DISABLE (or OSNOISE_PREEMPT_DISABLE), the module preemptirq_delay_test;
    /// the result says by which. The program changes nothing of the kernel and records when each block began and
    /// how long it really was; what the others change is put back at every end. Where none can be had it is
    /// refused, with the reason of each.
    pub struct Block = Fault "block": "interrupts or preemption off for a known time" {
        /// How long each block is. Beyond a second the kernel's own watchdogs wake up.
        pub length: Nanos, 1_000..=1_000_000_000;
        /// How often, with at least 1 ms between two blocks.
        pub every: Nanos;
        /// The length where the processor is emulated: there a short block drowns in the noise. Left out:
        /// `length`.
        pub emulated: Option<Nanos>, 1_000..=1_000_000_000;
        /// What is off.
        pub off: Option<Off> = Off::Interrupts;
        /// By what. Left out: the first that is to be had.
        pub way: Option<BlockWay>;
    }
}

choice! {
    /// What a block keeps off.
    pub enum Off {
        /// Interrupts, and with them preemption.
        Interrupts = "interrupts",
        /// Preemption alone.
        Preemption = "preemption",
    }
}

choice! {
    /// What carries a block out.
    pub enum BlockWay {
        /// A BPF program: interrupts are off while it runs, for as long as it is told to. It needs no module
        /// and no tracer.
        Bpf = "bpf",
        /// OSADL's module, by its device /dev/blocksys.
        Blocksys = "blocksys",
        /// The kernel's hwlat tracer: interrupts are off for `width` of every `window`.
        Hwlat = "hwlat",
        /// The kernel's osnoise tracer with OSNOISE_IRQ_DISABLE or OSNOISE_PREEMPT_DISABLE.
        Osnoise = "osnoise",
        /// The kernel's preemptirq_delay_test module.
        PreemptirqDelay = "preemptirq-delay",
    }
}
