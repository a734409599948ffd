//! Messages of an environment that have arrived and wait to be handled.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tactus_model::message::{FromProbe, Outlier};
use tactus_model::outcome::breakdown::Breakdown;
use tactus_model::trace::Trace;
use tactus_model::wire::Item;

/// Most bytes of memory that what waits of one environment takes. Eight series that say 20 KB a second each come here in
/// two minutes while the disk takes nothing; then they wait in the probe, which keeps four seconds more.
const MOST: usize = 16 << 20;
/// The size of an item beside its contents, in bytes.
const ITEM: usize = size_of::<Item<FromProbe>>();
/// The size of an entry of a list beside its text, in bytes.
const ENTRY: usize = 64;

/// The bytes that wait. The reader waits for room, so that the sender has to wait, too.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    closed: bool,
}

/// The part of a backlog that one item takes until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<Backlog>,
    bytes: usize,
}

impl Backlog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for some bytes; a message larger than the whole room waits until it is the only one.
    /// `None`: the receiver has closed.
    pub fn wait_for(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let full = |state: &mut State| {
            !state.closed && state.waiting > 0 && state.waiting.saturating_add(bytes) > MOST
        };
        let waited = self.changed.wait_while(self.state(), full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return None;
        }
        state.waiting = state.waiting.saturating_add(bytes);
        Some(Share { of: Arc::clone(self), bytes })
    }

    /// The receiver takes nothing any more: senders that wait return at once.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.of.state();
        state.waiting = state.waiting.saturating_sub(self.bytes);
        drop(state);
        self.of.changed.notify_all();
    }
}

/// The memory that an item takes.
pub(crate) fn weight(item: &Item<FromProbe>) -> usize {
    let contents = match item {
        Item::Foreign(text) | Item::Unknown(text) => text.len(),
        Item::Lost(_) => 0,
        Item::Message(message) => contents(message),
    };
    contents.saturating_add(ITEM)
}

fn numbers(count: usize) -> usize {
    count.saturating_mul(size_of::<u64>())
}

fn list(texts: impl Iterator<Item = usize>) -> usize {
    texts.map(|length| length + ENTRY).sum()
}

/// The size of an outlier beside the struct itself, in bytes.
pub(crate) fn of_outlier(outlier: &Outlier) -> usize {
    let Outlier { activity: _, series, at_ns: _, value_ns: _, trace } = outlier;
    let trace = trace.as_ref().map_or(0, |Trace { source: _, candidates, events, threads, timers }| {
        let candidates = candidates.iter().map(|own| own.name.len() + numbers(4));
        numbers(events.len()) + list(threads.iter().chain(timers).map(String::len).chain(candidates))
    });
    series.kind.len() + trace
}

/// The size of an account of CPUs beside the struct itself, in bytes.
pub(crate) fn of_breakdown(breakdown: &Breakdown) -> usize {
    let Breakdown { phase, ns: _, switches: _, cpus, threads, interrupts, softirqs } = breakdown;
    let threads = threads.iter().map(|thread| thread.name.len() + thread.process.len() + numbers(2));
    let kinds = interrupts.iter().chain(softirqs);
    let kinds = kinds.map(|kind| kind.name.len() + numbers(2 * kind.counts.len()));
    phase.as_ref().map_or(0, String::len) + numbers(9 * cpus.len()) + list(threads.chain(kinds))
}

