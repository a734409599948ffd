//! The engine against environments whose probes follow a script: what they say is written here, word
//! by word, so that every way of going wrong can be played.

mod arrival;
mod day;
mod hostile;
mod restart;
mod resume;
mod warnings;
mod watchers;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tactus_bundle::{self as bundle, BundleError, Trust, Writer};
use tactus_environment::{Environment, Running, Setting, StartError, Stream, Usable};
use tactus_model::CpuSet;
use tactus_model::bundle::{Contents, Machine};
use tactus_model::catalogue;
use tactus_model::catalogue::load::Cpu;
use tactus_model::catalogue::measure::{Os, Timer};
use tactus_model::catalogue::{Load, Measure};
use tactus_model::clock::ClockCheck;
use tactus_model::event::{Event, RowStatus, RunStatus, Stamped};
use tactus_model::facts::Facts;
use tactus_model::latency::{Latency, Sparse};
use tactus_model::message::{
    Activity, Control, Counted, Done, End, FromProbe, Hello, Note, PROTOCOL, Proven, Refusal, Stage,
    ThreadCounters, Tick, ToProbe, Total, Trial, Value, What,
};
use tactus_model::outcome::{Repeats, RowEnd, ValueResult};
use tactus_model::plan::{self, Plan};
use tactus_model::scheduling::Policy;
use tactus_model::series::SeriesKey;
use tactus_model::topology::Topology;
use tactus_model::wire::{Decoder, Encoder, Item};
use tactus_system::guardian::Guardian;
use tactus_system::{Directory, Real, System, topology};

use super::execute::{On, run};
use super::sink::{Emitter, Record};
use super::{Interrupt, Recorder};
use crate::plan::{Choices, Resolved, ResolvedActivity, Source, resolve};

/// What a scripted probe does when it is told to go.
#[derive(Clone, Copy)]
enum Script {
    /// Three ticks, then done.
    Good,
    /// The same among a kernel's own words, with one damaged frame and one that never arrives.
    Noisy,
    /// Two ticks, then the stream ends.
    Dies,
    /// One tick, then the stream ends; unless one is all that is asked for.
    Mortal,
    /// The same, and it can be started only once.
    StartsOnce,
    /// The same, and no frame tells what the control of a later start came to.
    MortalBlind,
    /// It makes load, and ends by itself once it was told to begin; from the second start on it goes on.
    LoadDies,
    /// As it should be, but it takes its time.
    Slow,
    /// After its first tick nothing comes for three seconds, where three ticks are asked for.
    Silent,
    /// The same, and who runs it says that it is paused.
    Paused,
    /// It refuses the job.
    Refuses,
    /// It never says hello.
    Mute,
    /// It speaks another version.
    Foreign,
    /// It measures until it is told to stop.
    Endless,
    /// It makes load until it is told to stop.
    Loads,
    /// No tick and no total ever arrives, and then done.
    Unheard,
    /// The last tick does not arrive, nor do all but one of the last totals.
    LastTickLost,
    /// What its threads made of the control does not arrive.
    LossyControl,
    /// It runs on this machine's own kernel.
    SameKernel,
    /// Its clock runs at half the rate of this machine's.
    HalfRate,
    /// Its clock moves in steps of 4 ms.
    Coarse,
    /// Three words on each of two values, then done.
    Values,
    /// The same, then the stream ends.
    ValuesDie,
}

/// How often the load that dies was told to begin.
static LOAD_STARTS: AtomicU32 = AtomicU32::new(0);

struct Scripted(Script);

macro_rules! scripted {
    ($($name:ident: $script:ident),+) => { $(static $name: Scripted = Scripted(Script::$script);)+ };
}

