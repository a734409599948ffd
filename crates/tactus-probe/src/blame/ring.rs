//! Reads the records of a window of time that the programs wrote for a CPU, while they keep writing.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use tactus_model::trace::Trace;

use super::program::{HEAD, RECORD};
use super::record::{Record, spelled, told};

/// Records that may be half written, or out of their order in time: what interrupts a program writes a later place at an
/// earlier time.
const UNSETTLED: u64 = 8;

/// The ring of a CPU.
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    words: &'a [AtomicU64],
    records: u64,
}

impl<'a> Ring<'a> {
    /// A ring over these words of memory.
    pub fn new(words: &'a [AtomicU64]) -> Self {
        let records = (words.len().saturating_sub(HEAD) / RECORD) as u64;
        Self { words, records }
    }

    /// How many records were begun.
    fn begun(self) -> u64 {
        self.words[0].load(Ordering::Acquire)
    }

    fn record(self, number: u64) -> Record {
        #[expect(clippy::cast_possible_truncation, reason = "it is less than the number of the ring's words")]
        let at = HEAD + (number % self.records) as usize * RECORD;
        let word = |n: usize| self.words[at + n].load(Ordering::Relaxed);
        Record { at: word(0), what: word(1), name: [word(2), word(3)] }
    }

    /// The events between two moments of CLOCK_MONOTONIC, in ns. Call it at least some ms after the later moment:
    /// records begun then are complete. `function`: the name of a function by its address.
    pub fn between(self, due: u64, seen: u64, function: impl Fn(u64) -> Option<String>) -> Trace {
        let (records, whole) = self.records(due, seen);
        told((due, seen), self.before(due), records, self.next(seen), whole, function)
    }

    /// The first number of a record that still exists after `begun` records were begun.
    fn kept(self, begun: u64) -> u64 {
        begun.saturating_sub(self.records.saturating_sub(UNSETTLED))
    }

    /// The first number from `kept` on of a record that is no earlier than a moment.
    fn first(self, kept: u64, head: u64, at: u64) -> u64 {
        // By halves: to read a record takes its line from the CPU that writes it.
        let (mut low, mut high) = (kept, head);
        while low < high {
            let middle = low.midpoint(high);
            match self.record(middle).at < at {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The records before a moment, the last of them first, as far as they are still there.
    fn before(self, at: u64) -> impl Iterator<Item = Record> + Clone {
        let head = self.begun();
        let kept = self.kept(head);
        (kept..self.first(kept, head, at)).rev().map_while(move |number| {
            let record = self.record(number);
            fence(Ordering::Acquire);
            (number >= self.kept(self.begun())).then_some(record)
        })
    }

    /// The first thread to leave the CPU after a moment; `None`: none has left, or its record no longer exists.
    fn next(self, seen: u64) -> Option<Record> {
        let head = self.begun();
        let kept = self.kept(head);
        let from = self.first(kept, head, seen).saturating_sub(UNSETTLED).max(kept);
        let mut later = (from..head).map(|number| (number, self.record(number)));
        let (number, next) = later.find(|(_, record)| record.at > seen && record.is_switch())?;
        fence(Ordering::Acquire);
        (from > kept && number >= self.kept(self.begun()) || kept == 0).then_some(next)
    }

    /// The records of that time, in its order, and whether none of them is missing.
    pub fn records(self, due: u64, seen: u64) -> (Vec<Record>, bool) {
        let head = self.begun();
        let kept = self.kept(head);
        let low = self.first(kept, head, due);
        let first = low.saturating_sub(UNSETTLED).max(kept);
        let mut after = 0;
        let mut found: Vec<(u64, Record)> = Vec::new();
        for number in first..head {
            let record = self.record(number);
            if record.at > seen {
                after += 1;
            } else if record.at >= due {
                // An interrupt during a program wrote a later record with an earlier time.
                let place = found.iter().rposition(|(_, own)| own.at <= record.at);
                found.insert(place.map_or(0, |place| place + 1), (number, record));
            }
            if after > UNSETTLED {
                break;
            }
        }
        fence(Ordering::Acquire);
        let lost = self.kept(self.begun());
        found.retain(|(number, _)| *number >= lost);
        // Nothing is missing where a record from before it is still there, or none was written over yet.
        let whole = lost == 0 || (first >= lost && first < low);
        (found.into_iter().map(|(_, record)| record).collect(), whole)
    }
}

/// A time in which others had a CPU, until the thread that is asked for came to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// When it came to it, CLOCK_MONOTONIC in ns.
    pub until: u64,
    /// For how long others had it before, in ns.
    pub ns: u64,
    /// The thread that had it longest meanwhile, as `NUMBER NAME`.
    pub by: String,
}

impl Ring<'_> {
    /// The longest time, up to `most` ns, during which other threads had the CPU before `thread` got it, of those that
    /// ended between two moments. The thread may still have the CPU; a time without a record of its end belongs to an
    /// unknown thread.
    pub fn kept_from(self, thread: u64, most: u64, from: u64, until: u64) -> Option<Kept> {
        let start = from.saturating_sub(most);
        let (records, whole) = self.records(start, until);
        // A record ends the time of the thread that leaves, which began with the record before it; the first one began
        // before them all.
        let start = if whole { start } else { records.first()?.at };
        let began = |place: usize| if place == 0 { start } else { records[place - 1].at };
        let comes = (0..records.len()).filter(|place| records[*place].thread() == thread).map(began);
        let comes = comes.chain(records.last().map(|last| last.at)).filter(|at| *at >= from);
        comes.filter_map(|at| before(&records, start, thread, at, most)).max_by_key(|kept| kept.ns)
    }
}

/// The threads that had the CPU before this moment, back to when it was idle or `thread` had it.
fn before(records: &[Record], start: u64, thread: u64, until: u64, most: u64) -> Option<Kept> {
    let earliest = until.saturating_sub(most);
    let mut by: Vec<(Record, u64)> = Vec::new();
    for (place, record) in records.iter().enumerate().rev().filter(|(_, record)| record.at <= until) {
        let began = if place == 0 { start } else { records[place - 1].at };
        if record.thread() == 0 || record.thread() == thread || record.at <= earliest {
            break;
        }
        let ns = record.at.saturating_sub(began.max(earliest));
        match by.iter_mut().find(|(own, _)| own.thread() == record.thread()) {
            Some((_, all)) => *all += ns,
            None => by.push((*record, ns)),
        }
    }
    let ns = by.iter().map(|(_, ns)| ns).sum();
    let (longest, _) = by.into_iter().max_by_key(|(_, ns)| *ns)?;
    Some(Kept { until, ns, by: spelled(longest.thread(), longest.name) })
}

#[cfg(test)]
mod tests {
    use tactus_model::trace::{EventKind, MOST_EVENTS};

