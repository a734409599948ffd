//! `spin`: polled gaps.

use crate::catalogue::declare::word;
use crate::duration::Nanos;

word! {
    /// One thread per CPU reads the clock in a tight loop and records every gap between two readings, in ns. During a
    /// gap something else had the CPU: an interrupt, a system management interrupt, or a hypervisor. The thread polls
    /// `busy` per cent of each second and leaves the rest to the system.
    #[derive(Default)]
    pub struct Spin = Measure "spin": "polled gaps, as oslat and hwlat see them" {
        /// Part of each second that is polled, in per cent; the rest is left to the system. Kernels before 6.12, and
        /// those with RT_GROUP_SCHED, throttle real-time tasks above 95 by default.
        pub busy: Option<u32> = 95, 1..=100;
        /// Stop when a gap exceeds this, and stop ftrace with it if the kernel traces.
        pub break_at as "break": Option<Nanos>;
    }
    counts "gaps";
}
