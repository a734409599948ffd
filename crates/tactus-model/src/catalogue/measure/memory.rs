//! `memory`: how fast memory is, and how long a load waits for it.

use crate::catalogue::Item;
use crate::catalogue::declare::word;
use crate::outcome::Unit;
use crate::size::{Bytes, Cache, Most, Sizes};

word! {
    /// Bandwidth is measured with plain 64-bit loads and stores of one CPU through an array of the largest size. The
    /// loops are compiled as those of STREAM; no library's memcpy is used. For a copy each byte counts once, as in
    /// lmbench; STREAM counts it twice.
    ///
    /// Latency is the time of a load whose address comes from the load before (`lat_mem_rd` of lmbench). There is one
    /// load in each line of 64 bytes, in order of the addresses or at random. The arrays have each size within `sizes`
    /// that is a power of two. Before each batch the array is read up to five times, to fill the caches with it. The
    /// next loads are then done, to cache the entries of its page tables. Pages of 4 KiB, 2 MiB and 1 GiB are measured.
    /// Pages of 2 MiB come from the reserve (`nr_hugepages`) or are transparent huge pages; how many the kernel gave is
    /// checked. Pages of 1 GiB come from the reserve only. If pages of a size are missing, a note says so.
    ///
    /// A requirement or a published figure for a latency is compared with the value of the largest array, which no
    /// cache contains.
    ///
    /// Batches, repeats and values are those of `os`.
    #[derive(Default)]
    pub struct Memory = Measure "memory": "bandwidth of reading, writing and copying, latency by size of array, order and page" {
        /// The smallest and the largest array, as `"1KiB..64MiB"`, or the largest as a multiple of the last-level
        /// cache. The size of that cache is the machine's, for all environments on it, whatever a guest is told. If the
        /// machine does not report it, the largest array is 64 MiB in all of them. A multiple is limited to a twentieth
        /// of the free memory of the environment, and a note says so. Latencies are then measured up to that size, and
        /// bandwidth is not measured, because it would have a different array. A size in bytes above that limit is
        /// refused.
        pub sizes: Option<Sizes> = UP_TO_FOUR_CACHES, 1024..=1 << 40;
    }
    yields [
        READ, WRITE, COPY, SEQUENTIAL_SMALL, RANDOM_SMALL, SEQUENTIAL_LARGE, RANDOM_LARGE, SEQUENTIAL_HUGE, RANDOM_HUGE
    ];
}

/// From what the nearest cache holds to what none does.
const UP_TO_FOUR_CACHES: Sizes =
    Sizes { least: Bytes(1 << 10), most: Most::Caches { times: 4, cache: Cache::Own } };

/// Loads.
pub const READ: Item = Item::higher(
    "memory read bandwidth",
    Unit::MegabytesPerSecond,
    "an array of the largest size is read and added up",
);

/// Stores.
pub const WRITE: Item = Item::higher(
    "memory write bandwidth",
    Unit::MegabytesPerSecond,
    "an array of the largest size is written",
);

/// Both.
pub const COPY: Item = Item::higher(
    "memory copy bandwidth",
    Unit::MegabytesPerSecond,
    "one half of an array of the largest size is copied to the other: bytes copied, each counted once",
);

/// Forward, in the smallest pages.
pub const SEQUENTIAL_SMALL: Item = Item::lower(
    "sequential latency, 4 KiB pages",
    Unit::Ns,
    "dependent loads in order of the addresses, by size of the array, in pages of 4 KiB",
);

/// To and fro, in the smallest pages.
pub const RANDOM_SMALL: Item = Item::lower(
    "random latency, 4 KiB pages",
    Unit::Ns,
    "dependent loads at random, by size of the array, in pages of 4 KiB",
);

/// Forward, in large pages.
pub const SEQUENTIAL_LARGE: Item = Item::lower(
    "sequential latency, 2 MiB pages",
    Unit::Ns,
    "the same in order of the addresses, in pages of 2 MiB",
);

/// To and fro, in large pages.
pub const RANDOM_LARGE: Item =
    Item::lower("random latency, 2 MiB pages", Unit::Ns, "the same at random, in pages of 2 MiB");

/// Forward, in the largest pages.
pub const SEQUENTIAL_HUGE: Item = Item::lower(
    "sequential latency, 1 GiB pages",
    Unit::Ns,
    "the same in order of the addresses, in pages of 1 GiB",
);

/// To and fro, in the largest pages.
pub const RANDOM_HUGE: Item =
    Item::lower("random latency, 1 GiB pages", Unit::Ns, "the same at random, in pages of 1 GiB");
