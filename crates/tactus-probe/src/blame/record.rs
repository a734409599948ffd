//! The events of a CPU, from any source, and their form in a message.

use tactus_model::trace::{EventKind, LONGEST_THREAD, MOST_EVENTS, Trace};

use super::program::NUMBER_SHIFT;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, CLOCK_MONOTONIC in ns.
    pub at: u64,
    /// Its [`EventKind`], and of what.
    pub what: u64,
    /// The name of the thread that leaves. Of a timer the first word stands for its function, and the second is when it is
    /// due, CLOCK_MONOTONIC in ns (0: not known).
    pub name: [u64; 2],
}

impl Record {
    /// Of this kind.
    pub const fn new(at: u64, kind: EventKind, number: u64, name: [u64; 2]) -> Self {
        Self { at, what: number << NUMBER_SHIFT | kind as u64, name }
    }

    /// The kind of the event.
    pub const fn kind(&self) -> Option<EventKind> {
        EventKind::of(self.what & 0xff)
    }

    /// The thread that leaves the CPU, or the other number of the event.
    pub const fn thread(&self) -> u64 {
        self.what >> NUMBER_SHIFT
    }

    /// A thread leaves.
    pub fn is_switch(&self) -> bool {
        self.kind().is_some_and(EventKind::is_switch)
    }

    fn is_timer(&self) -> bool {
        self.kind() == Some(EventKind::Timer)
    }
}

/// The timer whose function runs, from the events `before`, the last one first. It must have been called in the current
/// interrupt, and the beginning of that must be among them.
fn timer_of(before: impl Iterator<Item = Record>) -> Option<Record> {
    let mut within = 0_u32;
    for record in before {
        match record.kind()? {
            EventKind::Timer if within == 0 => return Some(record),
            EventKind::InterruptEnds | EventKind::SoftEnds | EventKind::VectorEnds => within += 1,
            EventKind::InterruptBegins | EventKind::SoftBegins | EventKind::VectorBegins => {
                within = within.checked_sub(1)?;
            }
            kind if kind.is_switch() || kind == EventKind::Lost => return None,
            _ => {}
        }
    }
    None
}

/// Of too many events, this many are kept at either end. The remaining places are for the gap and for the measured
/// thread's actions before and after.
const AT_EITHER_END: usize = MOST_EVENTS / 2 - 2;

/// Limit of the events before a latency in which its thread's last action is looked for.
const MOST_EARLIER: usize = 4096;

/// Whether a thread slept or could run before these events, by the `earlier` ones, the last one first. The result has
/// the time `at`, as if the thread went to sleep or was woken then. `None`: unknown.
fn before(thread: u64, at: u64, earlier: impl Iterator<Item = Record>) -> Option<Record> {
    for record in earlier.take(MOST_EARLIER) {
        let kind = record.kind()?;
        match kind {
            EventKind::Lost => return None,
            EventKind::Woken | EventKind::Sleeps if record.thread() == thread => {
                return Some(Record { at, ..record });
            }
            // It can run.
            EventKind::Preempted if record.thread() == thread => {
                return Some(Record::new(at, EventKind::Woken, thread, [0; 2]));
            }
            EventKind::Leaves if record.thread() == thread => return None,
            _ => {}
        }
    }
    None
}

/// For how long the timer was due in whose function a wake-up happens.
fn waited(records: &[Record], place: usize) -> u64 {
    let timer = timer_of(records[..place].iter().rev().copied());
    let due = timer.map_or(0, |timer| timer.name[1]);
    if due == 0 { 0 } else { records[place].at.saturating_sub(due) }
}

/// The records in the form of a message. Of too many, the first and the last are kept. `earlier`: the records before,
/// the last one first. `next`: the first thread to leave the CPU after these records; until then the measured thread
/// has it. `function`: the name of a timer's function by its address.
pub fn told(
    (due, seen): (u64, u64),
    earlier: impl Iterator<Item = Record> + Clone,
    mut records: Vec<Record>,
    next: Option<Record>,
    whole: bool,
    function: impl Fn(u64) -> Option<String>,
) -> Trace {
    let mut trace = Trace::default();
    let measured = next.map(|next| next.thread()).filter(|thread| *thread != 0);
    let is_stranger = |own: &Record| own.kind() == Some(EventKind::Woken) && Some(own.thread()) != measured;
    records.retain(|own| !is_stranger(own));

    // The address of each timer's function: asking for a name is a system call.
    let mut functions: Vec<u64> = Vec::new();
    let mut before = due;
    // Records before a gap prove nothing.
    if whole {
        let on = timer_of(earlier.clone()).map(|on| Record { at: due, ..on });
        let was = measured.and_then(|thread| self::before(thread, due, earlier));
        records.splice(0..0, was.into_iter().chain(on));
    }
    for place in 0..records.len() {
        if records[place].kind() == Some(EventKind::Woken) {
            let waited = waited(&records, place);
            records[place] = Record::new(records[place].at, EventKind::Woken, waited, [0; 2]);
        }
    }
    // Timers of one function in a row have the time of one.
    records.dedup_by(|next, own| next.is_timer() && own.is_timer() && next.name[0] == own.name[0]);
    records.extend(next);
    let half = AT_EITHER_END;
    if records.len() > 2 * half {
        // Without them the others are still right: their time is that of their interrupts.
        records.retain(|own| !own.is_timer());
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
            (_, EventKind::Timer) => place(&mut functions, record.name[0]),
            (number, _) if kind.is_switch() => place(&mut trace.threads, spelled(number, record.name)),
            (number, _) => number,
        };
        trace.push(&mut before, record.at, kind, number);
    }
    trace.timers = functions.into_iter().map(|own| function(own).unwrap_or_default()).collect();
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

