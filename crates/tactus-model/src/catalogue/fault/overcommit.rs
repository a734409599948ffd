//! `overcommit`: more real-time threads than CPUs.

use crate::catalogue::declare::word;
use crate::duration::Nanos;

word! {
    /// Each CPU gets `threads` SCHED_FIFO threads. The first is one priority above the measuring threads, and each
    /// further one is one priority lower. Each thread takes `length` of CPU time every `every`. All become due at the
    /// same times, so the lowest waits for the sum of the others. Values that leave less than 5 % of a CPU are refused.
    pub struct Overcommit = Fault "overcommit": "more real-time threads than CPUs" {
        /// Threads per CPU.
        pub threads: Option<u32> = 12, 1..=64;
        /// CPU time that each thread takes each time.
        pub length: Nanos;
        /// Period of each thread.
        pub every: Nanos;
    }
}