    use super::super::program::NUMBER_SHIFT;
    use super::*;

    fn memory(records: usize) -> Vec<AtomicU64> {
        (0..HEAD + records * RECORD).map(|_| AtomicU64::new(0)).collect()
    }

    fn write(words: &[AtomicU64], at: u64, kind: EventKind, number: u64) {
        let begun = words[0].fetch_add(1, Ordering::Relaxed);
        let records = ((words.len() - HEAD) / RECORD) as u64;
        let place = HEAD + usize::try_from(begun % records).unwrap() * RECORD;
        words[place].store(at, Ordering::Relaxed);
        words[place + 1].store(number << NUMBER_SHIFT | kind as u64, Ordering::Relaxed);
        words[place + 2].store(u64::from_ne_bytes(*b"hog\0rest"), Ordering::Relaxed);
    }

    fn events(trace: &Trace) -> Vec<(u64, EventKind, u64)> {
        trace.events().collect()
    }

    #[test]
    fn the_events_of_a_window_are_told_from_its_beginning_and_threads_by_number_and_name() {
        let words = memory(64);
        for at in [100, 200, 300, 400] {
            write(&words, at, EventKind::Leaves, at);
        }
        write(&words, 350, EventKind::InterruptBegins, 29);
        let trace = Ring::new(&words).between(200, 380, |_| None);
        // The last record shows who has the CPU at the end of the window.
        let told = [
            (0, EventKind::Leaves, 0),
            (100, EventKind::Leaves, 1),
            (150, EventKind::InterruptBegins, 29),
            (200, EventKind::Leaves, 2),
        ];
        assert_eq!(events(&trace), told);
        assert_eq!(trace.threads, ["200 hog", "300 hog", "400 hog"]);
        assert!(Ring::new(&words).between(500, 600, |_| None).events.is_empty());
    }