scripted!(GOOD: Good, NOISY: Noisy, DIES: Dies, MORTAL: Mortal, STARTS_ONCE: StartsOnce, MORTAL_BLIND: MortalBlind, LOAD_DIES: LoadDies, SLOW: Slow, SILENT: Silent, PAUSED: Paused, REFUSES: Refuses, MUTE: Mute, FOREIGN: Foreign, ENDLESS: Endless, LOADS: Loads, UNHEARD: Unheard, LAST_TICK_LOST: LastTickLost, LOSSY_CONTROL: LossyControl, SAME_KERNEL: SameKernel, HALF_RATE: HalfRate, COARSE: Coarse, VALUES: Values, VALUES_DIE: ValuesDie);

impl Environment for Scripted {
    fn kind(&self) -> &'static str {
        "scripted"
    }

    fn about(&self) -> &'static str {
        "A probe that follows a script."
    }

    fn usable(&self, _: &dyn System) -> Usable {
        Usable::Yes { remark: None }
    }

    fn start(&self, _: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let (to_probe, from_host) = channel();
        let (to_host, from_probe) = channel();
        static ONCE: AtomicU32 = AtomicU32::new(0);
        let script = self.0;
        if matches!(script, Script::StartsOnce) && ONCE.fetch_add(1, Ordering::SeqCst) > 0 {
            return Err(StartError { reason: "no space left on device".into(), hint: None });
        }
        std::thread::spawn(move || play(script, &from_host, &to_host));
        let stream = Some(Stream {
            reader: Box::new(Pipe { from: from_probe, rest: Vec::new() }),
            writer: Box::new(Mouth(to_probe)),
        });
        Ok(Box::new(Played { script, stream }))
    }
}

struct Played {
    script: Script,
    stream: Option<Stream>,
}

impl Running for Played {
    fn take_stream(&mut self) -> Option<Stream> {
        self.stream.take()
    }

    fn paused(&mut self) -> Option<&'static str> {
        matches!(self.script, Script::Paused).then_some("its hypervisor")
    }

    fn measured(&mut self) -> Vec<Note> {
        vec![Note::info("CPU 2 entered the hypervisor 14 times")]
    }

    fn last_words(&mut self) -> Option<String> {
        Some("Kernel panic - not syncing: the script says so".into())
    }

    fn stop(&mut self) {}
}

struct Pipe {
    from: Receiver<Vec<u8>>,
    rest: Vec<u8>,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let Ok(bytes) = self.from.recv() else { return Ok(0) };
            self.rest = bytes;
        }
        let n = self.rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&self.rest[..n]);
        self.rest.drain(..n);
        Ok(n)
    }
}

struct Mouth(Sender<Vec<u8>>);

impl Write for Mouth {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The probe's side of the script.
struct Probe {
    script: Script,
    encoder: Encoder,
    to: Sender<Vec<u8>>,
    total: Latency,
    began: Instant,
    measured: bool,
    /// Ticks that its job asks for.
    asked: u64,
}

impl Probe {
    fn frames(&mut self, message: &FromProbe) -> Vec<u8> {
        self.encoder.encode(message).expect("JSON")
    }

    fn say(&mut self, message: &FromProbe) {
        let bytes = self.frames(message);
        let _ = self.to.send(bytes);
    }

    fn done(&mut self, end: End) {
        let load_rounds = Vec::new();
        self.say(&FromProbe::Done(Done {
            end,
            reason: None,
            measured_ns: self.asked.min(3) * 1_000_000_000,
            load_rounds,
            jump_ns: 0,
        }));
    }

