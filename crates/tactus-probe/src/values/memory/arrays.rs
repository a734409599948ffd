//! How large the arrays are.

use std::fs;
use std::path::Path;

use tactus_model::size::{Bytes, Sizes};

use crate::load;

/// The smallest array, where none is named.
const LEAST: u64 = 1 << 10;
/// The largest, where neither is named nor the size of the caches is known.
const MOST: u64 = 64 << 20;
/// Times that the largest array is the last-level cache.
const TIMES_THE_CACHE: u64 = 4;
/// The part of the free memory that it may be: there are several.
const PART: u64 = 20;

/// The sizes of the arrays, and why they are these.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrays {
    /// In bytes, the largest first: powers of two.
    pub sizes: Vec<u64>,
    /// In words.
    pub why: String,
}

impl Arrays {
    /// Those that were asked for; on this CPU, in the memory that is free.
    ///
    /// # Errors
    /// When they do not fit, in words.
    pub fn of(asked: Option<Sizes>, cpu: u32) -> Result<Self, String> {
        Self::chosen(asked, load::memory::largest_cache(cpu), free())
    }

    fn chosen(asked: Option<Sizes>, cache: u64, free: u64) -> Result<Self, String> {
        let room = free / PART;
        let (least, most, why) = match asked {
            Some(sizes) if sizes.most.0 > room => {
                return Err(format!(
                    "arrays of {} are more than a twentieth of the {} MiB that are free",
                    sizes.most,
                    free >> 20
                ));
            }
            Some(sizes) => (sizes.least.0, sizes.most.0, "as the plan has them".to_owned()),
            None => {
                let (wanted, why) = match cache {
                    0 => (MOST, "the size of the caches is not known".to_owned()),
                    cache => (cache.saturating_mul(TIMES_THE_CACHE).next_power_of_two(), {
                        format!("four times the last-level cache of {}", Bytes(cache))
                    }),
                };
                if wanted > room {
                    (
                        LEAST,
                        room,
                        format!("a twentieth of the {} MiB that are free; {why} would be more", free >> 20),
                    )
                } else {
                    (LEAST, wanted, why)
                }
            }
        };
        let powers = (0..u64::BITS).rev().map(|power| 1_u64 << power);
        let sizes: Vec<u64> = powers.filter(|size| (least..=most).contains(size)).collect();
        if sizes.is_empty() {
            return Err(format!("there is no power of two from {} to {}", Bytes(least), Bytes(most)));
        }
        Ok(Self { sizes, why })
    }

    /// The largest.
    pub fn most(&self) -> u64 {
        self.sizes.first().copied().unwrap_or(LEAST)
    }
}

/// Memory that may be taken here, in bytes: what is free, and what the control groups of this process leave of it.
fn free() -> u64 {
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
    use super::*;

    const FREE: u64 = 16 << 30;

    fn sizes(asked: Option<&str>, cache: u64, free: u64) -> Result<(u64, u64, usize), String> {
        let arrays = Arrays::chosen(asked.map(|text| text.parse().unwrap()), cache, free)?;
        assert!(
            arrays.sizes.iter().all(|size| size.is_power_of_two()) && arrays.sizes.is_sorted_by(|a, b| a > b)
        );
        Ok((*arrays.sizes.last().unwrap(), arrays.most(), arrays.sizes.len()))
    }

    #[test]
    fn the_largest_array_is_beyond_the_caches_and_within_the_free_memory() {
        assert_eq!(sizes(None, 32 << 20, FREE), Ok((1 << 10, 128 << 20, 18)));
        assert_eq!(sizes(None, 48 << 20, FREE), Ok((1 << 10, 256 << 20, 19)), "no less than four times");
        assert_eq!(sizes(None, 0, FREE), Ok((1 << 10, 64 << 20, 17)));
        assert_eq!(sizes(None, 32 << 20, 700 << 20), Ok((1 << 10, 32 << 20, 16)), "35 MiB are allowed");
        let why = Arrays::chosen(None, 32 << 20, 700 << 20).unwrap().why;
        assert!(
            why.contains("700 MiB that are free; four times the last-level cache of 32MiB would be more"),
            "{why}"
        );
    }

    #[test]
    fn sizes_that_are_asked_for_are_taken_or_refused_and_never_changed() {
        assert_eq!(sizes(Some("3KiB..9KiB"), 0, FREE), Ok((4 << 10, 8 << 10, 2)));
        assert_eq!(sizes(Some("4KiB..4KiB"), 0, FREE), Ok((4 << 10, 4 << 10, 1)));
        assert!(
            sizes(Some("5KiB..7KiB"), 0, FREE).unwrap_err().contains("no power of two from 5KiB to 7KiB")
        );
        assert!(sizes(Some("1KiB..2GiB"), 0, FREE).unwrap_err().contains("a twentieth of the 16384 MiB"));
        let turned = Sizes { least: Bytes(8 << 10), most: Bytes(4 << 10) };
        assert!(Arrays::chosen(Some(turned), 0, FREE).is_err());
        assert!(sizes(None, 0, 0).is_err(), "without memory there is nothing");
    }

    #[test]
    fn this_machine_has_free_memory() {
        assert!(free() > 1 << 20);
    }
}
