//! The repeats of a value, which is their median: batches of about a millisecond. Reading the clock then costs less
//! than a thousandth of a batch, and a scheduler rarely interrupts one.
//!
//! The items take turns, so that all of them are measured over the same time and each has a value from the beginning.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::catalogue::Item;
use tactus_model::message::Note;
use tactus_model::outcome::{Point, Repeats, ValueResult};

use super::disturbance::Watch;
use super::{Bench, Measurement, Place};
use crate::breakdown::Tally;
use crate::sys;
use crate::work::{Pace, over, tell_note, tell_value};

/// How often it is looked whether it is to finish, in ns.
const LOOK_NS: u64 = 10_000_000;
/// Part of its time that a batch is followed by rest: real-time scheduling must leave something to others.
const REST: u64 = 9;
/// The most operations of a batch.
const MOST_IN_A_BATCH: u64 = 1 << 30;
/// The most repeats of an item; where there would be more, they keep a distance.
const MOST: u64 = 100_000;

/// An item and its repeats.
struct Measured {
    item: &'static Item,
    /// The point, of a curve.
    at: Option<Point>,
    bench: Bench,
    repeats: Repeats,
    /// The last repeats of this number count, but it is still unknown whether they were disturbed.
    fresh: usize,
    /// Repeats that counted when it was said last.
    said: usize,
    /// The time that it has had so far, in ns.
    spent_ns: u64,
    /// It has failed, and is not tried again.
    given_up: bool,
}

/// Measures until it is told to finish, and reports the values at each tick and at the end.
pub fn run(entry: &dyn Measurement, place: &Place<'_>, pace: Pace, rounds: &AtomicU64) {
    let (mut all, finish) = (Vec::new(), place.finish);
    for (item, make) in entry.items().iter().filter(|(item, _)| entry.asks_for(item, place.measure)) {
        let made = make(place).map(|bench| Measured::new(item, None, bench));
        all.extend(made.map_err(|error| cannot(item.name, &error)).ok());
    }
    for (item, make) in entry.curves() {
        let points = make(place).map_err(|error| cannot(item.name, &error)).unwrap_or_default();
        all.extend(points.into_iter().map(|(at, bench)| Measured::new(item, Some(at), bench)));
    }
    let (items, why) = entry.elsewhere();
    if !items.is_empty() {
        let names: Vec<String> = items.iter().map(|item| format!("`{}`", item.name)).collect();
        tell_note(&Note::info(format!("{} {why}", names.join(", "))));
    }
    let mut tally = Tally::default();
    tally.begin();
    let (began, distance) = (sys::now(), pace.duration_ns / MOST);
    let mut watch = Watch::new(place.cpus.first().unwrap_or(0), began);
    let (mut due, mut tick) = (began, began + pace.tick_ns);
    while finish.load(Ordering::Relaxed) == 0 {
        if all.iter().all(|own| own.given_up) {
            over("none of its items can be measured here");
        }
        for n in 0..all.len() {
            if finish.load(Ordering::Relaxed) != 0 {
                break;
            }
            let own = &mut all[n];
            if own.has_had_its_share(sys::now() - began) {
                continue;
            }
            let start = sys::now();
            match own.repeat() {
                Ok(true) if !watch.is_there() => own.drop_last(),
                Ok(_) => {}
                Err(_) if own.bench.long && finish.load(Ordering::Relaxed) != 0 => break,
                Err(error) if own.bench.long || own.is_new() => own.give_up(&error),
                Err(error) => over(&format!("`{}`: {error}", own.name())),
            }
            // Before the rest: the clock with which a processor wakes up is not that with which it worked.
            let now = sys::now();
            if let Some(disturbed) = watch.look(now) {
                all.iter_mut().for_each(|own| own.settle(disturbed));
            }
            rounds.fetch_add(1, Ordering::Relaxed);
            sys::sleep_until(now + (now - start) / REST);
        }
        let now = sys::now();
        if now >= tick {
            all.iter_mut().filter(|own| own.has_more_to_say()).for_each(Measured::say);
            tick = now + pace.tick_ns;
        }
        due = now.max(due + distance);
        // Never long: it may be told to finish.
        while sys::now() < due && finish.load(Ordering::Relaxed) == 0 {
            sys::sleep_until(due.min(sys::now() + LOOK_NS));
        }
    }
    tally.halt();
    all.iter_mut().for_each(Measured::say);
    tally.end(None);
    tally.say();
    let nothing: Vec<&Measured> =
        all.iter().filter(|own| own.repeats.kept.is_empty() && !own.given_up).collect();
    nothings(&nothing).iter().chain(&watch.note()).for_each(tell_note);
}

