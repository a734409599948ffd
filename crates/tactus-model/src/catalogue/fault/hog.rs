//! `hog`: a task of higher priority.

use crate::catalogue::declare::word;
use crate::duration::Nanos;

word! {
    /// A task one priority above the measuring threads (at most 99) holds a CPU for `length`, every `every`. It changes
    /// nothing in the kernel, and ends with the probe.
    pub struct Hog = Fault "hog": "a SCHED_FIFO thread that spins above the measuring ones" {
        /// Time that it holds the CPU each time.
        pub length: Nanos;
        /// Time from one hold to the next.
        pub every: Nanos;
    }
}
