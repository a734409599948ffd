//! A line at whose other end a hostile program speaks in place of a probe: it takes neither the memory nor the disk of
//! this machine, and the run says by name who it was. The program is this test itself, started anew by the plan.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tactus_model::facts::Facts;
use tactus_model::latency::{Latency, Sparse};
use tactus_model::message::{
    End, FromProbe, Hello, Note, Outlier, PROTOCOL, Proven, ThreadCounters, Tick, ToProbe,
};
use tactus_model::series::SeriesKey;
use tactus_model::wire::{Decoder, Encoder, Item};

use crate::common::{alone, stderr, stdout, tactus};

/// Says to this test that it is the program, and what it is to do.
const HARM: &str = "TACTUS_TEST_HARM";
/// Most memory that the run may take, in KiB.
const MOST_KIB: u64 = 200 << 10;
/// Most bytes of its bundle.
const MOST_BUNDLE: u64 = 16 << 20;

#[test]
fn a_hostile_program_in_place_of_a_probe_exhausts_nothing_and_is_named() {
    if let Ok(harm) = std::env::var(HARM) {
        // It ends when nobody reads what it says.
        let _ = speak(&harm);
        return;
    }
    let Some(_alone) = alone() else { return };
    for (harm, words) in [
        ("lines", "faster than any line"),
        ("bad-frames", "faster than any line"),
        ("cpus", "reported on the series cpu"),
        ("facts", "MiB of facts"),
        ("threads", "faster than any line"),
        ("outliers", "outliers of cpu0"),
        ("extremes", "counted more than"),
        ("garbage", "no frame of a probe"),
        ("after-the-end", ""),
    ] {
        let suffered = suffer(harm);
        let entry = &suffered.document["scenarios"][0];
        let why = entry["reason"].as_str().unwrap_or_default();
        assert!(why.contains(words), "{harm}: {entry:#}");
        assert!(
            words.is_empty() || why.contains("line") || why.contains(HARM),
            "{harm} does not name its environment: {why}"
        );
        assert!(why.len() < 10_000, "{harm}: a reason of {} bytes", why.len());
        eprintln!("{harm}: {} MiB, bundle {} KiB", suffered.kib >> 10, suffered.bundle >> 10);
        assert!(suffered.kib > 0 && suffered.kib < MOST_KIB, "{harm} took {} KiB", suffered.kib);
        assert!(suffered.bundle < MOST_BUNDLE, "{harm} left {} bytes", suffered.bundle);
    }
}

struct Suffered {
    document: Value,
    /// The most memory that tactus had.
    kib: u64,
    bundle: u64,
}

/// Runs a second of it.
fn suffer(harm: &str) -> Suffered {
    let dir = tempfile::tempdir().unwrap();
    let (plan, bundle) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    let own = std::env::current_exe().unwrap();
    let test = "hostile::a_hostile_program_in_place_of_a_probe_exhausts_nothing_and_is_named";
    let text = format!(
        "name = \"hostile\"\n[environment.line]\nkind = \"serial\"\nformat = \"probe\"\ncpus = \"0\"\n\
         command = \"{HARM}={harm} exec {} --exact {test} --nocapture\"\n\
         [[scenario]]\nname = \"line\"\nenvironment = \"line\"\nmeasurement = \"timer\"\nduration = \"1s\"\n",
        own.display()
    );
    fs::write(&plan, text).unwrap();
    let mut command = tactus();
    command.arg("run").arg(&plan).args(["--json", "--out"]).arg(&bundle);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let reader = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
            bytes
        })
    };
    let out = reader(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let err = reader(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let mut kib = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        kib = kib.max(peak(&fs::read_to_string(&status).unwrap_or_default()));
        std::thread::sleep(Duration::from_millis(2));
    };
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    let said = std::process::Output { status: ended, stdout: out, stderr: err };
    assert!(matches!(ended.code(), Some(0..=3)), "{harm}: {ended}: {}", stderr(&said));
    let document =
        serde_json::from_str(&stdout(&said)).unwrap_or_else(|_| panic!("{harm}: {}", stderr(&said)));
    Suffered { document, kib, bundle: size(&bundle) }
}

/// The most memory that a process had, in KiB, from its status.
fn peak(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn size(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => size(&entry.path()),
            _ => entry.metadata().map_or(0, |found| found.len()),
        })
        .sum()
}