/// Why items have no value, each reason once.
fn nothings(all: &[&Measured]) -> Vec<Note> {
    let (disturbed, late): (Vec<&Measured>, Vec<&Measured>) =
        all.iter().partition(|own| own.repeats.dropped > 0);
    let note = |of: &[&Measured], why: &str, hint: &str| {
        let have = if of.len() == 1 { "has" } else { "have" };
        (!of.is_empty()).then(|| Note::obstacle(format!("{} {have} no value: {why}", names(of)), hint))
    };
    let disturbed = note(
        &disturbed,
        "each repeat was disturbed: something else had the CPU, or its clock changed",
        "give it a CPU without load, or `policy = \"fifo\"`, or measure longer",
    );
    let late = note(
        &late,
        "the measurement ended before its turn",
        "measure longer or, beside other work, with `policy = \"fifo\"`",
    );
    disturbed.into_iter().chain(late).collect()
}

/// Items, and how many points of those that are curves.
fn names(all: &[&Measured]) -> String {
    let mut names: Vec<String> = Vec::new();
    for of in all.chunk_by(|a, b| a.at.is_some() && a.item.name == b.item.name) {
        names.push(match of {
            [one] => format!("`{}`", one.name()),
            several => format!("`{}` at {} points", several[0].item.name, several.len()),
        });
    }
    names.join(", ")
}

fn cannot(name: &str, error: &io::Error) {
    tell_note(&Note::obstacle(
        format!("`{name}` cannot be measured here: {error}"),
        "the other values are measured without it",
    ));
}

impl Measured {
    const fn new(item: &'static Item, at: Option<Point>, bench: Bench) -> Self {
        let repeats = Repeats { kept: Vec::new(), dropped: 0, batch: 1 };
        Self { item, at, bench, repeats, fresh: 0, said: 0, spent_ns: 0, given_up: false }
    }

    /// Whether it has not had a turn.
    const fn is_new(&self) -> bool {
        self.repeats.kept.is_empty() && self.repeats.dropped == 0
    }

    /// Whether the other items have their turn now: a long item gets at most half of the time.
    const fn has_had_its_share(&self, elapsed_ns: u64) -> bool {
        self.given_up || self.bench.long && self.spent_ns > elapsed_ns / 2
    }

    fn give_up(&mut self, error: &io::Error) {
        cannot(&self.name(), error);
        self.given_up = true;
    }

    /// A batch that is long enough, which is found at the first turn. Whether it is kept.
    fn repeat(&mut self) -> io::Result<bool> {
        let start = sys::now();
        if self.is_new() && !self.bench.long {
            // The operation runs once before: a batch of one operation would otherwise include first-time costs in its
            // first repeat.
            (self.bench.run)(1)?;
        }
        self.bench.warm();
        let (ns, took, had) = loop {
            // Reading the CPU time takes a hundredth of a short batch: it is not in `took`.
            let (had, begin) = (self.cpu_ns(), sys::now());
            let ns = (self.bench.run)(self.repeats.batch)?;
            let (took, had) = (sys::now() - begin, self.cpu_ns() - had);
            if self.bench.long || self.repeats.batch >= MOST_IN_A_BATCH || self.bench.is_enough(took, had) {
                break (ns, took, had);
            }
            self.repeats.batch *= 2;
        };
        let value = ns.and_then(|ns| self.bench.of.value(self.item.unit, self.repeats.batch, ns));
        let value = value.filter(|_| !was_disturbed(took, had, self.bench.taken));
        match value {
            Some(value) => self.repeats.kept.push(value),
            None => self.repeats.dropped += 1,
        }
        // Stolen time of a hundredth of a second does not matter to an operation of seconds; other tasks on the CPU
        // have been checked for.
        self.fresh += usize::from(value.is_some() && !self.bench.long);
        self.spent_ns += sys::now() - start;
        Ok(value.is_some())
    }

    /// Leaves out the last repeat after all.
    fn drop_last(&mut self) {
        if self.fresh > 0 {
            self.fresh -= 1;
            self.repeats.kept.pop();
            self.repeats.dropped += 1;
        }
    }

