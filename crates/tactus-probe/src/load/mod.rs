//! Loads: one file each, one line in the table. They run in a [`crate::worker`].

use std::fs;

use tactus_model::CpuSet;
use tactus_model::catalogue::{Load, load};
use tactus_model::message::Refusal;
use tactus_model::size::Bytes;

use crate::work::{Work, out_of_range, reset_scheduling};

/// The files of this directory, each with its word.
macro_rules! loads {
    ($($file:ident: $word:ident),+ $(,)?) => {
        $(pub mod $file;)+

        /// Every load of this probe.
        pub const NAMES: &[&str] = &[$(load::$word::NAME),+];

        /// The work of a load's workers on `cpus`, one process each.
        ///
        /// # Errors
        /// When a parameter is out of its range or the system lacks something.
        pub fn works(load: &Load, cpus: &CpuSet) -> Result<Vec<Work>, Refusal> {
            load.check().map_err(|error| out_of_range(load.kind(), &error))?;
            match load {
                $(Load::$word(table) => $file::works(table, cpus)),+
            }
        }
    };
}

loads! {
    scheduler: Scheduler, cpu: Cpu, cache: Cache, memory: Memory, disk: Disk, network: Network, command: Command,
    console: Console,
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

/// A refusal; an empty hint is left out.
#[inline(never)]
fn refuse(reason: String, hint: &str) -> Refusal {
    Refusal { reason, hint: (!hint.is_empty()).then(|| hint.to_owned()) }
}

/// Whether the workers of `name` may take `total` bytes of memory: half of what is available, so that
/// a load does not become a fault.
#[inline(never)]
fn room(name: &str, total: u64) -> Result<(), Refusal> {
    match available() {
        Some(available) if total > available / 2 => Err(refuse(
            format!("{name}: {} are more than half of the {} available", Bytes(total), Bytes(available)),
            "give fewer bytes or fewer CPUs",
        )),
        _ => Ok(()),
    }
}

/// Memory that can be taken without taking it from other processes, in bytes; `None`: the kernel does not say.
pub fn available() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let available = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(available.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
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
        let cache = |blocks| Load::Cache(load::Cache { blocks: Some(blocks), ..load::Cache::default() });
        assert!(works(&cache(3), &CpuSet::one(0)).is_ok());
        let refusal = works(&cache(0), &CpuSet::one(0)).err().unwrap();
        assert_eq!(refusal.reason, "cache: blocks = 0 is out of range");
        assert_eq!(refusal.hint.as_deref(), Some("use 1 to 65536"));
    }
}
