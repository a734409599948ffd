//! Environments whose probe is somebody else's program, which has understood the protocol and means harm.

use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU64;

use tactus_model::message::Outlier;

use super::*;

/// The harm that it does from the order to go until the stream is closed.
#[derive(Clone, Copy)]
enum Harm {
    /// One short line after the other.
    Lines,
    /// Frames whose sum is wrong.
    BadFrames,
    /// Ticks, each of another CPU.
    NewCpus,
    /// Ticks of one CPU, far more than planned.
    Ticks,
    Outliers,
    Facts,
    Notes,
    /// A word now and then, and never an end.
    Talk,
    /// It continues after its end.
    AfterTheEnd,
}

struct Hostile(Harm, &'static AtomicU64);

impl Environment for Hostile {
    fn kind(&self) -> &'static str {
        "hostile"
    }

    fn about(&self) -> &'static str {
        "A program that means harm."
    }

    fn usable(&self, _: &dyn System) -> Usable {
        Usable::Yes { remark: None }
    }

    fn start(&self, _: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let (harm, sent) = (self.0, self.1);
        let own = theirs.try_clone().expect("a descriptor");
        std::thread::spawn(move || speak(harm, sent, theirs));
        let writer = Box::new(ours.try_clone().expect("a descriptor"));
        let stream = Some(Stream { reader: Box::new(ours), writer });
        Ok(Box::new(Held { stream, own }))
    }
}

/// Its end is that of a killed program.
struct Held {
    stream: Option<Stream>,
    own: UnixStream,
}

impl Running for Held {
    fn take_stream(&mut self) -> Option<Stream> {
        self.stream.take()
    }

    fn last_words(&mut self) -> Option<String> {
        Some("it is still running".into())
    }

    fn stop(&mut self) {
        let _ = self.own.shutdown(std::net::Shutdown::Both);
    }
}

fn series(cpu: u32) -> SeriesKey {
    SeriesKey { cpu, thread: 0, priority: 95, kind: "thread".into() }
}

/// Says what a probe says until it is told to go, and then does its harm. Counts the bytes that were taken.
fn speak(harm: Harm, sent: &AtomicU64, mut stream: UnixStream) {
    let mut encoder = Encoder::new();
    let mut reader = stream.try_clone().expect("a descriptor");
    let mut say = |bytes: &[u8]| {
        let said = stream.write_all(bytes).is_ok();
        sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        said
    };
    let mut frame = |message: &FromProbe| encoder.encode(message).expect("JSON");
    let hello = Hello {
        protocol: PROTOCOL,
        version: "0".into(),
        arch: "x86_64".into(),
        pid: 1,
        monotonic_ns: 1,
        realtime_ns: 0,
        can: Vec::new(),
    };
    say(&frame(&FromProbe::Hello(hello)));
    say(&frame(&FromProbe::Facts { readings: Facts::default(), last: true }));
    let mut decoder = Decoder::new();
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = reader.read(&mut buffer) {
        for item in decoder.feed::<ToProbe>(&buffer[..read]) {
            match item {
                Item::Message(ToProbe::Job(_)) => drop(say(&frame(&FromProbe::Ready))),
                Item::Message(ToProbe::Prove) => drop(say(&frame(&FromProbe::Proven(Proven::default())))),
                Item::Message(ToProbe::Go) => {
                    let mut total = Latency::new();
                    say(&frame(&FromProbe::Tick(tick(0, &mut total))));
                    if matches!(harm, Harm::AfterTheEnd) {
                        let end = End::Complete;
                        let (reason, load_rounds) = (None, Vec::new());
                        let done = Done { end, reason, measured_ns: 1, load_rounds, jump_ns: 0 };
                        say(&frame(&FromProbe::Done(done)));
                    }
                    for n in 1.. {
                        let bytes = match harm {
                            Harm::Lines | Harm::AfterTheEnd => b"\xff\n".repeat(2048),
                            Harm::BadFrames => br#"{"q":1,"m":{"t":"ready"},"c":"00000000"}
"#
                            .repeat(100),
                            Harm::NewCpus => frame(&FromProbe::Tick(Tick {
                                series: series(u32::try_from(n).unwrap_or(0)),
                                ..tick(n, &mut Latency::new())
                            })),
                            Harm::Ticks => {
                                frame(&FromProbe::Tick(Tick { n: 1, ..tick(1, &mut Latency::new()) }))
                            }
                            Harm::Outliers => frame(&FromProbe::Outlier(Outlier {
                                activity: 0,
                                series: series(0),
                                at_ns: n,
                                value_ns: u64::MAX,
                                trace: None,
                            })),
                            Harm::Facts => {
                                let mut readings = Facts::default();
                                readings.keep(format!("/proc/{n}"), "x".repeat(10_000).as_str());
                                frame(&FromProbe::Facts { readings, last: false })
                            }
                            Harm::Notes => frame(&FromProbe::Note(Note::info(format!("remark {n}")))),
                            Harm::Talk => {
                                std::thread::sleep(Duration::from_millis(5));
                                b"listening\n".to_vec()
                            }
                        };
                        if !say(&bytes) {
                            return;
                        }
                    }
                }
                Item::Message(ToProbe::Quit) => return,
                _ => {}
            }
        }
    }
}

