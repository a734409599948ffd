//! `memory`: streams through a buffer larger than any cache, by copying one half to the other and adding it back
//! (STREAM's copy and triad). A round is a MiB of the buffer gone through.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::CpuSet;
use tactus_model::catalogue::load::Memory;
use tactus_model::message::Refusal;

use super::{each, length, room};
use crate::work::Work;

/// Words of 64 bits of either half that are one round: together a MiB.
const ROUND: usize = (1 << 20) / 16;
/// The size of a buffer when the size of the caches is unknown.
const DEFAULT: u64 = 64 << 20;

pub fn works(table: &Memory, cpus: &CpuSet) -> Result<Vec<Work>, Refusal> {
    let mut caches = 0;
    for cpu in cpus.iter() {
        caches = largest_cache(cpu).max(caches);
    }
    let bytes = table.bytes.map_or(DEFAULT.max(2 * caches), |bytes| bytes.0);
    room("memory", bytes * cpus.iter().count() as u64)?;
    Ok(each(cpus, &|_| Box::new(move |rounds| stream(bytes, rounds, || false))))
}

/// Size of the largest cache that a CPU has a part in, in bytes; 0: not known.
pub fn largest_cache(cpu: u32) -> u64 {
    let mut largest = 0;
    for index in 0..8 {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/size");
        let Ok(text) = fs::read_to_string(path) else { break };
        let size = text.trim().strip_suffix('K').and_then(|size| size.parse::<u64>().ok());
        largest = size.unwrap_or(0).max(largest);
    }
    largest.saturating_mul(1024)
}

fn stream(bytes: u64, rounds: &AtomicU64, enough: impl Fn() -> bool) {
    let words = length(bytes / 16);
    // Ones: pages of zeros would all be the same one until they are written.
    let (mut to, mut from) = (vec![1u64; words], vec![1u64; words]);
    let factor = std::hint::black_box(3);
    while !enough() {
        for (to, from) in to.chunks_mut(ROUND).zip(from.chunks_mut(ROUND)) {
            to.copy_from_slice(from);
            std::hint::black_box(&mut *to);
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        for (to, from) in to.chunks_mut(ROUND).zip(from.chunks_mut(ROUND)) {
            for (to, from) in to.iter_mut().zip(&mut *from) {
                *from = to.wrapping_add(from.wrapping_mul(factor));
            }
            std::hint::black_box(from);
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::Load;
    use tactus_model::size::Bytes;

    use crate::load;

    use super::*;

    fn count(bytes: Option<u64>) -> Result<usize, Refusal> {
        let table = Memory { bytes: bytes.map(Bytes) };
        Ok(load::works(&Load::Memory(table), &"0".parse().unwrap())?.len())
    }

    #[test]
    fn a_buffer_smaller_than_a_round_or_larger_than_the_memory_is_refused() {
        assert!(count(Some((1 << 20) - 1)).is_err());
        assert!(count(Some(1 << 41)).is_err());
        assert!(count(Some(1 << 40)).unwrap_err().reason.contains("available"));
        assert_eq!(count(Some(2 << 20)), Ok(1));
    }

    #[test]
    fn the_whole_buffer_is_gone_through_in_rounds_of_a_mebibyte() {
        let rounds = AtomicU64::new(0);
        let passes = AtomicU64::new(0);
        stream(3 << 20, &rounds, || passes.fetch_add(1, Ordering::Relaxed) == 2);
        assert_eq!(rounds.into_inner(), 2 * 2 * 3, "two passes of copy and of triad over 3 MiB");
    }
}