/// Its place among those that were there before.
fn place<T: PartialEq>(known: &mut Vec<T>, own: T) -> u64 {
    let place = known.iter().position(|known| *known == own).unwrap_or_else(|| {
        known.push(own);
        known.len() - 1
    });
    place as u64
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::EventKind::{
        InterruptBegins, InterruptEnds, Leaves, Preempted, Sleeps, SoftBegins, SoftEnds, Timer, VectorBegins,
        VectorEnds, Woken,
    };
    use super::*;

    fn record(at: u64, kind: EventKind, function: u64) -> Record {
        Record::new(at, kind, 0, [function, at])
    }

    fn called(function: u64) -> Option<String> {
        Some(["wakeup", "tick"].get(usize::try_from(function).ok()?.checked_sub(1)?)?.to_string())
    }

    fn events(records: Vec<Record>) -> Vec<(u64, EventKind, u64)> {
        told((0, u64::MAX), iter::empty(), records, None, true, called).events().collect()
    }

    #[test]
    fn the_measured_thread_is_the_one_that_leaves_next_and_its_wake_ups_alone_are_told() {
        let of = |at, kind, thread| Record::new(at, kind, thread, [0; 2]);
        let timer = |at, due| Record::new(at, Timer, 0, [1, due]);
        let own = vec![
            of(100, Sleeps, 7),
            of(150, Woken, 8),
            of(200, VectorBegins, 0),
            timer(201, 190),
            of(202, Woken, 8),
            timer(203, 140),
            of(204, Woken, 7),
            of(205, VectorEnds, 0),
            of(210, Preempted, 0),
        ];
        let earlier = vec![of(40, Preempted, 9), of(30, Woken, 7), of(20, Sleeps, 7)];
        let next = Some(of(400, Sleeps, 7));
        let trace = told((50, 300), earlier.clone().into_iter(), own.clone(), next, true, called);
        assert_eq!(
            trace.events().collect::<Vec<_>>(),
            [
                (0, Woken, 0),
                (50, Sleeps, 0),
                (150, VectorBegins, 0),
                (151, Timer, 0),
                (154, Woken, 64),
                (155, VectorEnds, 0),
                (160, Preempted, 1),
                (350, Sleeps, 0),
            ]
        );
        let nobody = told((50, 300), earlier.into_iter(), own, None, true, called);
        assert!(nobody.events().all(|(_, kind, _)| kind != Woken), "{nobody:?}");
    }

    #[test]
    fn the_timer_that_is_on_is_the_last_of_its_interrupt_that_was_called() {
        let on = |kinds: &[EventKind]| {
            let records = (1..).zip(kinds).map(|(at, kind)| record(at, *kind, at));
            timer_of(records.collect::<Vec<_>>().into_iter().rev()).map(|own| own.at)
        };
        assert_eq!(on(&[VectorBegins, Timer, Timer]), Some(3));
        assert_eq!(on(&[SoftBegins, Timer, InterruptBegins, InterruptEnds]), Some(2));
        assert_eq!(on(&[SoftBegins, Timer, VectorBegins, Timer, VectorEnds]), Some(2));
        assert_eq!(on(&[Timer, SoftBegins, VectorBegins, VectorEnds, SoftEnds]), Some(1));
        for none in [
            &[][..],
            &[VectorBegins, Timer, VectorEnds],
            &[SoftBegins, Timer, VectorBegins],
            &[SoftBegins, Timer, Leaves],
            &[Timer, EventKind::Lost],
            &[InterruptEnds],
        ] {
            assert_eq!(on(none), None, "{none:?}");
        }
    }

    #[test]
    fn timers_are_told_by_the_names_of_their_functions_and_several_of_one_in_a_row_as_one() {
        let own = [
            record(10, VectorBegins, 0),
            record(11, Timer, 2),
            record(12, Timer, 2),
            record(13, Timer, 1),
            record(14, Timer, 99),
            record(15, Timer, 2),
            record(16, VectorEnds, 0),
        ];
        let trace = told((10, 20), iter::empty(), own.to_vec(), None, true, called);
        assert_eq!(trace.timers, ["tick", "wakeup", ""]);
        let timers = trace.events().filter(|(_, kind, _)| *kind == Timer).map(|(at, _, place)| (at, place));
        assert_eq!(timers.collect::<Vec<_>>(), [(1, 0), (3, 1), (4, 2), (5, 0)]);
    }

    #[test]
    fn too_many_timers_are_part_of_their_interrupt() {
        let burst = |functions: u64| {
            let mut all = vec![record(90, VectorBegins, 0)];
            all.extend((0..3_000).map(|n| record(100 + n, Timer, 1 + n % functions)));
            all.push(record(4_000, VectorEnds, 0));
            events(all)
        };
        assert_eq!(burst(1), [(90, VectorBegins, 0), (100, Timer, 0), (4_000, VectorEnds, 0)]);
        assert_eq!(burst(2), [(90, VectorBegins, 0), (4_000, VectorEnds, 0)]);
    }
}