    #[test]
    fn what_was_written_over_is_said_to_be_lost() {
        let words = memory(64);
        (1..=1_000).for_each(|at| write(&words, at * 10, EventKind::SoftBegins, 3));
        let ring = Ring::new(&words);
        let gone = ring.between(100, 200, |_| None);
        assert_eq!(events(&gone), [(100, EventKind::Lost, 0)]);
        let begun = events(&ring.between(9_000, 9_500, |_| None));
        assert_eq!(begun[0].1, EventKind::Lost);
        assert!(begun[0].0 > 0 && begun.len() > 1 && begun.last().unwrap().0 == 500);
        let whole = events(&ring.between(9_900, 9_950, |_| None));
        assert!(
            whole.len() == 6 && whole.iter().all(|(_, kind, _)| *kind == EventKind::SoftBegins),
            "{whole:?}"
        );
    }

    #[test]
    fn of_too_many_the_first_and_the_last_are_kept() {
        let words = memory(4_096);
        (1..=3_000).for_each(|at| write(&words, at * 10, EventKind::InterruptEnds, at));
        let told = events(&Ring::new(&words).between(10, 30_000, |_| None));
        assert!(told.len() <= MOST_EVENTS && told[0].2 == 1 && told.last().unwrap().2 == 3_000);
        assert_eq!(told.iter().filter(|(_, kind, _)| *kind == EventKind::Lost).count(), 1);
    }

    #[test]
    fn a_timer_that_was_on_before_the_window_is_told_from_its_beginning() {
        let function = |word| (word == u64::from_ne_bytes(*b"hog\0rest")).then(|| "wakeup".to_owned());
        let words = memory(64);
        let told = || Ring::new(&words).between(500, 900, function);
        write(&words, 300, EventKind::Timer, 0);
        write(&words, 400, EventKind::SoftBegins, 3);
        write(&words, 450, EventKind::SoftEnds, 3);
        write(&words, 600, EventKind::VectorEnds, 0);
        assert_eq!(events(&told()), [(0, EventKind::Timer, 0), (100, EventKind::VectorEnds, 0)]);
        assert_eq!(told().timers, ["wakeup"]);
        // Once it has been written over nothing is known of it.
        (0..52).for_each(|_| write(&words, 1_000, EventKind::SoftBegins, 3));
        assert_eq!(told().timers, ["wakeup"]);
        (0..1).for_each(|_| write(&words, 1_000, EventKind::SoftBegins, 3));
        assert!(told().timers.is_empty());
    }

    #[test]
    fn who_had_the_cpu_until_a_thread_came_to_it_is_told_and_for_how_long() {
        let words = memory(64);
        // 7 has it until 100; then 8 until 400, 9 until 450; 7 again until 500, idle until 900, 7 until 910, 8 until
        // 920.
        for (at, thread) in [(100, 7), (400, 8), (450, 9), (500, 7), (900, 0), (910, 7), (920, 8)] {
            write(&words, at, EventKind::Preempted, thread);
        }
        let ring = Ring::new(&words);
        let told = |most, from, until| ring.kept_from(7, most, from, until);
        let kept = Kept { until: 450, ns: 350, by: "8 hog".into() };
        assert_eq!(told(10_000, 50, 2_000), Some(kept.clone()));
        assert_eq!(
            told(120, 50, 2_000),
            Some(Kept { ns: 120, ..kept }),
            "no more than it is said to have waited"
        );
        assert_eq!(told(60, 50, 460).map(|kept| kept.by), Some("9 hog".into()));
        // After the last record it has the CPU, as far as is known.
        assert_eq!(told(10_000, 915, 2_000), Some(Kept { until: 920, ns: 10, by: "8 hog".into() }));
        // The thread that had it since before the examined time.
        assert_eq!(told(150, 350, 410), Some(Kept { until: 400, ns: 150, by: "8 hog".into() }));
        assert_eq!(told(10_000, 3_000, 4_000), None);
        assert_eq!(Ring::new(&memory(16)).kept_from(7, u64::MAX, 0, u64::MAX), None);
    }

    #[test]
    fn no_memory_and_nonsense_in_it_are_no_panic() {
        let words = memory(16);
        for word in &words {
            word.store(u64::MAX, Ordering::Relaxed);
        }
        let _ = Ring::new(&words).between(0, u64::MAX, |_| None);
        let _ = Ring::new(&words).kept_from(u64::MAX >> 8, u64::MAX, 0, u64::MAX);
        words[0].store(3, Ordering::Relaxed);
        assert!(
            Ring::new(&words)
                .between(0, u64::MAX, |_| None)
                .events()
                .all(|(_, kind, _)| kind == EventKind::Lost)
        );
    }
}
