//! What was seen of a CPU, whoever saw it, and how it travels.

use tactus_model::trace::{EventKind, LONGEST_THREAD, MOST_EVENTS, Trace};

use super::program::NUMBER_SHIFT;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, CLOCK_MONOTONIC in ns.
    pub at: u64,
    /// Its [`EventKind`], and of what.
    pub what: u64,
    /// The name of the thread that leaves.
    pub name: [u64; 2],
}

impl Record {
    /// Of this kind.
    pub const fn new(at: u64, kind: EventKind, number: u64, name: [u64; 2]) -> Self {
        Self { at, what: number << NUMBER_SHIFT | kind as u64, name }
    }

    /// The thread that leaves.
    pub const fn thread(&self) -> u64 {
        self.what >> NUMBER_SHIFT
    }
}

/// As it travels. Of too many the first and the last are kept.
pub fn told(due: u64, seen: u64, records: &[Record], whole: bool) -> Trace {
    let mut trace = Trace::default();
    let mut before = due;
    let half = MOST_EVENTS / 2 - 1;
    let left_out = if records.len() > 2 * half { half..records.len() - half } else { 0..0 };
    if !whole {
        let known = records.first().map_or(seen, |record| record.at);
        trace.push(&mut before, known, EventKind::Lost, 0);
    }
    for (number, record) in records.iter().enumerate() {
        if left_out.contains(&number) {
            if number + 1 == left_out.end {
                trace.push(&mut before, record.at, EventKind::Lost, 0);
            }
            continue;
        }
        let Some(kind) = EventKind::of(record.what & 0xff) else { continue };
        let number = record.what >> NUMBER_SHIFT;
        let number = if kind.is_switch() { thread(&mut trace.threads, number, record.name) } else { number };
        trace.push(&mut before, record.at, kind, number);
    }
    trace
}

trait Push {
    fn push(&mut self, before: &mut u64, at: u64, kind: EventKind, number: u64);
}

impl Push for Trace {
    fn push(&mut self, before: &mut u64, at: u64, kind: EventKind, number: u64) {
        self.events.extend([at.saturating_sub(*before), kind as u64, number]);
        *before = at;
    }
}

/// A thread by its number and its name.
pub fn spelled(number: u64, name: [u64; 2]) -> String {
    let mut told = number.to_string();
    if number != 0 {
        let bytes = [name[0].to_ne_bytes(), name[1].to_ne_bytes()].concat();
        let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        told.push(' ');
        told.extend(
            bytes.iter().map(|byte| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '?' }),
        );
        told.truncate(LONGEST_THREAD);
    }
    told
}

/// The place of a thread among those that were named.
fn thread(threads: &mut Vec<String>, number: u64, name: [u64; 2]) -> u64 {
    let told = spelled(number, name);
    let place = threads.iter().position(|known| *known == told).unwrap_or_else(|| {
        threads.push(told);
        threads.len() - 1
    });
    place as u64
}
