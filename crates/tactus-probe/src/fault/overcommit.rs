//! `overcommit`: more real-time threads than CPUs. Each CPU gets the requested number of SCHED_FIFO threads: the first
//! one above the measuring threads, each further one a priority lower. Each takes `length` of CPU time every `every`.
//!
//! All become due at the same moments, on all CPUs: the worst case of rate-monotonic analysis, in which the lowest
//! waits for the sum of the others. Staggered threads would not wait for each other.

use std::rc::Rc;

use tactus_model::CpuSet;
use tactus_model::catalogue::fault::Overcommit;
use tactus_model::message::Refusal;

use super::hog::{busy, fifo};
use super::{Disturbance, Rhythm, size};
use crate::sys;

pub fn prepare(
    table: &Overcommit,
    cpus: &CpuSet,
    above: u32,
    rhythm: Rhythm,
) -> Result<Disturbance, Refusal> {
    let threads = table.threads();
    if threads > above {
        return Err(super::refused(
            format!("overcommit: {threads} threads per CPU do not fit from priority {above} down"),
            "use fewer threads, or measuring threads of a priority not below them",
        ));
    }
    let (length, _) = size(Overcommit::NAME, (table.length, table.every), u64::from(threads))?;
    let priorities: Vec<u32> = (0..threads).map(|thread| above - thread).collect();
    // The thread's CPU time: time taken by a higher thread does not count.
    let once: Rc<dyn Fn() -> u64> = Rc::new(move || busy(length, sys::own_time));
    fifo(cpus, &priorities, rhythm, &once)
}

#[cfg(test)]
mod tests {
    use tactus_model::Nanos;
    use tactus_model::catalogue::Fault;

    use super::*;

    fn why(threads: u32, length: u64, above: u32) -> String {
        let table = Overcommit { threads: Some(threads), length: Nanos(length), every: Nanos(12_000) };
        crate::fault::prepare(&Fault::Overcommit(table), &CpuSet::one(0), above, None).err().unwrap().reason
    }

    #[test]
    fn threads_that_would_starve_the_machine_or_have_no_priority_are_refused() {
        assert!(why(12, 1_000, 90).contains("12us every 12us"), "{}", why(12, 1_000, 90));
        assert!(why(12, 1, 11).contains("do not fit from priority 11 down"));
        assert!(why(0, 1, 90).contains("threads = 0 is out of range"));
    }
}