    /// Two probes that prove themselves at once disturb each other: it is then not proven.
    fn prove(&mut self) {
        static PROVING: AtomicU32 = AtomicU32::new(0);
        let told_ns = self.clock();
        let alone = PROVING.fetch_add(1, Ordering::SeqCst) == 0;
        std::thread::sleep(Duration::from_millis(30));
        PROVING.fetch_sub(1, Ordering::SeqCst);
        let counted = |value: u64| {
            let mut latency = Latency::new();
            latency.record(value, 0);
            Counted { total: latency.totals, counts: Sparse::of(&latency.raw) }
        };
        let trial = FromProbe::Trial(Trial {
            activity: 0,
            series: SeriesKey { cpu: 0, thread: 0, priority: 95, kind: "thread".into() },
            stage: if self.measured { Stage::After } else { Stage::Before },
            injected_ns: 1_000_000,
            attempts: 1,
            by: "hog".into(),
            quiet: counted(10_000),
            held: counted(if alone { 1_000_000 } else { 2_000_000 }),
        });
        let later = matches!(self.script, Script::MortalBlind) && self.asked < 3;
        if matches!(self.script, Script::LossyControl) || later {
            // The number is used up and the frame never arrives.
            let _ = self.frames(&trial);
        } else {
            self.say(&trial);
        }
        let clock = match self.script {
            Script::Coarse => ClockCheck { step_ns: Some(4_000_000), stands: true, ..ClockCheck::default() },
            _ => ClockCheck { step_ns: Some(30), ..ClockCheck::default() },
        };
        self.say(&FromProbe::Proven(Proven { told_ns, proven_ns: self.clock(), clock }));
    }

    /// Its CLOCK_MONOTONIC, in ns.
    fn clock(&self) -> u64 {
        let passed = u64::try_from(self.began.elapsed().as_nanos()).expect("centuries");
        // Its hello says 1, and what comes after cannot be before.
        1 + if matches!(self.script, Script::HalfRate) { passed / 2 } else { passed }
    }

    /// The third word rests on too few repeats more than the second to be told before the end.
    fn values(&mut self) {
        for samples in [10, 20, 21] {
            for item in ["system call", "signal install"] {
                self.say(&FromProbe::Value(Value { activity: 0, value: value(item, samples) }));
            }
        }
    }

    /// Whether its stream ends before it is done.
    fn dies(&self) -> bool {
        match self.script {
            Script::Dies | Script::ValuesDie => true,
            Script::Mortal | Script::StartsOnce | Script::MortalBlind => self.asked > 1,
            _ => false,
        }
    }

