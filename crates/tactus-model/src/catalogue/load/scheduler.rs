//! `scheduler`: senders and receivers of small messages.

use crate::catalogue::declare::word;

word! {
    /// Groups of processes exchange small messages over UNIX sockets or pipes. This causes many wake-ups, context
    /// switches and accesses to run-queue locks. A round is a message received.
    #[derive(Default)]
    pub struct Scheduler = Load "scheduler": "groups of senders and receivers, as hackbench" {
        /// Number of groups. Each has `pairs` senders and the same number of receivers. Every sender writes to every
        /// receiver of its group.
        pub groups: Option<u32> = 2, 1..=2_000;
        /// Senders per group. All groups together are at most 4000 processes.
        pub pairs: Option<u32> = 10, 1..=2_000;
        /// Bytes of a message.
        pub size: Option<u32> = 100, 1..=65_536;
        /// Pipes instead of UNIX sockets.
        pub pipes: bool = false;
    }
}
