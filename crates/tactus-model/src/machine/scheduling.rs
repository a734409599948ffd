//! How measuring threads are scheduled.

use std::fmt;

use crate::wire::row::choice;

choice! {
    /// How the measuring threads are scheduled.
    #[derive(Default)]
    pub enum Policy {
        /// SCHED_FIFO at the scenario's priority.
        #[default]
        Fifo = "fifo",
        /// SCHED_RR at the scenario's priority.
        Rr = "rr",
        /// SCHED_DEADLINE: runtime half the interval, deadline and period the interval.
        Deadline = "deadline",
        /// SCHED_OTHER, for comparison.
        Other = "other",
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fifo => "SCHED_FIFO",
            Self::Rr => "SCHED_RR",
            Self::Deadline => "SCHED_DEADLINE",
            Self::Other => "SCHED_OTHER",
        })
    }
}