    fn measure(&mut self) {
        if matches!(self.script, Script::Values | Script::ValuesDie) {
            return self.values();
        }
        let ticks = match self.script {
            Script::Dies => 2,
            Script::Mortal | Script::StartsOnce | Script::MortalBlind => 1,
            _ => 3,
        };
        for n in 0..ticks.min(self.asked) {
            if n == 1 && self.asked == 3 && matches!(self.script, Script::Silent | Script::Paused) {
                std::thread::sleep(Duration::from_secs(3));
            }
            let tick = FromProbe::Tick(tick(n, &mut self.total));
            let lost = match self.script {
                Script::Noisy => n == 1,
                Script::LastTickLost => n == 2,
                Script::Unheard => true,
                _ => false,
            };
            if lost {
                // The number is used up and the frames never arrive.
                let _ =
                    self.to.send(b"[   12.3] random: crng init done\r\n{\"q\":\x00\xff broken\n".to_vec());
                let _ = self.frames(&tick);
            } else {
                self.say(&tick);
            }
        }
        if matches!(self.script, Script::Slow) {
            std::thread::sleep(Duration::from_millis(700));
        }
        self.measured = true;
        if self.dies() {
            return;
        }
        for n in 0..3 {
            let total = FromProbe::Total(Total {
                activity: 0,
                series: SeriesKey { cpu: 0, thread: 0, priority: 95, kind: "thread".into() },
                at_ns: 3_000_000_000,
                total: self.total.totals,
                last: true,
            });
            match self.script {
                Script::Unheard => drop(self.frames(&total)),
                Script::LastTickLost if n < 2 => drop(self.frames(&total)),
                _ => self.say(&total),
            }
        }
    }
}

fn play(script: Script, from: &Receiver<Vec<u8>>, to: &Sender<Vec<u8>>) {
    let (encoder, total, began) = (Encoder::new(), Latency::new(), Instant::now());
    let mut probe = Probe { script, encoder, to: to.clone(), total, began, measured: false, asked: 0 };
    if matches!(script, Script::Mute) {
        return;
    }
    probe.say(&FromProbe::Hello(Hello {
        protocol: if matches!(script, Script::Foreign) { PROTOCOL + 1 } else { PROTOCOL },
        version: "0".into(),
        arch: "x86_64".into(),
        pid: 1,
        monotonic_ns: 1,
        realtime_ns: 0,
        can: Vec::new(),
    }));
    let mut readings = Facts::default();
    readings.keep("/proc/version", "Linux scripted");
    if matches!(script, Script::SameKernel) {
        let boot = Real.text("/proc/sys/kernel/random/boot_id").unwrap();
        readings.keep("/proc/sys/kernel/random/boot_id", &boot);
    }
    probe.say(&FromProbe::Facts { readings, last: true });
    let mut decoder = Decoder::new();
    while let Ok(bytes) = from.recv() {
        for item in decoder.feed::<ToProbe>(&bytes) {
            match (item, script) {
                (Item::Message(ToProbe::Job(_)), Script::Refuses) => {
                    probe.say(&FromProbe::Refused(Refusal {
                        reason: "SCHED_FIFO is not allowed".into(),
                        hint: Some("allow it".into()),
                    }));
                }
                (Item::Message(ToProbe::Job(_)), Script::HalfRate) => {
                    std::thread::sleep(Duration::from_millis(60));
                    probe.say(&FromProbe::Ready);
                }
                (Item::Message(ToProbe::Job(job)), _) => {
                    probe.asked = job.duration_ns / 1_000_000_000;
                    // Another job counts from the beginning.
                    probe.total = Latency::new();
                    probe.say(&FromProbe::Ready);
                }
                (Item::Message(ToProbe::Prove), _) => probe.prove(),
                (Item::Message(ToProbe::Go), Script::LoadDies)
                    if LOAD_STARTS.fetch_add(1, Ordering::SeqCst) == 0 =>
                {
                    return;
                }
                (Item::Message(ToProbe::Go), Script::Loads | Script::LoadDies) => {}
                (Item::Message(ToProbe::Go), _) => {
                    probe.measure();
                    if probe.dies() {
                        return;
                    }
                    if !matches!(script, Script::Endless) {
                        probe.done(End::Complete);
                    }
                }
                (Item::Message(ToProbe::Stop), _) => probe.done(End::Stopped),
                (Item::Message(ToProbe::Quit), _) => return,
                _ => {}
            }
        }
    }
}

fn value(item: &str, samples: u64) -> ValueResult {
    let kept = vec![2.5; usize::try_from(samples).expect("few")];
    let mut repeats = Repeats { kept, dropped: 1, batch: 100 };
    let known = ValueResult::of(&catalogue::measure::os::SYSTEM_CALL, &mut repeats).expect("repeats");
    ValueResult { item: item.into(), ..known }
}

fn tick(n: u64, total: &mut Latency) -> Tick {
    let mut now = Latency::new();
    for value in [5_000 + n, 7_000, 9_000 + n] {
        now.record(value, 200_000);
    }
    total.merge(&now);
    Tick {
        activity: 0,
        series: SeriesKey { cpu: 0, thread: 0, priority: 95, kind: "thread".into() },
        n,
        at_ns: (n + 1) * 1_000_000_000,
        now: now.totals,
        total: total.totals,
        counts: Sparse::of(&now.raw),
        missed: Sparse::of(&now.missed),
        thread: ThreadCounters::default(),
    }
}

/// A plan of one scenario per name, each in the scripted environment of that name.
fn written(scripts: &[(&str, &'static Scripted)]) -> Plan {
    let scenario = |(name, _): &(&str, &'static Scripted)| plan::Scenario {
        name: Some((*name).into()),
        environment: Some((*name).into()),
        measurement: Some(Measure::Timer(Timer::default())),
        policy: Some(Policy::Fifo),
        duration: Some(tactus_model::Nanos::from_secs(3)),
        ..plan::Scenario::default()
    };
    let environment = |(name, _): &(&str, &'static Scripted)| {
        let environment = plan::Environment { kind: "host".into(), ..plan::Environment::default() };
        ((*name).to_owned(), environment)
    };
    Plan {
        name: "scripted".into(),
        environment: scripts.iter().map(environment).collect(),
        scenario: scripts.iter().map(scenario).collect(),
        ..Plan::default()
    }
}

fn resolved(scripts: &[(&str, &'static Scripted)]) -> Resolved {
    resolved_as(&written(scripts), &Choices::default(), scripts)
}

fn resolved_as(plan: &Plan, choices: &Choices, scripts: &[(&str, &'static Scripted)]) -> Resolved {
    let source = Source::new("test", "");
    let mut resolved =
        resolve(plan, &source, choices, &Topology::of(&Facts::default()), &Real).expect("a good plan");
    for (name, script) in scripts {
        resolved.environments.get_mut(*name).expect("it was put in").kind = *script;
    }
    resolved
}

/// Every event of a run, for a look at what happened; it may ask for the end at the last tick.
struct Witness {
    recorder: Box<Recorder>,
    events: Rc<RefCell<Vec<Stamped>>>,
    stops: Option<Interrupt>,
}

impl Record for Witness {
    fn record(&mut self, event: &Stamped) -> Result<(), BundleError> {
        self.recorder.record(event)?;
        if let (Event::Ticked(ticked), Some(interrupt)) = (&event.event, &self.stops)
            && ticked.n == 2
        {
            interrupt.ask();
        }
        self.events.borrow_mut().push(event.clone());
        Ok(())
    }

    fn finish(self: Box<Self>, status: RunStatus) -> Result<(), BundleError> {
        self.recorder.finish(status)
    }
}

fn perform(
    scripts: &[(&str, &'static Scripted)],
    dir: &Path,
    stop_at_last_tick: bool,
) -> (RunStatus, Contents, Vec<Event>) {
    perform_resolved(&resolved(scripts), dir, stop_at_last_tick)
}

fn perform_resolved(
    resolved: &Resolved,
    dir: &Path,
    stop_at_last_tick: bool,
) -> (RunStatus, Contents, Vec<Event>) {
    perform_into(writer(resolved, dir), resolved, dir, stop_at_last_tick)
}

fn writer(resolved: &Resolved, dir: &Path) -> Writer {
    let results: Vec<_> = resolved.rows.iter().map(|row| row.result.clone()).collect();
    Writer::create(dir.join("bundle"), &resolved.plan, &results, Machine::default()).expect("a bundle")
}

fn perform_into(
    writer: Writer,
    resolved: &Resolved,
    dir: &Path,
    stop_at_last_tick: bool,
) -> (RunStatus, Contents, Vec<Event>) {
    perform_guarded(Guardian::start(&Real).expect("a guardian"), writer, resolved, dir, stop_at_last_tick)
}

fn perform_guarded(
    guardian: Guardian,
    writer: Writer,
    resolved: &Resolved,
    dir: &Path,
    stop_at_last_tick: bool,
) -> (RunStatus, Contents, Vec<Event>) {
    let (status, contents, events) = perform_stamped(guardian, writer, resolved, dir, stop_at_last_tick);
    (status, contents, events.into_iter().map(|stamped| stamped.event).collect())
}

fn perform_stamped(
    guardian: Guardian,
    writer: Writer,
    resolved: &Resolved,
    dir: &Path,
    stop_at_last_tick: bool,
) -> (RunStatus, Contents, Vec<Stamped>) {
    let interrupt = Interrupt::default();
    let bundle = dir.join("bundle");
    let stops = stop_at_last_tick.then(|| interrupt.clone());
    let events = Rc::new(RefCell::new(Vec::new()));
    let recorder = Box::new(Recorder::new(writer, resolved));
    let witness = Witness { recorder, events: Rc::clone(&events), stops };
    let workspace = guardian.workspace().expect("a directory");
    let emitter = Emitter::new(Box::new(witness), Vec::new());
    let consoles = Directory::open(dir).expect("a directory");
    let on = On { system: &Real, machine: &topology(&Real) };
    run(resolved, on, guardian, workspace, &consoles, &interrupt, emitter).expect("a run");
    let contents = bundle::read(&bundle, Trust::Whole).expect("a whole bundle");
    (contents.manifest.status, contents, events.take())
}

#[test]
fn what_a_probe_measures_is_in_the_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let (status, contents, events) = perform(&[("a", &GOOD)], dir.path(), false);
    assert_eq!(status, RunStatus::Complete);
    let row = &contents.rows[0];
    assert_eq!((row.result.status, row.result.reason.as_deref()), (RowStatus::Measured, None));
    let all = row.result.all().unwrap();
    assert_eq!((all.cycles, all.lost, all.min_ns, all.max_ns), (9, 0, Some(5_000), Some(9_002)));
    assert_eq!(row.result.measured_ns, 3_000_000_000);
    assert_eq!(contents.facts["a"].text("/proc/version"), Some("Linux scripted"));
    assert!(matches!(events.first(), Some(Event::RunStarted { rows: 1, .. })));
    // What was counted outside says which scenario it is of: here it is called as its environment.
    let counted = |event: &Event| matches!(event, Event::Noted { note, .. } if note.text.starts_with("a: CPU 2 entered"));
    assert!(events.iter().any(counted), "{events:?}");
    assert!(matches!(events.last(), Some(Event::RunFinished { .. })));
}

#[test]
fn several_environments_are_up_at_once_and_a_load_ends_with_the_measurement() {
    let dir = tempfile::tempdir().unwrap();
    let mut resolved = resolved(&[("a", &GOOD), ("b", &LOADS)]);
    // One scenario: the measurement in `a`, its load in `b`.
    let load = Activity::new(1, CpuSet::one(0), What::Load(Load::Cpu(Cpu::default())));
    resolved.scenarios[0].activities.push(ResolvedActivity {
        environment: "b".into(),
        activity: load,
        path: None,
    });
    resolved.scenarios.truncate(1);
    resolved.rows.truncate(1);
    let (status, contents, events) = perform_resolved(&resolved, dir.path(), false);
    assert_eq!(status, RunStatus::Complete);
    assert_eq!(contents.rows.len(), 1);
    assert_eq!(contents.rows[0].result.status, RowStatus::Measured);
    assert_eq!(contents.rows[0].result.reason, None);
    let at = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted).expect("it happened");
    let up = |name: &'static str| {
        at(&move |e| matches!(e, Event::EnvironmentUp { environment, .. } if environment == name))
    };
    let started = at(&|e| matches!(e, Event::RowStarted { .. }));
    assert!(up("a") < started && up("b") < started, "both are up before anything is measured");
}

#[test]
fn environments_that_share_cpus_prove_their_instruments_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut resolved = resolved(&[("a", &GOOD), ("b", &GOOD)]);
    // One scenario that measures in both.
    let beside = resolved.scenarios.pop().expect("two");
    resolved.scenarios[0].activities.extend(beside.activities);
    resolved.scenarios[0].rows = 0..2;
    let (status, contents, events) = perform_resolved(&resolved, dir.path(), false);
    assert_eq!(status, RunStatus::Complete);
    let controls = |stage: Stage| -> Vec<(usize, bool)> {
        let of = |event: &Event| match event {
            Event::Controlled { row, control } if control.stage == stage => Some((*row, control.passed)),
            _ => None,
        };
        events.iter().filter_map(of).collect()
    };
    assert_eq!(controls(Stage::Before), [(0, true), (1, true)]);
    assert_eq!(controls(Stage::After), [(0, true), (1, true)]);
    let is =
        |event: &Event, of: Stage| matches!(event, Event::Controlled { control, .. } if control.stage == of);
    let ticked = |event: &Event| matches!(event, Event::Ticked(_));
    let last = |wanted: &dyn Fn(&Event) -> bool| events.iter().rposition(wanted).expect("it happened");
    let first = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted).expect("it happened");
    assert!(last(&|event| is(event, Stage::Before)) < first(&ticked), "nothing is measured before");
    assert!(last(&ticked) < first(&|event| is(event, Stage::After)), "and everything before the second");
    assert_eq!(contents.rows.len(), 2);
}

#[test]
fn after_a_refusal_the_other_environments_give_their_job_back_and_stay_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut resolved = resolved(&[("a", &GOOD), ("b", &REFUSES)]);
    let load = Activity::new(1, CpuSet::one(0), What::Load(Load::Cpu(Cpu::default())));
    resolved.scenarios[0].activities.push(ResolvedActivity {
        environment: "b".into(),
        activity: load,
        path: None,
    });
    resolved.scenarios[1].activities[0].environment = "a".into();
    resolved.rows[1].result.environment = "a".into();
    let (_, contents, events) = perform_resolved(&resolved, dir.path(), false);
    let row = |n: usize| &contents.rows[n].result;
    assert_eq!(row(0).status, RowStatus::Skipped);
    assert!(row(0).reason.as_deref().is_some_and(|why| why.contains("not allowed")), "{:?}", row(0).reason);
    assert_eq!((row(1).status, row(1).reason.as_deref()), (RowStatus::Measured, None));
    assert_eq!(row(1).all().unwrap().cycles, 9);
    let kept = |event: &Event| matches!(event, Event::EnvironmentKept { environment } if environment == "a");
    assert!(events.iter().any(kept), "it is not started again");
}

#[test]
fn garbage_between_frames_costs_what_was_garbled_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents, events) = perform(&[("a", &NOISY)], dir.path(), false);
    let result = &contents.rows[0].result;
    assert_eq!(result.status, RowStatus::Measured);
    let all = result.all().unwrap();
    // The totals are exact since the start: the lost tick shows as lost samples, not as less measured.
    assert_eq!((all.cycles, all.lost, all.max_ns), (9, 3, Some(9_002)));
    assert!(result.frames_lost >= 1);
    assert!(events.iter().any(|event| matches!(event, Event::FramesLost { .. })));
}

#[test]
fn each_way_of_breaking_ends_its_scenario_with_a_reason_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let scripts: &[(&str, &'static Scripted)] =
        &[("dies", &DIES), ("refuses", &REFUSES), ("mute", &MUTE), ("other", &FOREIGN), ("good", &GOOD)];
    let (status, contents, _) = perform(scripts, dir.path(), false);
    assert_eq!(status, RunStatus::Complete);
    let rows: BTreeMap<&str, _> =
        contents.rows.iter().map(|row| (row.result.name.as_str(), &row.result)).collect();
    let reason = |name: &str| rows[name].reason.clone().unwrap_or_default();
    assert!(reason("dies").contains("Kernel panic"), "{}", reason("dies"));
    assert_eq!(rows["dies"].all().unwrap().cycles, 6, "what had arrived stays");
    assert_eq!(rows["dies"].measured_ns, 2_000_000_000);
    assert!(reason("refuses").contains("SCHED_FIFO is not allowed; allow it"), "{}", reason("refuses"));
    assert!(reason("mute").contains("Kernel panic"), "{}", reason("mute"));
    assert!(reason("other").contains("protocol"), "{}", reason("other"));
    for name in ["dies", "mute", "other"] {
        assert_eq!((rows[name].status, rows[name].ended), (RowStatus::Failed, RowEnd::Failed), "{name}");
    }
    assert_eq!(rows["refuses"].ended, RowEnd::Refused);
    assert_eq!(rows["refuses"].status, RowStatus::Skipped, "what is not allowed there was not tried");
    assert_eq!((rows["good"].status, rows["good"].ended), (RowStatus::Measured, RowEnd::Complete));
}

#[test]
fn an_interrupt_keeps_what_was_measured_and_skips_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let (status, contents, _) = perform(&[("a", &ENDLESS), ("b", &GOOD)], dir.path(), true);
    assert_eq!(status, RunStatus::Interrupted);
    assert_eq!(contents.manifest.status, RunStatus::Interrupted);
    let first = &contents.rows[0].result;
    assert_eq!(first.status, RowStatus::Measured);
    assert!(first.reason.as_deref().is_some_and(|why| why.contains("interrupted")), "{:?}", first.reason);
    assert_eq!(first.all().unwrap().cycles, 9);
    assert_eq!(contents.rows[1].result.status, RowStatus::Skipped);
    let ended: Vec<RowEnd> = contents.rows.iter().map(|row| row.result.ended).collect();
    assert_eq!(ended, [RowEnd::Interrupted, RowEnd::Waiting]);
}

/// A plan of one row of values per script.
fn values(scripts: &[(&str, &'static Scripted)]) -> Plan {
    let mut plan = written(scripts);
    for scenario in &mut plan.scenario {
        scenario.measurement = Some(Measure::Os(Os::default()));
        scenario.policy = None;
    }
    plan
}

#[test]
fn the_last_word_on_every_value_is_in_the_bundle_and_nothing_had_to_be_proven() {
    let dir = tempfile::tempdir().unwrap();
    let scripts: &[(&str, &'static Scripted)] = &[("a", &VALUES), ("b", &VALUES_DIE)];
    let resolved = resolved_as(&values(scripts), &Choices::default(), scripts);
    let (_, contents, events) = perform_resolved(&resolved, dir.path(), false);
    for row in &contents.rows {
        let result = &row.result;
        assert_eq!(result.values(), [value("system call", 21), value("signal install", 21)]);
        assert_eq!((result.all(), result.series(), result.control.len()), (None, &[][..], 0));
    }
    let ended: Vec<RowEnd> = contents.rows.iter().map(|row| row.result.ended).collect();
    assert_eq!(ended, [RowEnd::Complete, RowEnd::Failed], "what had arrived stays");
    let complete: Vec<bool> = contents.rows.iter().map(|row| row.result.is_complete()).collect();
    assert_eq!(complete, [true, false]);
    let told = events.iter().filter_map(|event| match event {
        Event::ValueMeasured { row: 0, value } => Some(value.samples),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [10, 10, 20, 20, 21, 21]);
}

/// Files of a bundle by name, but for what says when and where it was written.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for path in Real.list(&at).unwrap() {
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            match Real.read(&path) {
                Ok(bytes) => drop(found.insert(name, bytes)),
                Err(_) => open.push(path),
            }
        }
    }
    found.remove("manifest.json");
    // A log says at its head when it was begun.
    for (_, log) in found.iter_mut().filter(|(name, _)| name.ends_with(".hlog")) {
        let text = String::from_utf8(std::mem::take(log)).unwrap();
        let body = text.lines().filter(|line| !line.starts_with('#'));
        *log = body.collect::<Vec<_>>().join("\n").into_bytes();
    }
    found
}

#[test]
fn a_bundle_follows_from_the_events_of_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let scripts: &[(&str, &'static Scripted)] =
        &[("a", &VALUES), ("b", &VALUES_DIE), ("c", &GOOD), ("d", &NOISY)];
    let mut plan = values(scripts);
    for latency in &mut plan.scenario[2..] {
        latency.measurement = None;
    }
    let resolved = resolved_as(&plan, &Choices::default(), scripts);
    let guardian = Guardian::start(&Real).unwrap();
    let into = writer(&resolved, dir.path());
    let (status, _, events) = perform_stamped(guardian, into, &resolved, dir.path(), false);
    let place = dir.path().join("again");
    Real.make_dir(&place).unwrap();
    let mut recorder = Recorder::new(writer(&resolved, &place), &resolved);
    for event in events {
        let line = serde_json::to_string(&event).unwrap();
        recorder.record(&serde_json::from_str(&line).unwrap()).unwrap();
    }
    Box::new(recorder).finish(status).unwrap();
    let (then, now) = (files(&dir.path().join("bundle")), files(&place.join("bundle")));
    assert_eq!(then.keys().collect::<Vec<_>>(), now.keys().collect::<Vec<_>>());
    for (name, bytes) in then {
        assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&now[&name]), "{name}");
    }
}
