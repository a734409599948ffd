//! The repeats of which a value is the median: batches of about a millisecond, so that reading the clock costs
//! less than a thousandth of one and a scheduler rarely finds the time to come in between.
//!
//! The items take turns, so that all of them have seen the same minute and each has a value from the beginning.

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

/// An item and what was measured of it.
struct Measured {
    item: &'static Item,
    /// The point, of a curve.
    at: Option<Point>,
    bench: Bench,
    repeats: Repeats,
    /// Whether the last one counts and it is not known yet whether it was stolen from.
    fresh: bool,
    /// Repeats that counted when it was said last.
    said: usize,
    /// The time that it has had so far, in ns.
    spent_ns: u64,
    /// It has failed, and is not tried again.
    given_up: bool,
}

/// Measures until it is told to finish, and says each tick, and at the end, what the values are.
pub fn run(entry: &dyn Measurement, place: &Place<'_>, pace: Pace, rounds: &AtomicU64) {
    let (mut all, finish) = (Vec::new(), place.finish);
    for (item, make) in entry.items().iter().filter(|(item, _)| entry.asks_for(item, place.measure)) {
        let made = make(place).and_then(|bench| Measured::new(item, None, bench));
        all.extend(made.map_err(|error| cannot(item, &error)).ok());
    }
    for (item, make) in entry.curves() {
        let points = |made: Vec<(Point, Bench)>| -> io::Result<Vec<Measured>> {
            made.into_iter().map(|(at, bench)| Measured::new(item, Some(at), bench)).collect()
        };
        all.extend(make(place).and_then(points).map_err(|error| cannot(item, &error)).unwrap_or_default());
    }
    let (items, why) = entry.elsewhere();
    if !items.is_empty() {
        let names: Vec<String> = items.iter().map(|item| format!("`{}`", item.name)).collect();
        tell_note(&Note::info(format!("{} {why}", names.join(", "))));
    }
    if all.is_empty() {
        over("none of its items can be measured here");
    }
    let mut tally = Tally::default();
    tally.begin();
    let (began, distance) = (sys::now(), pace.duration_ns / MOST);
    let mut watch = Watch::new(place.cpus.first().unwrap_or(0), began);
    let (mut due, mut tick) = (began, began + pace.tick_ns);
    while finish.load(Ordering::Relaxed) == 0 {
        for n in 0..all.len() {
            if finish.load(Ordering::Relaxed) != 0 {
                break;
            }
            let own = &mut all[n];
            if own.has_had_its_share(sys::now() - began) {
                continue;
            }
            match own.repeat() {
                Ok(()) => {}
                Err(_) if own.bench.long && finish.load(Ordering::Relaxed) != 0 => break,
                Err(error) if own.bench.long => own.give_up(&error),
                Err(error) => over(&format!("`{}`: {error}", own.name())),
            }
            if !watch.is_there() {
                own.drop_last();
            }
            if let Some(stolen) = watch.look(sys::now()) {
                all.iter_mut().for_each(|own| own.settle(stolen));
            }
            rounds.fetch_add(1, Ordering::Relaxed);
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
    nothings(&nothing).iter().for_each(tell_note);
}

/// Why items have no value, each reason once.
fn nothings(all: &[&Measured]) -> Vec<Note> {
    let (disturbed, late): (Vec<&Measured>, Vec<&Measured>) =
        all.iter().partition(|own| own.repeats.dropped > 0);
    let note = |of: &[&Measured], why: &str, hint: &str| {
        let names: Vec<String> = of.iter().map(|own| format!("`{}`", own.name())).collect();
        let have = if of.len() == 1 { "has" } else { "have" };
        (!of.is_empty()).then(|| Note::obstacle(format!("{} {have} no value: {why}", names.join(", ")), hint))
    };
    let disturbed = note(
        &disturbed,
        "something else had the CPU during each repeat",
        "give it a CPU without load, or `policy = \"fifo\"`",
    );
    let late = note(&late, "the measurement was over before its turn came", "measure longer");
    disturbed.into_iter().chain(late).collect()
}

fn cannot(item: &Item, error: &io::Error) {
    tell_note(&Note::obstacle(
        format!("`{}` cannot be measured here: {error}", item.name),
        "the other values are measured without it",
    ));
}

impl Measured {
    /// Finds the batch that takes as long as it should. That warms everything up, too.
    fn new(item: &'static Item, at: Option<Point>, mut bench: Bench) -> io::Result<Self> {
        let mut batch: u64 = 1;
        if bench.long {
            return Ok(Self::of(item, at, bench, batch));
        }
        let took = loop {
            bench.warm();
            let begin = sys::now();
            (bench.run)(batch)?;
            let took = sys::now() - begin;
            if took >= bench.batch_ns / 2 || batch >= MOST_IN_A_BATCH {
                break took;
            }
            batch *= 2;
        };
        let batch = (batch * bench.batch_ns / took.max(1)).max(1);
        (bench.run)(batch)?;
        Ok(Self::of(item, at, bench, batch))
    }

    fn of(item: &'static Item, at: Option<Point>, bench: Bench, batch: u64) -> Self {
        let repeats = Repeats { batch, ..Repeats::default() };
        Self { item, at, bench, repeats, fresh: false, said: 0, spent_ns: 0, given_up: false }
    }

    /// Whether it is the others' turn for now: what takes long has half of the time at most.
    const fn has_had_its_share(&self, elapsed_ns: u64) -> bool {
        self.bench.long && (self.given_up || self.spent_ns > elapsed_ns / 2)
    }

    fn give_up(&mut self, error: &io::Error) {
        cannot(self.item, error);
        self.given_up = true;
    }

    fn repeat(&mut self) -> io::Result<()> {
        let start = sys::now();
        self.bench.warm();
        // Reading what it has had is a hundredth of a short batch: it is not in the time that this took.
        let (had, begin) = (self.cpu_ns(), sys::now());
        let ns = (self.bench.run)(self.repeats.batch)?;
        let (took, had) = (sys::now() - begin, self.cpu_ns() - had);
        // It was found while something else had the CPU, or the processor has become faster: reading the clocks
        // would be too much of it.
        if !self.bench.long && took < self.bench.batch_ns / 2 && self.repeats.batch < MOST_IN_A_BATCH {
            self.repeats.batch *= 2;
            return Ok(());
        }
        let value = ns.and_then(|ns| self.bench.of.value(self.item.unit, self.repeats.batch, ns));
        let value = value.filter(|_| !was_disturbed(took, had, self.bench.taken));
        match value {
            Some(value) => self.repeats.kept.push(value),
            None => self.repeats.dropped += 1,
        }
        // Of seconds a hundredth that was stolen is nothing: what had the CPU meanwhile has been looked at.
        self.fresh = value.is_some() && !self.bench.long;
        let now = sys::now();
        self.spent_ns += now - start;
        sys::sleep_until(now + (now - start) / REST);
        Ok(())
    }

    /// Leaves out the last repeat after all.
    fn drop_last(&mut self) {
        if std::mem::take(&mut self.fresh) {
            self.repeats.kept.pop();
            self.repeats.dropped += 1;
        }
    }

    /// What was measured since the last look was stolen from, or not.
    fn settle(&mut self, stolen: bool) {
        if stolen {
            self.drop_last();
        }
        self.fresh = false;
    }

    /// CPU time that the item has had so far, in ns.
    fn cpu_ns(&self) -> u64 {
        let partners: u64 = self.bench.partners.iter().copied().map(sys::time_of).sum();
        sys::own_time() + sys::children_time() + partners
    }

    fn name(&self) -> String {
        self.at.map_or_else(|| self.item.name.to_owned(), |at| format!("{}, {at}", self.item.name))
    }

    /// Whether there are half as many repeats again as when it was said last: the fewer there are the more a further one
    /// changes, and a hundred points would fill a serial line.
    const fn has_more_to_say(&self) -> bool {
        self.said == 0 || self.repeats.kept.len() >= self.said + self.said.div_ceil(2)
    }

    fn say(&mut self) {
        // It orders them: none is the last any more.
        self.fresh = false;
        if let Some(value) = ValueResult::of(self.item, &mut self.repeats) {
            self.said = self.repeats.kept.len();
            tell_value(&ValueResult { at: self.at, ..value });
        }
    }
}

/// Whether something else had the CPU for more than one part in `taken` of a batch that took so many ns, of which it had
/// the CPU for `had`.
pub const fn was_disturbed(took: u64, had: u64, taken: u64) -> bool {
    took.saturating_sub(had) > took / taken
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_batch_takes_about_as_long_as_it_should_whatever_the_operation_takes() {
        let measured = Measured::new(&SYSTEM_CALL, None, bench(|batch| Ok(busy(batch)))).unwrap();
        // Whatever was in between made it smaller, never larger.
        assert!((1..=1_100).contains(&measured.repeats.batch), "{}", measured.repeats.batch);
        let long = bench(|_| Ok(busy(3_000)));
        assert_eq!(Measured::new(&SYSTEM_CALL, None, long).unwrap().repeats.batch, 1);
    }

    #[test]
    fn a_batch_of_what_gives_the_cpu_away_is_as_short_as_it_can_be() {
        let forks = |batch_ns| Bench { batch_ns, ..bench(|batch| Ok(busy(100 * batch))) };
        assert_eq!(Measured::new(&SYSTEM_CALL, None, forks(SHORT_BATCH_NS)).unwrap().repeats.batch, 1);
    }

    #[test]
    fn a_batch_that_was_found_while_others_had_the_cpu_grows() {
        let mut runs = 0;
        let at_first_without_the_cpu = bench(move |batch| {
            runs += 1;
            if runs <= 2 {
                sys::sleep_until(sys::now() + BATCH_NS);
            }
            Ok(busy(batch))
        });
        let mut measured = Measured::new(&SYSTEM_CALL, None, at_first_without_the_cpu).unwrap();
        assert_eq!(measured.repeats.batch, 1);
        // However busy the machine is: those that are too short do not count.
        let grown = |measured: &mut Measured| {
            measured.repeat().unwrap();
            measured.repeats.batch >= 256
        };
        assert!((0..10_000).any(|_| grown(&mut measured)));
        assert!(measured.repeats.kept.is_empty(), "{:?}", measured.repeats);
    }

    #[test]
    fn a_repeat_without_the_cpu_is_dropped_and_counted() {
        let sleeps = bench(|_| {
            sys::sleep_until(sys::now() + 2 * BATCH_NS);
            Ok(2 * BATCH_NS)
        });
        let mut measured = Measured::new(&SYSTEM_CALL, None, sleeps).unwrap();
        measured.repeat().unwrap();
        assert_eq!((measured.repeats.kept.len(), measured.repeats.dropped), (0, 1));
    }

    #[test]
    fn items_without_a_value_are_named_together_once_for_each_reason() {
        let item = |dropped| {
            let mut measured = Measured::new(&SYSTEM_CALL, None, bench(|batch| Ok(busy(batch)))).unwrap();
            measured.repeats.dropped = dropped;
            measured
        };
        let (one, other, late) = (item(3), item(5), item(0));
        let texts =
            |all: &[&Measured]| -> Vec<String> { nothings(all).into_iter().map(|note| note.text).collect() };
        assert_eq!(
            texts(&[&one, &late, &other]),
            [
                "`system call`, `system call` have no value: something else had the CPU during each repeat",
                "`system call` has no value: the measurement was over before its turn came",
            ]
        );
        assert!(texts(&[]).is_empty());
    }

    #[test]
    fn a_repeat_that_a_hypervisor_stole_from_is_dropped_once_and_one_that_is_settled_stays() {
        let mut measured = Measured::new(&SYSTEM_CALL, None, bench(|batch| Ok(busy(batch)))).unwrap();
        measured.repeats = Repeats { kept: vec![3.0, 1.0], dropped: 0, batch: 1 };
        measured.fresh = true;
        measured.settle(true);
        measured.settle(true);
        assert_eq!((measured.repeats.kept.as_slice(), measured.repeats.dropped), (&[3.0][..], 1));
        measured.fresh = true;
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
        let mut measured = Measured::new(&SYSTEM_CALL, None, long).unwrap();
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
    fn an_operation_that_fails_ends_its_item() {
        let fails = bench(|_| Err(io::ErrorKind::ConnectionRefused.into()));
        assert!(Measured::new(&SYSTEM_CALL, None, fails).is_err());
    }
}
