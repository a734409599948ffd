//! `hold-vcpu`: a virtual CPU that does not run.

use crate::catalogue::declare::word;
use crate::duration::Nanos;
use crate::wire::row::choice;

word! {
    /// The thread that runs a virtual CPU is kept off its CPU for `length`, every `every`: alone, by ptrace(2),
    /// or by a SCHED_FIFO task of priority 99 on the CPU that it is pinned to (which keeps the hypervisor's
    /// other threads off that CPU, too). The guest's clock goes on meanwhile: what it measures is what a busy
    /// host does to it. The host's scheduling record of the thread says how long it was kept from running, so
    /// that the latency is not taken for the guest kernel's. Its CPUs are the guest's.
    pub struct HoldVcpu = Fault "hold-vcpu": "one vCPU thread kept off its CPU, from the host side" {
        /// How long the thread is kept off its CPU each time.
        pub length: Nanos;
        /// How often: once in each such time, at a random moment.
        pub every: Nanos;
        /// By what.
        pub by: Option<HoldBy> = HoldBy::Ptrace;
    }
}

choice! {
    /// What keeps a vCPU thread off its CPU.
    pub enum HoldBy {
        /// ptrace(2): the thread alone is stopped, wherever it runs.
        Ptrace = "ptrace",
        /// A SCHED_FIFO task of priority 99 on the CPU that the thread is pinned to. It keeps everything else
        /// off that CPU, too: the hypervisor's other threads may wait there.
        Fifo = "fifo",
    }
}
