//! The listeners of a run. The recorder takes events in line: an event that cannot be recorded ends the run. All
//! others are behind a bounded channel: a slow one misses events, and the run does not wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tactus_bundle::BundleError;
use tactus_model::event::{Event, RunStatus, Stamped, Ticked};
use tactus_model::message::{Note, Tick};

use crate::allowance;
use crate::log;
use crate::marks::Marks;

/// How many events may wait for a follower. A run of thirty series has some forty a second.
const WAITING: usize = 4096;
/// How many bytes of memory they may take. A tick of a series that is spread over all values takes 100 KB.
const MOST: usize = 16 << 20;
/// How long the end of a run waits for followers that have not taken everything yet.
const PATIENCE: Duration = Duration::from_secs(2);

/// A follower of a run: a live view, metrics. Runs in a separate thread.
pub trait Sink: Send {
    /// Takes in an event.
    fn take(&mut self, event: &Stamped);

    /// There are no more events. `dropped`: how many it missed because it was too slow.
    fn end(&mut self, dropped: u64) {
        let _ = dropped;
    }
}

/// Takes events in line, and may end the run.
pub(crate) trait Record {
    /// Takes in an event.
    ///
    /// # Errors
    /// When the run should end because of it (the disk is full).
    fn record(&mut self, event: &Stamped) -> Result<(), BundleError>;

    /// A note from the sink itself, once.
    fn news(&self) -> Option<Note> {
        None
    }

    /// There are no more events.
    ///
    /// # Errors
    /// When what was recorded cannot be brought to its end.
    fn finish(self: Box<Self>, status: RunStatus) -> Result<(), BundleError>;
}

/// A sink in its thread.
struct Follower {
    events: SyncSender<Arc<Stamped>>,
    /// Bytes that wait.
    waiting: Arc<AtomicUsize>,
    /// Says how many events were dropped, once there are no more.
    end: SyncSender<u64>,
    dropped: u64,
    ended: Receiver<()>,
}

impl Follower {
    fn start(mut sink: Box<dyn Sink>) -> Self {
        let (events, arriving) = sync_channel::<Arc<Stamped>>(WAITING);
        let (end, dropped) = sync_channel(1);
        let (done, ended) = sync_channel(1);
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&waiting);
        // Detached: one that never comes back must not hold up the end of the run.
        std::thread::spawn(move || {
            for event in arriving {
                sink.take(&event);
                left.fetch_sub(weight(&event.event), Ordering::Relaxed);
            }
            sink.end(dropped.recv().unwrap_or(0));
            // The run waits no longer than its patience.
            let _ = done.send(());
        });
        Self { events, waiting, end, dropped: 0, ended }
    }

    fn tell(&mut self, event: &Arc<Stamped>) {
        let weight = weight(&event.event);
        // An event larger than the whole room is sent if nothing else waits.
        let before = self.waiting.fetch_add(weight, Ordering::Relaxed);
        let room = before == 0 || before.saturating_add(weight) <= MOST;
        let told = match room {
            true => self.events.try_send(Arc::clone(event)),
            false => Err(TrySendError::Full(Arc::clone(event))),
        };
        if let Err(error) = told {
            self.waiting.fetch_sub(weight, Ordering::Relaxed);
            self.dropped += u64::from(matches!(error, TrySendError::Full(_)));
        }
    }

    /// Waits a moment until it has taken everything. Returns how many events it missed.
    fn finish(self) -> u64 {
        // A sink that panicked has no end.
        let _ = self.end.send(self.dropped);
        drop(self.events);
        let _ = self.ended.recv_timeout(PATIENCE);
        self.dropped
    }
}

/// The memory that an event takes, in bytes, about.
fn weight(event: &Event) -> usize {
    let numbers = |count: usize| count * size_of::<u64>();
    let beside = match event {
        Event::Ticked(Ticked { whole: Some(tick), .. }) => {
            numbers(tick.counts.0.len() + tick.missed.0.len()) + size_of::<Tick>()
        }
        Event::FactsCollected { facts: Some(facts), .. } => allowance::size(facts),
        Event::Windows { windows, .. } => numbers(windows.maxima.len()),
        Event::Noted { note, .. } => note.text.len(),
        Event::Outlier { outlier, .. } => allowance::of_outlier(outlier),
        Event::CpuTimeMeasured { breakdown, .. } => allowance::of_breakdown(breakdown),
        Event::Injected { injected, .. } => numbers(injected.at.0.len() + 2 * injected.cpus.len()),
        _ => 0,
    };
    size_of::<Stamped>() + beside
}