    /// Records whether the repeats since the last check were disturbed.
    fn settle(&mut self, disturbed: bool) {
        while disturbed && self.fresh > 0 {
            self.drop_last();
        }
        self.fresh = 0;
    }

    /// CPU time that the item has had so far, in ns.
    fn cpu_ns(&self) -> u64 {
        let partners: u64 = self.bench.partners.iter().copied().map(sys::time_of).sum();
        sys::own_time() + sys::children_time() + partners
    }

    fn name(&self) -> String {
        self.at.map_or_else(|| self.item.name.to_owned(), |at| format!("{}, {at}", self.item.name))
    }

    /// Whether the number of repeats has grown by half since the last report: the fewer there are, the more a further
    /// one changes the value. More frequent reports of a hundred points would fill a serial line.
    const fn has_more_to_say(&self) -> bool {
        self.said == 0 || self.repeats.kept.len() >= self.said + self.said.div_ceil(2)
    }

    fn say(&mut self) {
        // Reporting sorts the repeats, so the last one is no longer known.
        self.fresh = 0;
        if let Some(value) = ValueResult::of(self.item, &mut self.repeats) {
            self.said = self.repeats.kept.len();
            tell_value(&ValueResult { at: self.at, ..value });
        }
    }
}

/// Whether other tasks had the CPU for more than one part in `taken` of a batch that took `took` ns and had the CPU for
/// `had`.
pub const fn was_disturbed(took: u64, had: u64, taken: u64) -> bool {
    took.saturating_sub(had) > took / taken
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::super::{BATCH_NS, SHORT_BATCH_NS};
    use super::*;
    use tactus_model::catalogue::measure::os::SYSTEM_CALL;

    /// An operation that has the CPU for about a microsecond.
    fn busy(batch: u64) -> u64 {
        let begin = sys::now();
        while sys::now() < begin + batch * 1_000 {
            std::hint::spin_loop();
        }
        sys::now() - begin
    }

    fn bench(run: impl FnMut(u64) -> io::Result<u64> + 'static) -> Bench {
        super::super::alone(run)
    }

    fn measured(run: impl FnMut(u64) -> io::Result<u64> + 'static) -> Measured {
        Measured::new(&SYSTEM_CALL, None, bench(run))
    }

    #[test]
    fn a_batch_takes_about_as_long_as_it_should_whatever_the_operation_takes() {
        let mut short = measured(|batch| Ok(busy(batch)));
        short.repeat().unwrap();
        // Microseconds: at least a half of a thousand of them, and less where others had the CPU for long.
        assert!((1..=1_024).contains(&short.repeats.batch), "{}", short.repeats.batch);
        let mut long = measured(|_| Ok(busy(3_000)));
        long.repeat().unwrap();
        assert_eq!(long.repeats.batch, 1);
    }

    #[test]
    fn a_batch_of_what_gives_the_cpu_away_is_as_short_as_it_can_be() {
        let forks = Bench { batch_ns: SHORT_BATCH_NS, ..bench(|batch| Ok(busy(100 * batch))) };
        let mut forks = Measured::new(&SYSTEM_CALL, None, forks);
        forks.repeat().unwrap();
        assert_eq!(forks.repeats.batch, 1);
    }

    #[test]
    fn the_batch_that_is_found_is_the_first_repeat() {
        let calls = Rc::new(Cell::new(0));
        let counted = Rc::clone(&calls);
        let mut found = measured(move |batch| {
            counted.set(counted.get() + batch);
            Ok(busy(batch))
        });
        found.repeat().unwrap();
        let Repeats { kept, dropped, batch } = &found.repeats;
        assert_eq!(kept.len() as u64 + dropped, 1, "{:?}", found.repeats);
        assert_eq!(calls.get(), 2 * batch, "1 + 2 + 4 + ... and one before them");
        let (batch, before) = (*batch, calls.get());
        found.repeat().unwrap();
        // Beside other work it may be doubled once more.
        assert!((calls.get() - before).is_multiple_of(batch), "it is warm");
    }

    #[test]
    fn a_batch_grows_by_the_time_that_it_had_the_cpu_and_not_by_what_others_had_it() {
        let mut runs = 0;
        let mut at_first_without_the_cpu = measured(move |batch| {
            runs += 1;
            if runs <= 3 {
                sys::sleep_until(sys::now() + BATCH_NS);
            }
            Ok(busy(batch))
        });
        at_first_without_the_cpu.repeat().unwrap();
        assert!(at_first_without_the_cpu.repeats.batch > 4, "{:?}", at_first_without_the_cpu.repeats);
    }

    #[test]
    fn a_repeat_without_the_cpu_is_dropped_and_counted() {
        let sleeps = bench(|_| {
            sys::sleep_until(sys::now() + 2 * BATCH_NS);
            Ok(2 * BATCH_NS)
        });
        let mut measured = Measured::new(&SYSTEM_CALL, None, sleeps);
        measured.repeats.batch = MOST_IN_A_BATCH;
        assert!(!measured.repeat().unwrap());
        assert_eq!((measured.repeats.kept.len(), measured.repeats.dropped), (0, 1));
    }

    #[test]
    fn items_without_a_value_are_named_together_once_for_each_reason() {
        let item = |dropped, at: Option<u64>| {
            let mut measured =
                Measured::new(&SYSTEM_CALL, at.map(Point::Bytes), bench(|batch| Ok(busy(batch))));
            measured.repeats.dropped = dropped;
            measured
        };
        let (one, other, late) = (item(3, None), item(5, None), item(0, None));
        let texts =
            |all: &[&Measured]| -> Vec<String> { nothings(all).into_iter().map(|note| note.text).collect() };
        assert_eq!(
            texts(&[&one, &late, &other]),
            [
                "`system call`, `system call` have no value: each repeat was disturbed: something else had the CPU, or its \
                 clock changed",
                "`system call` has no value: the measurement ended before its turn",
            ]
        );
        assert!(texts(&[]).is_empty());
        let curve: Vec<Measured> = (10..28).map(|power| item(0, Some(1 << power))).collect();
        assert_eq!(
            texts(&curve.iter().collect::<Vec<_>>()),
            ["`system call` at 18 points have no value: the measurement ended before its turn"]
        );
        assert!(texts(&[&curve[2]])[0].starts_with("`system call, 4KiB` has no value"));
    }

    #[test]
    fn a_repeat_that_was_stolen_from_or_saw_another_clock_is_dropped_once_and_one_that_is_settled_stays() {
        let mut measured = measured(|batch| Ok(busy(batch)));
        measured.repeats = Repeats { kept: vec![3.0, 1.0, 2.0], dropped: 0, batch: 1 };
        measured.fresh = 2;
        measured.settle(true);
        measured.settle(true);
        assert_eq!((measured.repeats.kept.as_slice(), measured.repeats.dropped), (&[3.0][..], 2));
        measured.fresh = 1;
        measured.settle(false);
        measured.drop_last();
        assert_eq!(measured.repeats.kept, [3.0]);
    }

    #[test]
    fn what_takes_seconds_has_half_of_the_time_and_no_warming_up_and_is_not_tried_again_when_it_has_failed() {
        let mut runs = 0;
        let run = bench(move |_| {
            runs += 1;
            if runs == 2 { Err(io::ErrorKind::InvalidData.into()) } else { Ok(busy(1)) }
        });
        let long = Bench { long: true, of: super::super::Operation::Said, taken: 1, ..run };
        let mut measured = Measured::new(&SYSTEM_CALL, None, long);
        assert!(!measured.has_had_its_share(0), "it begins at once");
        measured.repeat().unwrap();
        assert_eq!((measured.repeats.kept.len(), measured.repeats.batch), (1, 1));
        assert!(
            measured.has_had_its_share(measured.spent_ns)
                && !measured.has_had_its_share(2 * measured.spent_ns)
        );
        let error = measured.repeat().unwrap_err();
        measured.give_up(&error);
        assert!(measured.has_had_its_share(u64::MAX));
    }

    #[test]
    fn an_operation_that_fails_at_its_first_turn_ends_its_item_and_not_the_others() {
        let mut fails = measured(|_| Err(io::ErrorKind::ConnectionRefused.into()));
        assert!(fails.repeat().is_err() && fails.is_new());
        fails.give_up(&io::ErrorKind::ConnectionRefused.into());
        assert!(fails.has_had_its_share(0) && !measured(|batch| Ok(busy(batch))).has_had_its_share(0));
    }
}
