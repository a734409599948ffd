//! `timer`: cyclic wake-up latency.

use crate::catalogue::declare::word;
use crate::duration::Nanos;

word! {
    /// One thread per CPU sleeps until an absolute time (clock_nanosleep, CLOCK_MONOTONIC), every `interval`, and
    /// records how late it woke, in ns. A wake-up later than one interval misses periods. These are counted as
    /// overruns, and the corrected quantiles include them.
    #[derive(Default)]
    pub struct Timer = Measure "timer": "cyclic wake-up latency, as cyclictest measures it" {
        /// Measuring threads per CPU; each further one has a priority one lower.
        pub threads: Option<u32> = 1, 1..=64;
        /// Stop when a latency exceeds this, and stop ftrace with it if the kernel traces.
        pub break_at as "break": Option<Nanos>;
    }
    counts "wake-ups";
}
