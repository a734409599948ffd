//! `hog`: a task of higher priority.

use crate::catalogue::declare::word;
use crate::duration::Nanos;

word! {
    /// A task one priority above the measuring threads (99 at most) holds a CPU for `length`, every `every`.
    /// Nothing is changed in the kernel; it ends with the probe.
    pub struct Hog = Fault "hog": "a SCHED_FIFO thread that spins above the measuring ones" {
        /// How long it holds the CPU each time.
        pub length: Nanos;
        /// How often.
        pub every: Nanos;
    }
}
