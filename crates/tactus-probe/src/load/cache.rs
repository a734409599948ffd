//! `cache`: allocates, touches, grows, shrinks and frees blocks of random size, as `stress-ng --malloc`
//! does. A round is one such step.

use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::CpuSet;
use tactus_model::catalogue::load::Cache;
use tactus_model::message::Refusal;

use super::{each, length, next, room};
use crate::work::Work;

/// A byte is written this often: no processor that Linux runs on has shorter lines.
const LINE: usize = 64;

pub fn works(table: &Cache, cpus: &CpuSet) -> Result<Vec<Work>, Refusal> {
    let (workers, bytes, blocks) = (u64::from(table.workers()), table.bytes().0, u64::from(table.blocks()));
    room("cache", bytes * blocks * workers * cpus.iter().count() as u64)?;
    let mut works = Vec::new();
    for worker in 1..=workers {
        works.append(&mut each(cpus, &|_| {
            Box::new(move |rounds| churn(bytes, blocks, worker, rounds, || false))
        }));
    }
    Ok(works)
}

/// `seed`: so that workers do not take the same steps.
fn churn(bytes: u64, blocks: u64, seed: u64, rounds: &AtomicU64, enough: impl Fn() -> bool) {
    let mut kept: Vec<Vec<u8>> = vec![Vec::new(); length(blocks)];
    let mut state = seed;
    while !enough() {
        let block = &mut kept[length(next(&mut state) % blocks)];
        let size = length(1 + next(&mut state) % bytes);
        let what = next(&mut state);
        match block.capacity() {
            // calloc, once in a while.
            0 if what.is_multiple_of(32) => {
                *block = vec![0; size];
                block.clear();
            }
            0 => block.reserve_exact(size),
            _ if what.is_multiple_of(2) => *block = Vec::new(),
            now if now < size => block.reserve_exact(size),
            _ => block.shrink_to(size),
        }
        for line in block.spare_capacity_mut().iter_mut().step_by(LINE) {
            line.write(1);
        }
        std::hint::black_box(block);
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::size::Bytes;

    use super::*;

    fn count(cpus: &str, table: &Cache) -> Result<usize, Refusal> {
        Ok(works(table, &cpus.parse().unwrap())?.len())
    }

    #[test]
    fn every_cpu_has_its_workers() {
        let two = Cache { workers: Some(2), ..Cache::default() };
        assert_eq!(count("0-2", &two), Ok(6));
        assert_eq!(count("0-2", &Cache::default()), Ok(3));
    }

    #[test]
    fn blocks_of_nothing_or_of_more_than_the_memory_are_refused() {
        let table = |bytes, blocks| Cache { workers: None, bytes: Some(Bytes(bytes)), blocks };
        assert!(table(0, None).check().is_err());
        assert!(table(1, Some(0)).check().is_err());
        assert!(table(1 << 40, None).check().is_err());
        let most = table(1 << 32, Some(1 << 16));
        assert_eq!(most.check(), Ok(()));
        assert!(count("0", &most).unwrap_err().reason.contains("available"));
    }

    #[test]
    fn every_step_is_a_round_and_the_smallest_block_is_one_byte() {
        for bytes in [1, 4 << 10] {
            let rounds = AtomicU64::new(0);
            churn(bytes, 4, 1, &rounds, || rounds.load(Ordering::Relaxed) == 1_000);
            assert_eq!(rounds.into_inner(), 1_000);
        }
    }
}
