//! Loads: one file each, one line in the table. They run in a [`crate::worker`].

pub mod cache;
pub mod command;
pub mod cpu;
pub mod disk;
pub mod memory;
pub mod network;
pub mod scheduler;

use std::fs;

use tactus_model::CpuSet;
use tactus_model::activity;
use tactus_model::message::Refusal;
use tactus_model::size::Bytes;

use crate::worker::{Work, reset_scheduling};

/// A load.
pub trait Load: Sync {
    /// The word of the plan.
    fn name(&self) -> &'static str;

    /// What its workers do on `cpus`, a process each.
    ///
    /// # Errors
    /// When a parameter is out of its range or the system lacks something.
    fn works(&self, load: &activity::Load, cpus: &CpuSet) -> Result<Vec<Work>, Refusal>;
}

/// Every load of this probe.
pub static LOADS: &[&dyn Load] = &[
    &scheduler::Scheduler,
    &cpu::Cpu,
    &cache::Cache,
    &memory::Memory,
    &disk::Disk,
    &network::Network,
    &command::Command,
];

/// The load of a plan's table.
pub fn find(load: &activity::Load) -> Option<&'static dyn Load> {
    LOADS.iter().copied().find(|entry| entry.name() == load.kind())
}

/// A worker for each CPU, pinned to it. Not generic, and the others below not inlined: the probe must
/// stay small, and nothing here is measured.
fn each(cpus: &CpuSet, work: &dyn Fn(u32) -> Work) -> Vec<Work> {
    let mut works = Vec::new();
    for cpu in cpus.iter() {
        works.push(pinned(cpu, work(cpu)));
    }
    works
}

/// A worker that runs on one CPU.
fn pinned(cpu: u32, work: Work) -> Work {
    Box::new(move |rounds| {
        reset_scheduling(&CpuSet::one(cpu));
        work(rounds);
    })
}

/// What a load says to the table of another one.
#[inline(never)]
fn stranger(load: &activity::Load) -> Refusal {
    refuse(format!("`{}` is the table of another load", load.kind()), "")
}

/// A refusal; an empty hint is none.
#[inline(never)]
fn refuse(reason: String, hint: &str) -> Refusal {
    Refusal { reason, hint: (!hint.is_empty()).then(|| hint.to_owned()) }
}

/// A number of the table called `key`, if it lies between 1 and `most`.
#[inline(never)]
fn number(key: &str, value: u64, most: u64) -> Result<u64, Refusal> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(refuse(format!("{key} = {value} is out of range; use 1 to {most}"), ""))
}

/// Whether the workers of `name` may take `total` bytes of memory: half of what is available, so that
/// a load does not become a fault.
#[inline(never)]
fn room(name: &str, total: u64) -> Result<(), Refusal> {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = available.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    match available.map(|kilobytes| kilobytes * 1024) {
        Some(available) if total > available / 2 => Err(refuse(
            format!("{name}: {} are more than half of the {} available", Bytes(total), Bytes(available)),
            "give fewer bytes or fewer CPUs",
        )),
        _ => Ok(()),
    }
}

/// The next number of a sequence without a pattern (xorshift); `state` is not 0. It cannot be computed
/// ahead or left out.
const fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// As a length in memory; lengths have been checked to fit.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_of_more_memory_than_there_is_is_refused_with_both_sizes() {
        assert!(room("cache", 1 << 20).is_ok());
        let refusal = room("cache", 1 << 60).unwrap_err();
        assert!(refusal.reason.starts_with("cache: 1048576TiB are more than half of the "), "{refusal:?}");
    }

    #[test]
    fn numbers_outside_their_range_are_named() {
        assert_eq!(number("cache: blocks", 3, 3), Ok(3));
        let refusal = number("cache: blocks", 0, 3).unwrap_err();
        assert_eq!(refusal.reason, "cache: blocks = 0 is out of range; use 1 to 3");
        assert!(number("cache: blocks", 4, 3).is_err());
    }

    #[test]
    fn a_load_refuses_the_table_of_another() {
        let tables = [
            activity::Load::Cpu(activity::Cpu::default()),
            activity::Load::Memory(activity::Memory::default()),
        ];
        for entry in LOADS {
            let other = tables.iter().find(|table| table.kind() != entry.name()).unwrap();
            assert!(entry.works(other, &CpuSet::one(0)).is_err(), "{}", entry.name());
        }
    }
}
