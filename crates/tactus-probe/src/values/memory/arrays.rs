//! How large the arrays are.

use std::fs;
use std::path::Path;

use tactus_model::size::{Bytes, Cache, Most, Sizes};

use crate::load;

/// The part of the free memory that it may be: there are several.
const PART: u64 = 20;

/// The sizes of the arrays, and why they are these.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrays {
    /// In bytes, the largest first: powers of two.
    pub sizes: Vec<u64>,
    /// In words.
    pub why: String,
    /// How large the largest would be if there were memory for it.
    cut: Option<Bytes>,
}

impl Arrays {
    /// The requested sizes, on this CPU and with this much free memory.
    ///
    /// # Errors
    /// When they do not fit, in words.
    pub fn of(asked: Sizes, cpu: u32, free: u64) -> Result<Self, String> {
        Self::chosen(asked, load::memory::largest_cache(cpu), free)
    }

    /// `cache`: as this system says it.
    fn chosen(asked: Sizes, cache: u64, free: u64) -> Result<Self, String> {
        let (least, room, megabytes) = (asked.least.0, free / PART, free >> 20);
        let (most, why, cut) = match asked.most {
            Most::Size(most) if most.0 > room => {
                return Err(format!(
                    "arrays of {most} are more than a twentieth of the {megabytes} MiB that are free"
                ));
            }
            Most::Size(most) => (most.0, "as the plan has them".to_owned(), None),
            Most::Caches { times, cache: known } => {
                let cache = match known {
                    Cache::Own => cache,
                    Cache::Size(known) => known.0,
                    Cache::Unknown => 0,
                };
                let (wanted, why) = match cache {
                    0 => (Most::UNKNOWN.0, "the size of the caches is unknown".to_owned()),
                    cache => (
                        cache.saturating_mul(times.into()).checked_next_power_of_two().unwrap_or(u64::MAX),
                        { format!("{times} times the last-level cache of {}", Bytes(cache)) },
                    ),
                };
                if wanted > room {
                    let cut = Bytes(wanted);
                    let why = format!(
                        "a twentieth of the {megabytes} MiB that are free; {cut} would be more: {why}"
                    );
                    (room, why, Some(cut))
                } else {
                    (wanted, why, None)
                }
            }
        };
        let powers = (0..u64::BITS).rev().map(|power| 1_u64 << power);
        let sizes: Vec<u64> = powers.filter(|size| (least..=most).contains(size)).collect();
        if sizes.is_empty() {
            return Err(format!("there is no power of two from {} to {}", Bytes(least), Bytes(most)));
        }
        Ok(Self { sizes, why, cut })
    }

    /// The largest.
    pub fn most(&self) -> u64 {
        self.sizes.first().copied().unwrap_or(0)
    }

    /// The largest size, for items whose value is shown without a size: it must be the same on every system.
    ///
    /// # Errors
    /// When the memory for it is missing, in words.
    pub fn whole(&self) -> Result<u64, String> {
        let Some(cut) = self.cut else { return Ok(self.most()) };
        Err(format!(
            "it needs an array of {cut}, but only {} are allowed: give this environment {PART} times {cut} \
                of memory",
            Bytes(self.most())
        ))
    }
}

/// Memory that may be taken here, in bytes: the free memory, as far as the control groups of this process allow.
pub fn free() -> u64 {
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
    let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let left = Path::new("/sys/fs/cgroup").join(group);
    let left = left.ancestors().take_while(|path| path.starts_with("/sys/fs/cgroup")).filter_map(|path| {
        Some(number(&path.join("memory.max"))?.saturating_sub(number(&path.join("memory.current"))?))
    });
    left.chain(load::available()).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::measure::Memory;

    use super::*;

    const FREE: u64 = 16 << 30;

    fn sizes(asked: &str, cache: u64, free: u64) -> Result<(u64, u64, usize), String> {
        let arrays = Arrays::chosen(asked.parse().unwrap(), cache, free)?;
        assert!(
            arrays.sizes.iter().all(|size| size.is_power_of_two()) && arrays.sizes.is_sorted_by(|a, b| a > b)
        );
        Ok((*arrays.sizes.last().unwrap(), arrays.most(), arrays.sizes.len()))
    }

    #[test]
    fn the_largest_array_is_beyond_the_caches_and_within_the_free_memory() {
        let left_out = Memory::default().sizes().to_string();
        let sizes = |cache, free| sizes(&left_out, cache, free);
        assert_eq!(sizes(32 << 20, FREE), Ok((1 << 10, 128 << 20, 18)));
        assert_eq!(sizes(48 << 20, FREE), Ok((1 << 10, 256 << 20, 19)), "no less than four times");
        assert_eq!(sizes(0, FREE), Ok((1 << 10, 64 << 20, 17)));
        assert_eq!(sizes(32 << 20, 700 << 20), Ok((1 << 10, 32 << 20, 16)), "35 MiB are allowed");
        assert!(sizes(u64::MAX / 2, FREE).is_ok_and(|(_, most, _)| most <= FREE / PART));
        assert!(sizes(0, 0).is_err(), "without memory there is nothing");
        let why = Arrays::chosen(left_out.parse().unwrap(), 32 << 20, 700 << 20).unwrap().why;
        assert!(
            why.contains(
                "700 MiB that are free; 128MiB would be more: 4 times the last-level cache of 32MiB"
            ),
            "{why}"
        );
    }

    #[test]
    fn a_cache_that_the_plan_knows_is_taken_for_that_which_a_guest_is_told() {
        assert_eq!(sizes("1KiB..4x32MiB", 16 << 20, FREE), Ok((1 << 10, 128 << 20, 18)));
        assert_eq!(sizes("4KiB..2xLLC", 16 << 20, FREE), Ok((4 << 10, 32 << 20, 14)));
        assert_eq!(sizes("1KiB..4xunknown", 16 << 20, FREE), Ok((1 << 10, 64 << 20, 17)));
    }

    #[test]
    fn what_has_no_size_beside_its_value_has_the_largest_array_or_none() {
        let whole = |asked: &str, free| Arrays::chosen(asked.parse().unwrap(), 0, free)?.whole();
        assert_eq!(whole("1KiB..4x32MiB", FREE), Ok(128 << 20));
        assert_eq!(whole("1KiB..1MiB", FREE), Ok(1 << 20));
        let refused = whole("1KiB..4x32MiB", 700 << 20).unwrap_err();
        assert!(refused.contains("needs an array of 128MiB, but only 32MiB are allowed"), "{refused}");
        assert!(refused.contains("20 times 128MiB"), "{refused}");
        // With an unknown cache size, the default array must fit as well.
        assert!(whole("1KiB..4xunknown", 700 << 20).is_err());
    }

    #[test]
    fn sizes_that_are_asked_for_are_taken_or_refused_and_never_changed() {
        assert_eq!(sizes("3KiB..9KiB", 0, FREE), Ok((4 << 10, 8 << 10, 2)));
        assert_eq!(sizes("4KiB..4KiB", 0, FREE), Ok((4 << 10, 4 << 10, 1)));
        assert!(sizes("5KiB..7KiB", 0, FREE).unwrap_err().contains("no power of two from 5KiB to 7KiB"));
        assert!(sizes("1KiB..2GiB", 0, FREE).unwrap_err().contains("a twentieth of the 16384 MiB"));
        let turned = Sizes { least: Bytes(8 << 10), most: Most::Size(Bytes(4 << 10)) };
        assert!(Arrays::chosen(turned, 0, FREE).is_err());
    }

    #[test]
    fn this_machine_has_free_memory() {
        assert!(free() > 1 << 20);
    }
}
