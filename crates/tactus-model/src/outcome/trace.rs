//! What the kernel did on a CPU while a latency lasted: the events that a probe has kept of it.

use serde::{Deserialize, Serialize};

/// Most events that are kept of one latency.
pub const MOST_EVENTS: usize = 256;
/// Most threads that they name.
pub const MOST_THREADS: usize = MOST_EVENTS;
/// Longest name of a thread, with its number before it, in bytes.
pub const LONGEST_THREAD: usize = 32;
/// What [`Trace::events`] has of each event.
pub const PER_EVENT: usize = 3;

/// What an event is. Its number is the one that travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// What was between the event before and this moment was not kept.
    Lost = 0,
    /// A thread leaves the CPU, it is not known why: a place in [`Trace::threads`].
    Leaves = 1,
    /// The handler of a device's interrupt begins: its Linux number.
    InterruptBegins = 2,
    /// It ends.
    InterruptEnds = 3,
    /// A soft interrupt begins: its number ([`SOFT_INTERRUPTS`]).
    SoftBegins = 4,
    /// It ends.
    SoftEnds = 5,
    /// An interrupt of the processor's or the kernel's own begins: a place in [`VECTORS`].
    VectorBegins = 6,
    /// It ends.
    VectorEnds = 7,
    /// A thread leaves the CPU of its own accord, to wait: a place in [`Trace::threads`].
    Sleeps = 8,
    /// A thread leaves the CPU because another one is to have it: a place in [`Trace::threads`].
    Preempted = 9,
}

/// Names of soft interrupts, by their numbers (`include/linux/interrupt.h`).
pub const SOFT_INTERRUPTS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Interrupts that are no device's, by the names of their tracepoints before `_entry` and `_exit` (`trace/irq_vectors.h`
/// of x86). The first is the timer's.
pub const VECTORS: [&str; 5] =
    ["local_timer", "reschedule", "call_function", "call_function_single", "irq_work"];

impl EventKind {
    /// Whether a thread leaves the CPU.
    #[must_use]
    pub const fn is_switch(self) -> bool {
        matches!(self, Self::Leaves | Self::Sleeps | Self::Preempted)
    }

    /// The one with a number.
    #[must_use]
    pub const fn of(number: u64) -> Option<Self> {
        Some(match number {
            0 => Self::Lost,
            1 => Self::Leaves,
            2 => Self::InterruptBegins,
            3 => Self::InterruptEnds,
            4 => Self::SoftBegins,
            5 => Self::SoftEnds,
            6 => Self::VectorBegins,
            7 => Self::VectorEnds,
            8 => Self::Sleeps,
            9 => Self::Preempted,
            _ => return None,
        })
    }
}

/// The events of a CPU while a latency lasted, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Three numbers of each event: ns since the one before it, the first since what was due was due; its
    /// [`EventKind`]; and which.
    pub events: Vec<u64>,
    /// Threads that left the CPU, each as `NUMBER NAME`: the number that it has on the machine (0: none, the CPU idled).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<String>,
}

impl Trace {
    /// The events: when, in ns since what was due was due, and what. Those that are no such are left out.
    pub fn events(&self) -> impl Iterator<Item = (u64, EventKind, u64)> {
        let mut at = 0_u64;
        self.events.chunks_exact(PER_EVENT).filter_map(move |event| {
            at = at.saturating_add(event[0]);
            Some((at, EventKind::of(event[1])?, event[2]))
        })
    }

    /// Leaves of it what a probe keeps of one latency, and no more memory than that takes. Returns whether there was more:
    /// a trace may be somebody else's.
    pub fn limit(&mut self) -> bool {
        let Self { events, threads } = self;
        let mut more = events.len() > MOST_EVENTS * PER_EVENT || threads.len() > MOST_THREADS;
        events.truncate(MOST_EVENTS * PER_EVENT);
        events.shrink_to_fit();
        threads.truncate(MOST_THREADS);
        threads.shrink_to_fit();
        for thread in threads.iter_mut().filter(|thread| thread.len() > LONGEST_THREAD) {
            let end = (0..=LONGEST_THREAD).rev().find(|at| thread.is_char_boundary(*at)).unwrap_or(0);
            thread.truncate(end);
            thread.shrink_to_fit();
            more = true;
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_was_cut_has_no_more_memory_than_it_may() {
        let mut trace =
            Trace { events: vec![7; 90_000], threads: vec![format!("1 {}", "\u{e9}".repeat(50_000)); 9_000] };
        assert!(trace.limit());
        assert_eq!((trace.events.len(), trace.threads.len()), (MOST_EVENTS * PER_EVENT, MOST_THREADS));
        assert!(trace.events.capacity() <= 2 * MOST_EVENTS * PER_EVENT, "{}", trace.events.capacity());
        assert!(trace.threads.capacity() <= 2 * MOST_THREADS, "{}", trace.threads.capacity());
        for thread in &trace.threads {
            assert!(thread.starts_with("1 \u{e9}") && thread.len() <= LONGEST_THREAD);
            assert!(thread.capacity() <= 2 * LONGEST_THREAD, "{}", thread.capacity());
        }
        assert!(!trace.clone().limit(), "what a probe keeps stays as it is");
    }
}
