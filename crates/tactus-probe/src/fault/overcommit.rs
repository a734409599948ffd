//! `overcommit`: more real-time threads than CPUs. On each CPU as many SCHED_FIFO threads as asked
//! for, the first above the measuring ones, each further one a priority lower; each takes `length` of
//! CPU time every `every`.
//!
//! All become due at the same moments, on all CPUs: the worst case of rate-monotonic analysis, in which
//! the lowest waits for the sum of the others. Staggered they would hide from each other.

use std::rc::Rc;

use tactus_model::CpuSet;
use tactus_model::activity::Fault as Table;
use tactus_model::message::Refusal;

use super::hog::{busy, fifo};
use super::{Disturbance, Fault, size};
use crate::sys;

/// Threads per CPU when the plan does not say.
const THREADS: u32 = 12;

/// The fault.
pub struct Overcommit;

impl Fault for Overcommit {
    fn name(&self) -> &'static str {
        "overcommit"
    }

    fn prepare(&self, fault: &Table, cpus: &CpuSet, above: u32) -> Result<Disturbance, Refusal> {
        let Table::Overcommit(table) = fault else { unreachable!("found by its name") };
        let threads = table.threads.unwrap_or(THREADS);
        if !(1..=above.min(64)).contains(&threads) {
            return Err(super::refused(
                format!("overcommit: {threads} threads per CPU have no room from priority {above} down"),
                "use 1 to 64 threads, and measuring threads of a priority not below them",
            ));
        }
        let (length, every) = size(fault, u64::from(threads))?;
        let priorities: Vec<u32> = (0..threads).map(|thread| above - thread).collect();
        // Its own time: what a higher one took of the stretch does not count.
        let once: Rc<dyn Fn() -> u64> = Rc::new(move || busy(length, sys::own_time));
        fifo(cpus, &priorities, every, &once)
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::Nanos;
    use tactus_model::activity;

    use super::*;

    fn why(threads: u32, length: u64, above: u32) -> String {
        let table =
            activity::Overcommit { threads: Some(threads), length: Nanos(length), every: Nanos(12_000) };
        let cpus = CpuSet::one(0);
        Overcommit.prepare(&Table::Overcommit(table), &cpus, above).err().unwrap().reason
    }

    #[test]
    fn threads_that_would_starve_the_machine_or_have_no_priority_are_refused() {
        assert!(why(12, 1_000, 90).contains("12us every 12us"), "{}", why(12, 1_000, 90));
        assert!(why(12, 1, 11).contains("no room from priority 11"));
        assert!(why(0, 1, 90).contains("0 threads"));
    }
}
