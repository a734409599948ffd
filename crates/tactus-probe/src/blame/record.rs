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
    /// The name of the thread that leaves. Of a timer the first word stands for its function; 0: it is not known.
    pub name: [u64; 2],
}

impl Record {
    /// Of this kind.
    pub const fn new(at: u64, kind: EventKind, number: u64, name: [u64; 2]) -> Self {
        Self { at, what: number << NUMBER_SHIFT | kind as u64, name }
    }

    /// What it is.
    pub const fn kind(&self) -> Option<EventKind> {
        EventKind::of(self.what & 0xff)
    }

    /// The thread that leaves, or what else it is of: of a timer enough of its address to know it again.
    pub const fn thread(&self) -> u64 {
        self.what >> NUMBER_SHIFT
    }
}

/// Timers of one function, one after the other with no more between them, may be told as one, in ns.
const IN_A_ROW_NS: u64 = 10_000;

/// Gives the end of each timer's function the function: that of its beginning, here or among those `before`, the last of
/// them first.
pub fn name_ends<I: Iterator<Item = Record>>(records: &mut [Record], before: impl Fn() -> I) {
    for place in 0..records.len() {
        let own = records[place];
        if own.kind() != Some(EventKind::TimerEnds) {
            continue;
        }
        let of_it = |other: &Record| {
            matches!(other.kind(), Some(EventKind::TimerBegins | EventKind::TimerEnds))
                && other.thread() == own.thread()
        };
        let last = records[..place].iter().rev().copied().find(of_it).or_else(|| before().find(of_it));
        let begun = last.filter(|last| last.kind() == Some(EventKind::TimerBegins));
        records[place].name[0] = begun.map_or(0, |begun| begun.name[0]);
    }
}

/// Those of too many events without which the others are still right: many timers of one function in a row are one; then
/// all are part of the interrupt that they go off in.
fn fewer(records: &mut Vec<Record>) {
    let function = |record: &Record, kind| (record.kind() == Some(kind)).then_some(record.name[0]);
    let mut fewer: Vec<Record> = Vec::with_capacity(records.len());
    for record in &*records {
        let ended = fewer.last().filter(|last| record.at.saturating_sub(last.at) <= IN_A_ROW_NS);
        let ended = ended.and_then(|last| function(last, EventKind::TimerEnds));
        if ended.is_some() && ended == function(record, EventKind::TimerBegins) {
            fewer.pop();
        } else {
            fewer.push(*record);
        }
    }
    if fewer.len() > AT_EITHER_END * 2 {
        fewer.retain(|own| !matches!(own.kind(), Some(EventKind::TimerBegins | EventKind::TimerEnds)));
    }
    *records = fewer;
}

/// So many of too many events are kept at either end.
const AT_EITHER_END: usize = MOST_EVENTS / 2 - 1;

/// As it travels. Of too many the first and the last are kept. `function`: the name of a timer's function by what stands for
/// it.
pub fn told(
    due: u64,
    seen: u64,
    mut records: Vec<Record>,
    whole: bool,
    function: impl Fn(u64) -> Option<String>,
) -> Trace {
    let mut trace = Trace::default();
    let mut before = due;
    let half = AT_EITHER_END;
    if records.len() > 2 * half {
        fewer(&mut records);
    }
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
        let Some(kind) = record.kind() else { continue };
        let number = match (record.thread(), kind) {
            (_, EventKind::TimerBegins | EventKind::TimerEnds) => {
                place(&mut trace.timers, function(record.name[0]).unwrap_or_default())
            }
            (number, _) if kind.is_switch() => place(&mut trace.threads, spelled(number, record.name)),
            (number, _) => number,
        };
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

/// The place of a name among those that were there before.
fn place(names: &mut Vec<String>, name: String) -> u64 {
    let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    });
    place as u64
}

#[cfg(test)]
mod tests {
    use super::EventKind::{SoftEnds, TimerBegins, TimerEnds, VectorBegins, VectorEnds};
    use super::*;

    fn record(at: u64, kind: EventKind, number: u64, function: u64) -> Record {
        Record::new(at, kind, number, [function, 0])
    }

    fn called(function: u64) -> Option<String> {
        Some(["wakeup", "tick"].get(usize::try_from(function).ok()?.checked_sub(1)?)?.to_string())
    }

    #[test]
    fn the_end_of_a_timer_has_the_function_of_its_beginning_also_where_that_came_before() {
        let earlier =
            [record(1, TimerBegins, 70, 2), record(2, TimerBegins, 71, 1), record(3, TimerEnds, 71, 9)];
        let before = || earlier.iter().rev().copied();
        let mut own = vec![
            record(10, TimerBegins, 72, 1),
            record(11, TimerEnds, 72, 99),
            record(12, TimerEnds, 70, 99),
            record(13, TimerEnds, 71, 99), // It had ended already.
            record(14, TimerEnds, 73, 99), // Nothing is known of it.
            record(15, SoftEnds, 70, 99),
        ];
        name_ends(&mut own, before);
        assert_eq!(own.iter().map(|own| own.name[0]).collect::<Vec<_>>(), [1, 1, 2, 0, 0, 99]);
        let trace = told(10, 20, own, true, called);
        assert_eq!(trace.timers, ["wakeup", "tick", ""]);
        let numbers: Vec<_> = trace.events().map(|(at, _, number)| (at, number)).collect();
        assert_eq!(numbers, [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 70)]);
    }

    /// So many timers of one function that go off in one interrupt, each `apart` ns after the one before.
    fn burst(count: u64, apart: u64, functions: u64) -> Vec<Record> {
        let timer = |n: u64| {
            let (at, function) = (100 + n * (apart + 300), 1 + n % functions);
            [record(at, TimerBegins, n, function), record(at + 300, TimerEnds, n, function)]
        };
        let mut all = vec![record(90, VectorBegins, 0, 0)];
        all.extend((0..count).flat_map(timer));
        all.push(record(100 + count * (apart + 300), VectorEnds, 0, 0));
        all
    }

    fn kinds(records: Vec<Record>) -> Vec<EventKind> {
        told(0, u64::MAX, records, true, called).events().map(|(_, kind, _)| kind).collect()
    }

    #[test]
    fn of_too_many_timers_in_a_row_one_is_told_and_what_else_there_was_is_kept() {
        assert_eq!(kinds(burst(3_000, 200, 1)), [VectorBegins, TimerBegins, TimerEnds, VectorEnds]);
        assert_eq!(kinds(burst(20, 200, 1)).len(), 42, "as many as there is room for");
        // Of several functions, or with more between them, they are part of their interrupt.
        assert_eq!(kinds(burst(3_000, 200, 2)), [VectorBegins, VectorEnds]);
        assert_eq!(kinds(burst(3_000, IN_A_ROW_NS + 1, 1)), [VectorBegins, VectorEnds]);
    }
}
