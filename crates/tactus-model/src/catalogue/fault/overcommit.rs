//! `overcommit`: more real-time threads than CPUs.

use crate::catalogue::declare::word;
use crate::duration::Nanos;

word! {
    /// On each CPU `threads` SCHED_FIFO threads, the first above the measuring ones, each further one a
    /// priority lower. Each takes `length` of CPU time every `every`, all at the same moments: the lowest waits
    /// for the sum of the others. What would leave less than 5 % of a CPU is refused.
    pub struct Overcommit = Fault "overcommit": "more real-time threads than CPUs" {
        /// Threads per CPU.
        pub threads: Option<u32> = 12, 1..=64;
        /// How long each holds the CPU each time.
        pub length: Nanos;
        /// How often each does.
        pub every: Nanos;
    }
}