fn series(cpu: u32) -> SeriesKey {
    SeriesKey { cpu, thread: 0, priority: 95, kind: "thread".into() }
}

fn tick(cpu: u32, n: u64) -> Tick {
    let mut now = Latency::new();
    now.record(5_000, 200_000);
    Tick {
        activity: 0,
        series: series(cpu),
        n,
        at_ns: 1_000_000 * (n + 1),
        now: now.totals,
        total: now.totals,
        counts: Sparse::of(&now.raw),
        missed: Sparse::default(),
        thread: ThreadCounters::default(),
    }
}

/// Speaks as a probe does until it is told to go, and then does what it is there for, for ever.
fn speak(harm: &str) -> io::Result<()> {
    let (mut out, mut encoder) = (io::stdout().lock(), Encoder::new());
    let mut say = |message: &FromProbe| -> io::Result<()> {
        out.write_all(&encoder.encode(message)?)?;
        out.flush()
    };
    if harm == "garbage" {
        return endless(&[0xff, 0, b'{', b'\r'].repeat(16 << 10));
    }
    say(&FromProbe::Hello(Hello {
        protocol: PROTOCOL,
        version: "0".into(),
        arch: "x86_64".into(),
        pid: 1,
        monotonic_ns: 1,
        realtime_ns: 0,
        can: vec!["timer".into()],
    }))?;
    // Facts for ever, or as many as there may be of what an audit looks at longest.
    let (most, name) = match harm {
        "facts" => (u64::MAX, "/proc/"),
        "threads" => (480, "threads:"),
        _ => (1, "/proc/"),
    };
    for n in 0..most {
        let mut readings = Facts::default();
        let vcpu = |at: u64| format!("{at}\t100\t1\t400100\tFIFO\t1\t0\tCPU {at}/KVM\n");
        let text = match harm {
            "threads" => (400 * n..400 * (n + 1)).map(vcpu).collect(),
            _ => "x".repeat(10_000),
        };
        readings.keep(format!("{name}{n}"), text.as_str());
        say(&FromProbe::Facts { readings, last: n + 1 == most })?;
    }
    let (mut decoder, mut input, mut buffer) = (Decoder::new(), io::stdin().lock(), [0; 4096]);
    loop {
        let read = input.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        for item in decoder.feed::<ToProbe>(&buffer[..read]) {
            match item {
                Item::Message(ToProbe::Job(_)) => say(&FromProbe::Ready)?,
                Item::Message(ToProbe::Prove) => say(&FromProbe::Proven(Proven::default()))?,
                Item::Message(ToProbe::Go) => {
                    say(&FromProbe::Tick(tick(0, 0)))?;
                    for n in 1.. {
                        match harm {
                            "cpus" => say(&FromProbe::Tick(tick(u32::try_from(n).unwrap_or(0), n)))?,
                            "outliers" => {
                                let outlier =
                                    Outlier { activity: 0, series: series(0), at_ns: n, value_ns: n };
                                say(&FromProbe::Outlier(outlier))?;
                            }
                            "extremes" => {
                                let mut tick = tick(0, 1);
                                (tick.now.max_ns, tick.total.max_ns) = (u64::MAX, u64::MAX);
                                (tick.at_ns, tick.counts) = (u64::MAX, Sparse(vec![u64::MAX, u64::MAX]));
                                say(&FromProbe::Tick(tick))?;
                            }
                            "bad-frames" => {
                                return endless(
                                    &b"{\"q\":1,\"m\":{\"t\":\"ready\"},\"c\":\"00000000\"}\n".repeat(1000),
                                );
                            }
                            "after-the-end" => {
                                say(&FromProbe::Done(tactus_model::message::Done {
                                    end: End::Complete,
                                    reason: None,
                                    measured_ns: 1_000_000_000,
                                    load_rounds: Vec::new(),
                                    jump_ns: 0,
                                }))?;
                                say(&FromProbe::Note(Note::info("and on")))?;
                                return endless(&b"\n\xffon\n".repeat(10_000));
                            }
                            _ => return endless(&b"x\n".repeat(30_000)),
                        }
                    }
                }
                Item::Message(ToProbe::Quit) => return Ok(()),
                _ => {}
            }
        }
    }
}

/// Says the same until nobody reads it.
fn endless(bytes: &[u8]) -> io::Result<()> {
    let mut out = fs::File::options().write(true).open("/proc/self/fd/1")?;
    loop {
        out.write_all(bytes)?;
    }
}
