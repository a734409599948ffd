//! `spin`: polled gaps.

use crate::catalogue::declare::word;
use crate::duration::Nanos;

word! {
    /// One thread per CPU reads the clock in a tight loop and notes every gap between two readings, in ns. A
    /// gap is time that something else took from the CPU: an interrupt, a system management interrupt, a
    /// hypervisor. It polls `busy` per cent of each second, so that the rest of the system can breathe.
    #[derive(Default)]
    pub struct Spin = Measure "spin": "polled gaps, as oslat and hwlat see them" {
        /// Part of each second that is polled, in per cent; the rest is left to the system. More than 95 is
        /// more than the kernel grants to real-time tasks by itself.
        pub busy: Option<u32> = 95, 1..=100;
        /// Stop when a gap exceeds this, and stop ftrace with it if the kernel traces.
        pub break_at as "break": Option<Nanos>;
    }
    counts "gaps";
}
