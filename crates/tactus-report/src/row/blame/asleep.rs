//! Times when the measured thread could not run, because it slept or was blocked: then no other thread kept
//! it from the CPU.
//!
//! The evidence is in the events alone: the state in which it left the CPU, its wake-up, and when the timer
//! was due that woke it. The measured thread has the CPU at the end of a latency; the next event says which
//! thread that is.

use tactus_model::document::{Owner, Span};
use tactus_model::trace::{EventKind, Trace};

/// Its wake-up was not seen: from when on it could run is not known.
pub const UNSEEN: &str = "its wake-up was not seen";

/// The state of the measured thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Unknown,
    /// It has the CPU, or could have it.
    Runs,
    /// It sleeps since then.
    Sleeps(u64),
}

/// A time in which it did not run, and the known reason.
struct Gap {
    from: u64,
    until: u64,
    kind: Known,
}

/// The known reason.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It slept.
    Slept,
    /// It had gone to sleep, and was woken at a moment that was not seen.
    Woken,
    /// Nothing.
    Nothing,
}

/// The measured thread; `None` if no event shows it.
fn measured(trace: &Trace, length: u64) -> Option<u64> {
    let mut later = trace.events().skip_while(|(at, _, _)| *at <= length);
    later.find_map(|(_, kind, thread)| kind.is_switch().then_some(thread))
}

/// Marks the spans of a latency in which its thread slept, and says whether it could run in the others.
/// `wakes`: the latency is that of a wake-up by a timer. Such a thread could run from then on, and does not
/// sleep again within its latency.
pub fn overlay(spans: Vec<Span>, trace: &Trace, length: u64, wakes: bool) -> (Vec<Span>, bool) {
    if wakes {
        return (spans, true);
    }
    let Some(thread) = measured(trace, length) else { return (spans, false) };
    let gaps = gaps(trace, thread, length);
    let mut all = Vec::new();
    for span in spans {
        cut(&span, &gaps, &mut all);
    }
    (all, true)
}

fn gaps(trace: &Trace, thread: u64, length: u64) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut does = Does::Unknown;
    // When another one last left the CPU, for it if it has it next.
    let mut came = 0;
    let end = [(length, EventKind::Preempted, thread)];
    for (at, kind, number) in trace.events().take_while(|(at, _, _)| *at <= length).chain(end) {
        let own = kind.is_switch() && number == thread;
        match (kind, does) {
            (EventKind::Lost, _) => does = Does::Unknown,
            (EventKind::Woken, Does::Sleeps(from)) => {
                gaps.push(Gap { from, until: at.saturating_sub(number).max(from), kind: Known::Slept });
                does = Does::Runs;
            }
            (EventKind::Woken, _) => does = Does::Runs,
            _ if own => {
                match does {
                    Does::Sleeps(from) => gaps.push(Gap { from, until: came, kind: Known::Woken }),
                    Does::Unknown => gaps.push(Gap { from: 0, until: came, kind: Known::Nothing }),
                    Does::Runs => {}
                }
                does = match kind {
                    EventKind::Sleeps => Does::Sleeps(at),
                    EventKind::Leaves => Does::Unknown,
                    _ => Does::Runs,
                };
            }
            _ if kind.is_switch() => came = at,
            _ => {}
        }
    }
    gaps
}

/// A span as the parts that the gaps make of it.
fn cut(span: &Span, gaps: &[Gap], all: &mut Vec<Span>) {
    let (mut from, end) = (span.from_ns, span.from_ns + span.ns);
    while from < end {
        let within = gaps.iter().rev().find(|gap| (gap.from..gap.until).contains(&from));
        let next = gaps.iter().flat_map(|gap| [gap.from, gap.until]).filter(|at| *at > from);
        let until = next.min().unwrap_or(end).min(end);
        let (owner, name) = match within.map(|gap| gap.kind) {
            Some(Known::Slept) => (Owner::Blocked, String::new()),
            Some(Known::Woken) => (Owner::Blocked, UNSEEN.to_owned()),
            // An idle CPU says nothing about a thread that may have slept.
            Some(Known::Nothing) if span.owner == Owner::Idle => (Owner::Unaccounted, String::new()),
            _ => (span.owner, span.name.clone()),
        };
        all.push(Span { from_ns: from, ns: until - from, owner, name });
        from = until;
    }
}
