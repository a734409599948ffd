//! Environments whose probes follow a script.

use super::*;

/// The script of a probe once it is told to go.
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
    /// It makes load, and ends by itself once it was told to begin; from the second start on it continues.
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
    /// Its threads' results of the control do not arrive.
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
pub(super) static LOAD_STARTS: AtomicU32 = AtomicU32::new(0);

pub(super) struct Scripted(Script);

macro_rules! scripted {
    ($($name:ident: $script:ident),+) => { $(pub(super) static $name: Scripted = Scripted(Script::$script);)+ };
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

pub(super) fn value(item: &str, samples: u64) -> ValueResult {
    let kept = vec![2.5; usize::try_from(samples).expect("few")];
    let mut repeats = Repeats { kept, dropped: 1, batch: 100 };
    let known = ValueResult::of(&catalogue::measure::os::SYSTEM_CALL, &mut repeats).expect("repeats");
    ValueResult { item: item.into(), ..known }
}

pub(super) fn tick(n: u64, total: &mut Latency) -> Tick {
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
