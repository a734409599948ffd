//! `cpu`: computation.

use crate::catalogue::declare::word;

word! {
    /// Threads of ordinary priority that compute without end. A round is 1000 computations.
    #[derive(Default)]
    pub struct Cpu = Load "cpu": "one busy thread per CPU" {
        /// Part of the time that each thread is busy, in per cent.
        pub busy: Option<u32> = 100, 1..=100;
    }
}
