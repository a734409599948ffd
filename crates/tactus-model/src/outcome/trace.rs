//! The kernel's activity on a CPU during a latency: the events that a probe has kept.

use serde::{Deserialize, Serialize};

/// Most events that are kept of one latency.
pub const MOST_EVENTS: usize = 256;
/// Most threads that they name.
pub const MOST_THREADS: usize = MOST_EVENTS;
/// Longest name of a thread, with its number before it, in bytes.
pub const LONGEST_THREAD: usize = 32;
/// Longest name of a timer's function, in bytes.
pub const LONGEST_FUNCTION: usize = 48;
/// Limit of the candidates that are reported of one latency.
pub const MOST_CANDIDATES: usize = 16;
/// Longest name of a candidate, in bytes: a line of /proc/interrupts is as long as its kernel likes.
pub const LONGEST_CANDIDATE: usize = 64;
/// The number of values that [`Trace::events`] has for each event.
pub const PER_EVENT: usize = 3;

/// The kind of an event. Its number is sent in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The events between the previous one and this time were not kept.
    Lost = 0,
    /// A thread leaves the CPU, for an unknown reason: a place in [`Trace::threads`].
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
    /// A thread leaves the CPU by itself, to wait: a place in [`Trace::threads`].
    Sleeps = 8,
    /// A thread leaves the CPU because another one is to have it: a place in [`Trace::threads`].
    Preempted = 9,
    /// On the machine of a guest: the thread of a virtual CPU leaves the guest; its number. Of no latency's trace.
    GuestLeft = 10,
    /// It enters the guest again.
    GuestEntered = 11,
    /// The function of a timer is called: a place in [`Trace::timers`]. Up to the next one, or the end of the interrupt that it
    /// goes off in, the time is its.
    Timer = 12,
    /// The measured thread is woken. Its number is for how long, in ns, the timer was due that wakes it; 0: no timer does, or
    /// when it was due is not known.
    Woken = 13,
}

/// Names of soft interrupts, by their numbers (`include/linux/interrupt.h`).
pub const SOFT_INTERRUPTS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Interrupts without a device, by the names of their tracepoints before `_entry` and `_exit` (`trace/irq_vectors.h` of
/// x86). The first is the timer's.
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
            10 => Self::GuestLeft,
            11 => Self::GuestEntered,
            12 => Self::Timer,
            13 => Self::Woken,
            _ => return None,
        })
    }
}

/// The source of the record of a CPU during a latency. The later in this order, the less is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Programs at the kernel's tracepoints: each event with its moment, in ns.
    #[default]
    Bpf,
    /// An instance of tracefs: the same events, to the microsecond.
    Tracefs,
    /// Counters in /proc before and after: candidates and amounts, and no account.
    Proc,
}

impl Source {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::Tracefs => "tracefs",
            Self::Proc => "proc",
        }
    }

    const fn is_first(&self) -> bool {
        matches!(self, Self::Bpf)
    }
}

/// The count of a CPU, or of a thread that was last seen on it, in a time that contains the latency and is longer than
/// it. The part that belongs to the latency is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Candidate {
    /// A thread as `NUMBER NAME`, an interrupt as in /proc/interrupts, a soft interrupt, or `steal`.
    pub name: String,
    /// Its kind.
    pub kind: CandidateKind,
    /// Number of occurrences; absent: a time was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Time that it had the CPU, in ns; absent: occurrences were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<u64>,
    /// Length of the time of counting, in ns.
    pub within_ns: u64,
}

/// The kind of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CandidateKind {
    /// A thread that was last seen on that CPU: it may have had its time on another one.
    Thread,
    /// An interrupt.
    Interrupt,
    /// A soft interrupt.
    SoftInterrupt,
    /// Time that the hypervisor took, by the kernel's own count.
    Steal,
}

/// The events of a CPU during a latency, in their order; or counts, if events cannot be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The source of the events.
    #[serde(default, skip_serializing_if = "Source::is_first")]
    pub source: Source,
    /// Counts, if events were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// Three numbers for each event: ns since the one before it (for the first, since the due time), its [`EventKind`],
    /// and its number. The last event may come after the latency: its thread leaves the CPU next, and had it at the
    /// end.
    pub events: Vec<u64>,
    /// Threads that left the CPU, each as `NUMBER NAME`: the number that it has on the machine (0: none, the CPU idled).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<String>,
    /// Functions of timers, by their names in the kernel (empty: its name is not known).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<String>,
}

