//! `memory`: how fast memory is, and how long a load waits for it.

use crate::catalogue::Item;
use crate::catalogue::declare::word;
use crate::outcome::Unit;
use crate::size::{Bytes, Cache, Most, Sizes};

word! {
    /// Bandwidth is that of plain 64-bit loads and stores of one CPU through an array of the largest size, as STREAM's
    /// loops are compiled and not as a library's memcpy does it; the copy's counts each byte once, as lmbench does, and
    /// STREAM twice.
    ///
    /// Latency is that of a load whose address is what the load before has read (`lat_mem_rd` of lmbench), one in each
    /// line of 64 bytes, in order of the addresses or at random, in arrays of each size of `sizes` that is a power of
    /// two. Before each batch the array is read up to five times, so that what fits into a cache is there, and the next loads are
    /// done, so that the entries of its page tables are. It is measured in pages of 4 KiB, 2 MiB and 1 GiB. Those of
    /// 2 MiB come from the reserve (`nr_hugepages`) or are transparent huge pages,
    /// and how many the kernel gave is looked at; those of 1 GiB come from the reserve alone. Where there are none, a
    /// note says so.
    ///
    /// A requirement or a published figure of a latency is held against that of the largest array: what is left of it
    /// when no cache helps.
    ///
    /// Batches, repeats and values are those of `os`.
    #[derive(Default)]
    pub struct Memory = Measure "memory": "bandwidth of reading, writing and copying, latency by size of array, order and page" {
        /// The smallest and the largest array, as `"1KiB..64MiB"`, or the largest as a multiple of the last-level cache.
        /// That is the machine's for all environments on it, whatever a guest is told of it; where the machine does not
        /// say how large it is, the largest array is 64 MiB in all of them. A multiple is cut to a twentieth of the memory
        /// that is free in the environment, and a note says so: latencies stand there by their size, and there is no
        /// bandwidth, which has none beside it. A size that is more is refused.
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