macro_rules! hostile {
    ($($name:ident: $harm:ident),+) => {
        $(static $name: Hostile = {
            static SENT: AtomicU64 = AtomicU64::new(0);
            Hostile(Harm::$harm, &SENT)
        };)+
    };
}

hostile!(LINES: Lines, BAD_FRAMES: BadFrames, NEW_CPUS: NewCpus, TICKS: Ticks, OUTLIERS: Outliers, FACTS: Facts, NOTES: Notes, TALK: Talk, AFTER_THE_END: AfterTheEnd);

/// Runs one second in the environment `guest`; its row, and the bytes that it could send.
fn suffer(hostile: &'static Hostile) -> (Contents, Vec<Event>, u64) {
    let dir = tempfile::tempdir().unwrap();
    let mut resolved = resolved(&[("guest", &GOOD)]);
    resolved.environments.get_mut("guest").unwrap().kind = hostile;
    let (status, contents, events) = perform_resolved(&resolved, dir.path(), false);
    assert_eq!(status, RunStatus::Complete, "the run goes on");
    (contents, events, hostile.1.load(Ordering::Relaxed))
}

#[test]
fn what_is_out_of_all_proportion_ends_its_environment_by_name_and_keeps_what_came_before() {
    for (hostile, words) in [
        (&LINES, "faster than any line"),
        (&BAD_FRAMES, "faster than any line"),
        (&NEW_CPUS, "cpu1/t0/thread"),
        (&TICKS, "tick 1 of cpu0/t0/thread after tick 1"),
        (&OUTLIERS, "outliers of cpu0"),
        (&FACTS, "of facts"),
        (&NOTES, "notes"),
    ] {
        let (contents, events, sent) = suffer(hostile);
        let result = &contents.rows[0].result;
        let why = result.reason.as_deref().unwrap_or_default();
        assert_eq!(result.ended, RowEnd::Failed, "{why}");
        assert!(why.starts_with("guest sent") || why.starts_with("guest reported"), "{why}");
        assert!(why.contains(words), "{why}");
        assert!(result.all().is_some_and(|all| all.cycles >= 3), "what came before is kept: {why}");
        assert!(events.len() < 1_000, "{words}: {} events", events.len());
        // The accepted bytes, those that waited, and those on their way.
        assert!(sent < 64 << 20, "{words}: {sent} bytes");
    }
}

#[test]
fn an_environment_that_never_comes_to_an_end_is_given_one() {
    let (contents, ..) = suffer(&TALK);
    let result = &contents.rows[0].result;
    let why = result.reason.as_deref().unwrap_or_default();
    assert!(why.starts_with("guest should measure for 3 s, was still measuring after"), "{why}");
    assert_eq!(result.all().map(|all| all.cycles), Some(3), "what came before is kept");
}

#[test]
fn what_is_said_after_the_end_takes_nothing_of_the_measurement_away() {
    let (contents, ..) = suffer(&AFTER_THE_END);
    let result = &contents.rows[0].result;
    assert_eq!(result.all().map(|all| all.cycles), Some(3), "{:?}", result.reason);
}
