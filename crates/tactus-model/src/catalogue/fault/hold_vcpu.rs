//! `hold-vcpu`: a virtual CPU that does not run.

use crate::catalogue::declare::word;
use crate::duration::Nanos;
use crate::wire::row::choice;

word! {
    /// The thread that runs a virtual CPU is kept off its CPU for `length`, every `every`. There are two ways.
    /// ptrace(2) stops that thread alone. A SCHED_FIFO task of priority 99 takes the CPU that the thread is pinned to,
    /// and also keeps the hypervisor's other threads off that CPU. The guest's clock continues, so the guest measures
    /// the effect of a busy host. The host's scheduling record of the thread says how long it was kept from running.
    /// The latency is therefore not blamed on the guest's kernel. The CPUs of this fault are those of the guest.
    pub struct HoldVcpu = Fault "hold-vcpu": "one vCPU thread kept off its CPU, from the host side" {
        /// Time that the thread is kept off its CPU each time.
        pub length: Nanos;
        /// Length of a period. The thread is held once in each period, at a random time.
        pub every: Nanos;
        /// The way to hold it.
        pub by: Option<HoldBy> = HoldBy::Ptrace;
    }
}

choice! {
    /// The way to keep a vCPU thread off its CPU.
    pub enum HoldBy {
        /// ptrace(2): it stops that thread alone, on any CPU.
        Ptrace = "ptrace",
        /// A SCHED_FIFO task of priority 99 on the CPU that the thread is pinned to. The hypervisor's other threads on
        /// that CPU wait as well.
        Fifo = "fifo",
    }
}
