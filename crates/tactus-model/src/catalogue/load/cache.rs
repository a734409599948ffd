//! `cache`: allocation of blocks.

use crate::catalogue::declare::word;
use crate::size::Bytes;

word! {
    /// Processes of ordinary priority, one per CPU, work with blocks of random size, up to `bytes`. They allocate
    /// (malloc, calloc), grow and shrink (realloc) and free them, and write to every line of each block. So they
    /// compete with the measurement for caches and page tables. `cache` without parameters matches `stress-ng --malloc
    /// 1 --malloc-bytes 512k --malloc-max 32`. A round is one such step.
    #[derive(Default)]
    pub struct Cache = Load "cache": "random allocation of blocks, as stress-ng --malloc" {
        /// Workers per CPU.
        pub workers: Option<u32> = 1, 1..=64;
        /// Largest block.
        pub bytes: Option<Bytes> = Bytes(512 << 10), 1..=1 << 32;
        /// Blocks at a time.
        pub blocks: Option<u32> = 32, 1..=1 << 16;
    }
}
