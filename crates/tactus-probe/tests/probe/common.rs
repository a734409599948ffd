//! A probe of one's own to speak with.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tactus_model::CpuSet;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::{Spin, Timer};
use tactus_model::facts::Facts;
use tactus_model::message::{Activity, Done, FromProbe, Hello, Job, Note, Refusal, ToProbe, What};
use tactus_model::scheduling::Policy;
use tactus_model::wire::{Decoder, Encoder, Item};

/// The program under test.
pub const PROBE: &str = env!("CARGO_BIN_EXE_tactus-probe");
/// No test waits longer than this for one message: the machine may be slow, not dead.
const PATIENCE: Duration = Duration::from_secs(60);

/// One probe at a time: two that measure on one CPU would disturb each other.
static ALONE: Mutex<()> = Mutex::new(());

/// A running probe.
pub struct Probe {
    _alone: MutexGuard<'static, ()>,
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    encoder: Encoder,
    items: Receiver<Item<FromProbe>>,
    pub facts: Facts,
    pub hello: Option<Hello>,
    pub notes: Vec<Note>,
}

impl Probe {
    /// Starts the probe by `words` (the last of which is the probe) with a mark in its environment,
    /// and hears its hello and its facts.
    pub fn start_as(words: &[&str], mark: &str) -> Self {
        let mut probe = Self::spawn(words, mark);
        loop {
            match probe.hear() {
                FromProbe::Hello(hello) => probe.hello = Some(hello),
                FromProbe::Facts { readings, last } => {
                    probe.facts.0.extend(readings.0);
                    if last {
                        return probe;
                    }
                }
                FromProbe::Note(note) => probe.notes.push(note),
                other => panic!("before the facts were complete: {other:?}"),
            }
        }
    }

    pub fn start() -> Self {
        Self::start_as(&[PROBE], "none")
    }

    pub fn spawn(words: &[&str], mark: &str) -> Self {
        // A test that failed leaves the lock poisoned, which says nothing about the next one.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .env("TACTUS_TEST", mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (to, items) = channel();
        std::thread::spawn(move || {
            let mut decoder = Decoder::new();
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut buffer) {
                for item in decoder.feed(&buffer[..length]) {
                    let _ = to.send(item);
                }
            }
        });
        let stdin = child.stdin.take();
        let facts = Facts::default();
        Self {
            _alone: alone,
            child,
            stdin,
            encoder: Encoder::new(),
            items,
            facts,
            hello: None,
            notes: Vec::new(),
        }
    }

    pub fn say(&mut self, message: &ToProbe) {
        let bytes = self.encoder.encode(message).unwrap();
        self.write(&bytes);
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub fn hear(&mut self) -> FromProbe {
        match self.items.recv_timeout(PATIENCE) {
            Ok(Item::Message(message)) => message,
            other => panic!("no message: {other:?}"),
        }
    }

    /// Whether the stream ends without another word but ticks and the like.
    pub fn ends(&mut self) -> bool {
        loop {
            match self.items.recv_timeout(PATIENCE) {
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
                Ok(_) => {}
            }
        }
    }

    /// Gives a job and waits until it is prepared.
    pub fn prepare(&mut self, job: Job) -> Result<(), Refusal> {
        self.say(&ToProbe::Job(job));
        loop {
            match self.hear() {
                FromProbe::Note(note) => self.notes.push(note),
                // Again, because the job made settings.
                FromProbe::Facts { readings, .. } => self.facts.0.extend(readings.0),
                FromProbe::Ready => return Ok(()),
                FromProbe::Refused(refusal) => return Err(refusal),
                other => panic!("instead of ready: {other:?}"),
            }
        }
    }

    /// Hears everything up to `done`.
    pub fn finish(&mut self) -> (Vec<FromProbe>, Done) {
        let mut heard = Vec::new();
        loop {
            match self.hear() {
                FromProbe::Done(done) => return (heard, done),
                FromProbe::Note(note) => self.notes.push(note),
                other => heard.push(other),
            }
        }
    }

    /// Performs a job; `None` (said aloud) when this machine refuses it.
    pub fn perform(&mut self, job: Job) -> Option<(Vec<FromProbe>, Done)> {
        if let Err(refusal) = self.prepare(job) {
            skipped(&refusal.reason);
            return None;
        }
        self.say(&ToProbe::Go);
        Some(self.finish())
    }

    /// A CPU to measure on: the last one that is allowed.
    pub fn cpu(&self) -> CpuSet {
        CpuSet::one(self.cpus().last().unwrap())
    }

    /// All CPUs that it may use.
    pub fn cpus(&self) -> CpuSet {
        self.facts.text("sched:affinity").unwrap().parse().unwrap()
    }

    /// A CPU that is not measured on, if there is one.
    pub fn house(&self) -> CpuSet {
        let allowed: CpuSet = self.facts.text("sched:affinity").unwrap().parse().unwrap();
        allowed.take(1)
    }

    pub fn quit(mut self) -> Option<i32> {
        self.say(&ToProbe::Quit);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says loudly that a test was not done; where everything must be there, it is a failure.
#[expect(clippy::print_stderr, reason = "a test that could not be done says so")]
pub fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
    assert!(std::env::var_os("TACTUS_TEST_ALL").is_none(), "skipped although TACTUS_TEST_ALL is set: {why}");
}

pub fn timer(id: u32, cpus: CpuSet, timer: Timer) -> Activity {
    let measure = Measure::Timer(timer);
    let what = What::Measure { measure, interval_ns: 1_000_000, priority: 80, policy: Policy::Fifo };
    Activity::new(id, cpus, what)
}

pub fn spin(id: u32, cpus: CpuSet) -> Activity {
    let measure = Measure::Spin(Spin { busy: Some(50), break_at: None });
    let what = What::Measure { measure, interval_ns: 0, priority: 80, policy: Policy::Fifo };
    Activity::new(id, cpus, what)
}

/// A job of 600 ms with ticks of 200 ms.
pub fn job(probe: &Probe, activities: Vec<Activity>) -> Job {
    Job {
        duration_ns: 600_000_000,
        tick_ns: 200_000_000,
        control: tactus_model::control::ControlBy::Nothing,
        no_side_effects: false,
        housekeeping: probe.house(),
        activities,
        changes: Vec::new(),
        restore: false,
        budget: 0,
        cache_misses: false,
        blame_above: None,
        blame_by: None,
        lock_in: None,
    }
}

/// Processes that carry the mark of a test.
pub fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("TACTUS_TEST={mark}");
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        })
        .collect()
}

/// Waits until `done` says so, at most a minute.
pub fn eventually(mut done: impl FnMut() -> bool) -> bool {
    (0..6_000).any(|_| {
        done() || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }
    })
}