impl Trace {
    /// The events: the time in ns since the due time, the kind and the number. Invalid ones are left out.
    pub fn events(&self) -> impl Iterator<Item = (u64, EventKind, u64)> {
        let mut at = 0_u64;
        self.events.chunks_exact(PER_EVENT).filter_map(move |event| {
            at = at.saturating_add(event[0]);
            Some((at, EventKind::of(event[1])?, event[2]))
        })
    }

    /// Shortens it to the size that a probe keeps of one latency, and frees the rest of its memory. Returns whether it
    /// was larger: a trace may come from another source.
    pub fn limit(&mut self) -> bool {
        let Self { source: _, candidates, events, threads, timers } = self;
        let mut more = events.len() > MOST_EVENTS * PER_EVENT
            || threads.len() > MOST_THREADS
            || timers.len() > MOST_EVENTS
            || candidates.len() > MOST_CANDIDATES;
        candidates.truncate(MOST_CANDIDATES);
        candidates.shrink_to_fit();
        events.truncate(MOST_EVENTS * PER_EVENT);
        events.shrink_to_fit();
        threads.truncate(MOST_THREADS);
        threads.shrink_to_fit();
        timers.truncate(MOST_EVENTS);
        timers.shrink_to_fit();
        let threads = threads.iter_mut().map(|thread| (thread, LONGEST_THREAD));
        let timers = timers.iter_mut().map(|function| (function, LONGEST_FUNCTION));
        let candidates = candidates.iter_mut().map(|own| (&mut own.name, LONGEST_CANDIDATE));
        for (name, longest) in threads.chain(timers).chain(candidates) {
            more |= cut(name, longest);
        }
        more
    }
}

/// Shortens a name to this many bytes, and frees the rest of its memory. Returns whether it was longer.
pub fn cut(name: &mut String, longest: usize) -> bool {
    let more = name.len() > longest;
    if more {
        let end = (0..=longest).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        name.truncate(end);
        name.shrink_to_fit();
    }
    more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_was_cut_has_no_more_memory_than_it_may() {
        let candidate = Candidate {
            name: "\u{e9}".repeat(50_000),
            kind: CandidateKind::Interrupt,
            times: Some(1),
            ns: None,
            within_ns: 1,
        };
        let mut trace = Trace {
            source: Source::Proc,
            candidates: vec![candidate; 900],
            events: vec![7; 90_000],
            threads: vec![format!("1 {}", "\u{e9}".repeat(50_000)); 9_000],
            timers: vec!["\u{e9}".repeat(50_000); 9_000],
        };
        assert!(trace.limit());
        assert_eq!(trace.candidates.len(), MOST_CANDIDATES);
        assert!(trace.candidates.iter().all(|own| own.name.capacity() <= 2 * LONGEST_CANDIDATE));
        assert_eq!((trace.events.len(), trace.threads.len()), (MOST_EVENTS * PER_EVENT, MOST_THREADS));
        assert!(trace.events.capacity() <= 2 * MOST_EVENTS * PER_EVENT, "{}", trace.events.capacity());
        assert!(trace.threads.capacity() <= 2 * MOST_THREADS, "{}", trace.threads.capacity());
        for thread in &trace.threads {
            assert!(thread.starts_with("1 \u{e9}") && thread.len() <= LONGEST_THREAD);
            assert!(thread.capacity() <= 2 * LONGEST_THREAD, "{}", thread.capacity());
        }
        assert!(trace.timers.len() == MOST_EVENTS && trace.timers.capacity() <= 2 * MOST_EVENTS);
        for function in &trace.timers {
            assert!(function.len() <= LONGEST_FUNCTION && function.capacity() <= 2 * LONGEST_FUNCTION);
        }
        assert!(!trace.clone().limit(), "what a probe keeps stays as it is");
    }
}
