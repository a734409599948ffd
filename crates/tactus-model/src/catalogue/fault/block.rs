//! `block`: interrupts or preemption off.

use crate::catalogue::declare::word;
use crate::duration::Nanos;
use crate::wire::row::choice;

word! {
    /// The kernel keeps interrupts off for `length`, every `every`, on exactly the CPUs asked for. There are five ways
    /// to do so, and the first available one is used. They are a BPF program (Linux 5.17, CAP_BPF and CAP_PERFMON),
    /// OSADL's /dev/blocksys, the hwlat tracer, the osnoise tracer, and the module preemptirq_delay_test. The BPF
    /// program runs in the interrupt of each CPU's clock of performance events. The osnoise tracer needs
    /// OSNOISE_IRQ_DISABLE (or OSNOISE_PREEMPT_DISABLE). The result names the way.
    ///
    /// The BPF program changes no setting of the kernel. It records when each block began and how long it really was.
    /// The other ways change settings, which are restored however the run ends. If no way is available, the fault is
    /// refused with the reason for each.
    pub struct Block = Fault "block": "interrupts or preemption off for a known time" {
        /// Length of each block. Blocks longer than a second trigger the kernel's own watchdogs.
        pub length: Nanos, 1_000..=1_000_000_000;
        /// Time from one block to the next. It must leave at least 1 ms between two blocks.
        pub every: Nanos;
        /// Length on an emulated processor, where a short block is lost in the noise. Left out: `length`.
        pub emulated: Option<Nanos>, 1_000..=1_000_000_000;
        /// What is kept off.
        pub off: Option<Off> = Off::Interrupts;
        /// The way to do it. Left out: the first available one.
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
    /// The way to make a block.
    pub enum BlockWay {
        /// A BPF program: interrupts are off while it runs. It needs no module and no tracer.
        Bpf = "bpf",
        /// OSADL's module, through its device /dev/blocksys.
        Blocksys = "blocksys",
        /// The kernel's hwlat tracer: interrupts are off for `width` of every `window`.
        Hwlat = "hwlat",
        /// The kernel's osnoise tracer with OSNOISE_IRQ_DISABLE or OSNOISE_PREEMPT_DISABLE.
        Osnoise = "osnoise",
        /// The kernel's preemptirq_delay_test module.
        PreemptirqDelay = "preemptirq-delay",
    }
}
