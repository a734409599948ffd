//! Checks whether the programs run: an attached program may still not be run by its clock. This happens under a filter
//! of system calls, and on a kernel that passes on no sample while the CPU idles.

use std::time::Duration;

use tactus_model::CpuSet;

use super::awake::Awake;
use super::record::Record;
use crate::sys;

/// How often the trial interrupts, in ns.
pub const EVERY: u64 = 5_000_000;
/// How long a CPU is tried as it is, and how long one that is kept from idling, in ns.
const AS_IT_IS: u64 = 300_000_000;
const AWAKE: u64 = 2_000_000_000;
/// How often it must run at least. A few may have met what ran there by chance.
const ENOUGH: u64 = 10;
const LOOK: Duration = Duration::from_millis(2);

/// Tries every CPU, with the clocks running. Returns the threads that keep CPUs from idling if their programs do not
/// run otherwise, and these CPUs.
///
/// # Errors
/// The first CPU where it runs neither way, and how often it did.
pub fn run(records: &[(u32, Record)]) -> Result<(Vec<Awake>, CpuSet), (u32, u64)> {
    let (mut awake, mut cpus) = (Vec::new(), CpuSet::default());
    let silent = wait(records, AS_IT_IS, runs);
    for (cpu, record) in &silent {
        awake.push(Awake::start(*cpu).map_err(|_| (*cpu, record.count()))?);
        cpus.insert(*cpu);
    }
    // The CPU is kept awake now: a program that still runs late does so because the system is slow.
    match wait(&silent, AWAKE, |times, _| times >= ENOUGH).first() {
        Some((cpu, record)) => Err((*cpu, record.count())),
        None => Ok((awake, cpus)),
    }
}

/// Waits until the programs run, at most for `limit` ns, and returns those that do not.
fn wait(records: &[(u32, Record)], limit: u64, runs: fn(u64, u64) -> bool) -> Vec<(u32, Record)> {
    let mut left: Vec<_> = records.iter().map(|(cpu, record)| (*cpu, *record, record.count())).collect();
    let began = sys::now();
    while !left.is_empty() {
        let waited = sys::now().saturating_sub(began);
        left.retain(|(_, record, before)| !runs(record.count() - before, waited));
        if waited > limit {
            break;
        }
        std::thread::sleep(LOOK);
    }
    left.into_iter().map(|(cpu, record, _)| (cpu, record)).collect()
}

/// Whether this many runs within this many ns show that the clock runs its program: a quarter of the due runs, since
/// other code may keep the CPU from more.
const fn runs(times: u64, waited: u64) -> bool {
    times >= ENOUGH && times >= waited / EVERY / 4
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::super::record::{COUNT, WORDS};
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_few_samples_of_what_ran_by_chance_are_not_those_of_a_clock_that_works() {
        assert!(!runs(0, 300 * MS) && !runs(9, 50 * MS));
        assert!(runs(10, 50 * MS) && runs(15, 300 * MS));
        assert!(!runs(12, 300 * MS), "60 were due");
    }

    #[test]
    fn where_nothing_ever_runs_it_is_said_with_the_cpu_and_how_often_it_did() {
        let words: &'static [AtomicU64] = (0..WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
        words[COUNT].store(3, std::sync::atomic::Ordering::Relaxed);
        let cpu = sys::affinity().unwrap().first().unwrap();
        assert_eq!(run(&[(cpu, Record::new(words))]).err(), Some((cpu, 3)));
        assert!(run(&[]).is_ok_and(|(awake, cpus)| awake.is_empty() && cpus.is_empty()));
    }
}
