//! `memory`: streams.

use crate::catalogue::declare::word;
use crate::size::Bytes;

word! {
    /// A process per CPU copies one half of a buffer to the other and adds it back (the copy and triad of STREAM). This
    /// replaces the contents of the last-level cache and keeps the memory controller busy. A round is one MiB
    /// processed.
    #[derive(Default)]
    pub struct Memory = Load "memory": "streams through more memory than any cache holds" {
        /// Size of the buffer of each CPU. Left out: 64 MiB, or twice its largest cache where that is more.
        pub bytes: Option<Bytes>, 1 << 20..=1 << 40;
    }
}