/// The size of a message beside the struct itself: numbers, texts and lists, in bytes.
fn contents(message: &FromProbe) -> usize {
    match message {
        FromProbe::Tick(tick) => numbers(tick.counts.0.len() + tick.missed.0.len()) + tick.series.kind.len(),
        FromProbe::Windows(windows) => numbers(windows.maxima.len()) + windows.series.kind.len(),
        FromProbe::Trial(trial) => {
            numbers(trial.quiet.counts.0.len() + trial.held.counts.0.len()) + trial.by.len()
        }
        FromProbe::Injected(injected) => {
            numbers(injected.at.0.len() + 2 * injected.cpus.len()) + injected.kind.len() + injected.way.len()
        }
        FromProbe::Facts { readings, .. } => super::size(readings),
        FromProbe::Hello(hello) => {
            hello.version.len() + hello.arch.len() + list(hello.can.iter().map(String::len))
        }
        FromProbe::Proven(proven) => list(proven.clock.rates.iter().map(|rate| rate.against.len())),
        FromProbe::Done(done) => {
            done.reason.as_ref().map_or(0, String::len) + numbers(2 * done.load_rounds.len())
        }
        FromProbe::Note(note) => note.text.len() + note.hint.as_ref().map_or(0, String::len),
        FromProbe::Refused(refusal) => refusal.reason.len() + refusal.hint.as_ref().map_or(0, String::len),
        FromProbe::Value(value) => value.value.item.len(),
        FromProbe::Breakdown(of) => of_breakdown(&of.breakdown),
        FromProbe::Total(total) => total.series.kind.len(),
        FromProbe::Outlier(outlier) => of_outlier(outlier),
        // Only unexpected answers come here.
        FromProbe::Answer(answer) => answer.data.len() + list(answer.words.iter().map(String::len)),
        FromProbe::Output(output) => output.data.len(),
        FromProbe::Card(_) | FromProbe::Clock(_) | FromProbe::Ready | FromProbe::Exited(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sender_waits_for_room_and_continues_when_there_is() {
        let backlog = Arc::new(Backlog::default());
        let first = backlog.wait_for(MOST - 10).unwrap();
        let small = backlog.wait_for(10).unwrap();
        let (sender, passed) = channel();
        let other = Arc::clone(&backlog);
        let waiting = std::thread::spawn(move || {
            let share = other.wait_for(11).unwrap();
            sender.send(()).unwrap();
            drop(share);
        });
        assert!(passed.recv_timeout(Duration::from_millis(50)).is_err(), "there is no room for it");
        drop(small);
        assert!(passed.recv_timeout(Duration::from_millis(50)).is_err(), "and not yet");
        drop(first);
        passed.recv_timeout(Duration::from_secs(60)).unwrap();
        waiting.join().unwrap();
        assert_eq!(backlog.state().waiting, 0);
    }

    #[test]
    fn a_message_weighs_what_comes_with_it_also_where_all_of_it_is_cut_later() {
        let outlier = |trace| {
            let series = serde_json::json!({ "cpu": 0, "thread": 0, "priority": 95, "kind": "thread" });
            let series = serde_json::from_value(series).unwrap();
            let outlier = Outlier { activity: 0, series, at_ns: 1, value_ns: 1, trace };
            weight(&Item::Message(FromProbe::Outlier(outlier)))
        };
        let without = outlier(None);
        assert!(without < 1_000, "{without}");
        let names = Trace { threads: vec![String::new(); 260_000], ..Trace::default() };
        let least = 260_000 * size_of::<String>();
        assert!(outlier(Some(names)) > least, "empty names take memory, too");
        let events = Trace { events: vec![1; 100_000], ..Trace::default() };
        assert!(outlier(Some(events)) > 800_000);
        let long = Breakdown { phase: Some("x".repeat(700_000)), ..Breakdown::default() };
        let activity = 0;
        let long = tactus_model::message::BreakdownOf { activity, breakdown: long };
        assert!(weight(&Item::Message(FromProbe::Breakdown(long))) > 700_000);
    }

    #[test]
    fn a_message_larger_than_all_room_passes_alone_and_closing_ends_every_wait() {
        let backlog = Arc::new(Backlog::default());
        let large = backlog.wait_for(3 * MOST).unwrap();
        let other = Arc::clone(&backlog);
        let waiting = std::thread::spawn(move || other.wait_for(1).is_none());
        std::thread::sleep(Duration::from_millis(20));
        backlog.close();
        assert!(waiting.join().unwrap(), "it goes on, with nothing");
        drop(large);
        assert!(backlog.wait_for(1).is_none());
    }
}