/// Tells the events of a run to all who listen.
pub(crate) struct Emitter {
    recorder: Option<Box<dyn Record>>,
    followers: Vec<Follower>,
    marks: Marks,
}

impl Emitter {
    /// Without listeners.
    pub fn silent() -> Self {
        Self { recorder: None, followers: Vec::new(), marks: Marks::default() }
    }

    /// A recorder in line, and sinks behind their channels.
    pub fn new(recorder: Box<dyn Record>, sinks: Vec<Box<dyn Sink>>) -> Self {
        let followers = sinks.into_iter().map(Follower::start).collect();
        Self { recorder: Some(recorder), followers, marks: Marks::default() }
    }

    /// The same, with what users mark.
    pub fn marked(self, marks: &Marks) -> Self {
        Self { marks: marks.clone(), ..self }
    }

    /// Whether there is no listener.
    pub fn is_silent(&self) -> bool {
        self.recorder.is_none() && self.followers.is_empty()
    }

    /// Tells everybody that something happened now.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn emit(&mut self, event: Event) -> Result<(), BundleError> {
        for marked in self.marks.take() {
            self.tell(marked)?;
        }
        self.tell(Stamped { at_ms: jiff::Timestamp::now().as_millisecond(), event })
    }

    fn tell(&mut self, stamped: Stamped) -> Result<(), BundleError> {
        log::event(&stamped.event);
        let stamped = Arc::new(stamped);
        if let Some(recorder) = &mut self.recorder {
            recorder.record(&stamped)?;
        }
        for follower in &mut self.followers {
            follower.tell(&stamped);
        }
        match self.recorder.as_ref().and_then(|recorder| recorder.news()) {
            Some(note) => {
                let event = Event::Noted { environment: None, note };
                self.tell(Stamped { at_ms: stamped.at_ms, event })
            }
            None => Ok(()),
        }
    }

    /// There are no more events. Returns how many of them followers missed.
    ///
    /// # Errors
    /// When the recorder cannot come to its end.
    pub fn finish(self, status: RunStatus) -> Result<u64, BundleError> {
        let recorded = self.recorder.map_or(Ok(()), |recorder| recorder.finish(status));
        let dropped = self.followers.into_iter().map(Follower::finish).sum();
        recorded.map(|()| dropped)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use tactus_model::facts::{Facts, Reading};
    use tactus_model::message::Outlier;
    use tactus_model::outcome::breakdown::{Breakdown, CpuTime};
    use tactus_model::series::SeriesKey;
    use tactus_model::trace::Trace;

    use super::*;

    /// Counts events.
    #[derive(Default)]
    struct Counter(Arc<AtomicU64>);

    impl Record for Counter {
        fn record(&mut self, _: &Stamped) -> Result<(), BundleError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn finish(self: Box<Self>, _: RunStatus) -> Result<(), BundleError> {
            Ok(())
        }
    }

    /// A reader that takes nothing until it is let go.
    struct Stuck {
        gate: Receiver<()>,
        seen: Arc<Mutex<(u64, u64)>>,
    }

    impl Sink for Stuck {
        fn take(&mut self, _: &Stamped) {
            let _ = self.gate.recv();
            self.seen.lock().unwrap().0 += 1;
        }

        fn end(&mut self, dropped: u64) {
            self.seen.lock().unwrap().1 = dropped;
        }
    }

    fn event() -> Event {
        Event::RunFinished { status: RunStatus::Complete }
    }

    #[test]
    fn a_reader_that_is_stuck_misses_events_and_holds_up_neither_recorder_nor_end() {
        let (open, gate) = channel::<()>();
        let seen = Arc::new(Mutex::new((0, 0)));
        let recorder = Counter::default();
        let recorded = Arc::clone(&recorder.0);
        let mut emitter =
            Emitter::new(Box::new(recorder), vec![Box::new(Stuck { gate, seen: Arc::clone(&seen) })]);
        let many = 3 * WAITING as u64;
        for _ in 0..many {
            emitter.emit(event()).unwrap();
        }
        let begun = Instant::now();
        let dropped = emitter.finish(RunStatus::Complete).unwrap();
        assert!(begun.elapsed() >= PATIENCE, "it was waited for, and not for ever");
        assert_eq!(recorded.load(Ordering::Relaxed), many);
        // One may be in its hands already.
        assert!((many - WAITING as u64 - 1..=many - WAITING as u64).contains(&dropped), "{dropped}");
        drop(open);
        let until = Instant::now() + Duration::from_secs(60);
        while seen.lock().unwrap().1 == 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(*seen.lock().unwrap(), (many - dropped, dropped));
    }

    #[test]
    fn large_events_that_wait_for_a_reader_take_no_more_memory_than_they_may() {
        let (open, gate) = channel::<()>();
        let seen = Arc::new(Mutex::new((0, 0)));
        let mut emitter = Emitter::new(
            Box::new(Counter::default()),
            vec![Box::new(Stuck { gate, seen: Arc::clone(&seen) })],
        );
        let name = |n: u32| format!("/proc/{n}/{}", "x".repeat(1 << 20));
        let large = |n: u32| {
            let facts = Facts([(name(n), Reading::Absent)].into());
            let facts = Some(Box::new(facts));
            Event::FactsCollected { environment: "guest".into(), readings: 1, facts }
        };
        for n in 0..40 {
            emitter.emit(large(n)).unwrap();
        }
        // It holds nothing up, and missed events are counted.
        assert_eq!(emitter.followers[0].dropped, 40 - 15);
        assert!(emitter.followers[0].waiting.load(Ordering::Relaxed) <= MOST);
        drop(open);
        emitter.finish(RunStatus::Complete).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while seen.lock().unwrap().1 == 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(*seen.lock().unwrap(), (15, 25));
    }

    #[test]
    fn what_comes_with_an_outlier_or_an_account_of_cpus_is_weighed_for_a_reader() {
        let outlier = |trace| {
            let series = SeriesKey { cpu: 0, thread: 0, priority: 95, kind: "thread".into() };
            let outlier = Outlier { activity: 0, series, at_ns: 1, value_ns: 1, trace };
            weight(&Event::Outlier { row: 0, outlier })
        };
        let trace = Trace { events: vec![1; 768], threads: vec!["1 x".into(); 256], ..Trace::default() };
        assert!(outlier(Some(trace)) - outlier(None) > 768 * 8 + 256 * size_of::<String>());
        let account = |cpus| {
            let breakdown = Breakdown { cpus: vec![CpuTime::default(); cpus], ..Breakdown::default() };
            weight(&Event::CpuTimeMeasured { row: 0, environment: None, breakdown })
        };
        assert!(account(4096) - account(0) >= 4096 * size_of::<CpuTime>());
    }

    #[test]
    fn a_reader_that_keeps_up_sees_everything_before_the_run_ends() {
        let (open, gate) = channel::<()>();
        drop(open);
        let seen = Arc::new(Mutex::new((0, 0)));
        let recorder = Counter::default();
        let recorded = Arc::clone(&recorder.0);
        let mut emitter =
            Emitter::new(Box::new(recorder), vec![Box::new(Stuck { gate, seen: Arc::clone(&seen) })]);
        for _ in 0..100 {
            emitter.emit(event()).unwrap();
        }
        assert_eq!(emitter.finish(RunStatus::Complete).unwrap(), 0);
        assert_eq!(recorded.load(Ordering::Relaxed), 100);
        assert_eq!(*seen.lock().unwrap(), (100, 0));
    }

    #[test]
    fn what_a_user_marks_is_recorded_once_before_the_next_event_and_a_held_key_is_no_flood() {
        let recorder = Counter::default();
        let recorded = Arc::clone(&recorder.0);
        let marks = Marks::default();
        let mut emitter = Emitter::new(Box::new(recorder), Vec::new()).marked(&marks);
        emitter.emit(event()).unwrap();
        assert!(marks.add("the crane moved".into()));
        emitter.emit(event()).unwrap();
        emitter.emit(event()).unwrap();
        assert_eq!(recorded.load(Ordering::Relaxed), 4);
        let taken = (0..10_000).filter(|_| marks.add("again".into())).count();
        assert!(taken < 100, "{taken}");
    }

    #[test]
    fn an_event_that_cannot_be_recorded_is_an_error_and_reaches_no_follower() {
        struct Full;
        impl Record for Full {
            fn record(&mut self, _: &Stamped) -> Result<(), BundleError> {
                Err(BundleError::Exists("here".into()))
            }

            fn finish(self: Box<Self>, _: RunStatus) -> Result<(), BundleError> {
                Ok(())
            }
        }
        let (_open, gate) = channel::<()>();
        let seen = Arc::new(Mutex::new((0, 0)));
        let mut emitter =
            Emitter::new(Box::new(Full), vec![Box::new(Stuck { gate, seen: Arc::clone(&seen) })]);
        assert!(emitter.emit(event()).is_err());
        emitter.finish(RunStatus::Interrupted).unwrap();
        assert_eq!(*seen.lock().unwrap(), (0, 0));
    }
}
