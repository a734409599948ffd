//! A line with a hostile program in place of a probe. The program takes neither the memory nor the disk of this
//! machine, and the run names its environment. The program is this test itself, started anew by the plan.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tactus_model::facts::Facts;
use tactus_model::latency::{Latency, Sparse};
use tactus_model::message::{
    End, FromProbe, Hello, Note, Outlier, PROTOCOL, Proven, ThreadCounters, Tick, ToProbe,
};
use tactus_model::series::SeriesKey;
use tactus_model::trace::Trace;
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
        // It ends when its output is not read any more.
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
        ("each-kind", ""),
        ("values", "notes of more than"),
        ("traces", ""),
    ] {
        let suffered = suffer(harm);
        let entry = &suffered.document["scenarios"][0];
        assert!(!suffered.said.contains("cannot be read"), "{harm}: {}", suffered.said);
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
    /// The run's output.
    said: String,
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
    // Traces are sent before they are read, because another environment is still starting.
    let slow = "[environment.slow]\nkind = \"serial\"\nformat = \"probe\"\ncpus = \"0\"\ncommand = \"exec sleep 8\"\n";
    let (slow, measured) = match harm {
        "traces" => (
            slow,
            "[[scenario.activity]]\nmeasure = \"timer\"\nin = \"line\"\n\
             [[scenario.activity]]\nmeasure = \"timer\"\nin = \"slow\"\n",
        ),
        "values" => ("", "environment = \"line\"\nmeasurement = \"os\"\n"),
        _ => ("", "environment = \"line\"\nmeasurement = \"timer\"\n"),
    };
    let text = format!(
        "name = \"hostile\"\n{slow}[environment.line]\nkind = \"serial\"\nformat = \"probe\"\ncpus = \"0\"\n\
         command = \"{HARM}={harm} exec {} --exact {test} --nocapture\"\n\
         [[scenario]]\nname = \"line\"\nduration = \"1s\"\n{measured}",
        own.display(),
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
    Suffered { document, said: stderr(&said), kib, bundle: size(&bundle) }
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
    if harm == "traces" {
        let trace = Some(Trace { threads: vec![String::new(); 200_000], ..Trace::default() });
        let outlier = Outlier { activity: 0, series: series(0), at_ns: 1, value_ns: 1, trace };
        let outlier = FromProbe::Outlier(outlier);
        loop {
            say(&outlier)?;
        }
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
                Item::Message(ToProbe::Go) if matches!(harm, "each-kind" | "values") => {
                    let all = if harm == "values" { values() } else { each_kind() };
                    for message in all {
                        say(&serde_json::from_value(message).expect("a message"))?;
                    }
                    // Where it has not said that it is done, it is over with these.
                    for _ in 0..100 {
                        say(&FromProbe::Note(Note::obstacle("x".repeat(5_000), "y".repeat(5_000))))?;
                    }
                }
                Item::Message(ToProbe::Go) => {
                    say(&FromProbe::Tick(tick(0, 0)))?;
                    for n in 1.. {
                        match harm {
                            "cpus" => say(&FromProbe::Tick(tick(u32::try_from(n).unwrap_or(0), n)))?,
                            "outliers" => {
                                let (at_ns, value_ns) = (n, n);
                                let outlier =
                                    Outlier { activity: 0, series: series(0), at_ns, value_ns, trace: None };
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

/// The same message, `count` times.
fn times(count: usize, message: &Value) -> impl Iterator<Item = Value> {
    std::iter::repeat_n(message.clone(), count)
}

/// Every kind of message of a measurement of latencies, as often as it may be said, and as large.
fn each_kind() -> Vec<Value> {
    let cpus: Vec<String> = (0..4096).map(|n| (2 * n).to_string()).collect();
    let moments = vec!["18446744073709"; 8_000].join(" ");
    let (series, total) = (
        series(0),
        json!({ "cycles": u64::MAX, "overruns": u64::MAX, "min_ns": 0, "max_ns": u64::MAX, "sum_ns": u64::MAX }),
    );
    let numbers: Vec<u64> = (0..8_000).flat_map(|n| [n, 1]).collect();
    let counted = json!({ "total": total, "counts": numbers });
    let thread = json!({ "minor_faults": u64::MAX, "major_faults": u64::MAX, "voluntary_switches": u64::MAX,
        "involuntary_switches": u64::MAX, "cpu_ns": u64::MAX, "steal_ns": u64::MAX, "smi": u64::MAX });
    let tick = |n: u64| {
        json!({ "t": "tick", "activity": 0, "series": series, "n": n, "at_ns": u64::MAX, "now": total, "total": total,
            "counts": numbers, "missed": [], "thread": thread })
    };
    let injected = json!({ "t": "injected", "activity": 0, "kind": "x".repeat(9_999), "way": "y".repeat(9_999),
        "cpus": cpus.join(","), "length_ns": u64::MAX, "every_ns": 0, "times": u64::MAX, "longest_ns": u64::MAX, "at": moments });
    let rate = json!({ "against": "z".repeat(999), "least_ppm": u64::MAX, "most_ppm": u64::MAX, "within_ppm": u64::MAX });
    let clock = json!({ "step_ns": u64::MAX, "jump_ns": u64::MAX, "rates": vec![rate; 100] });
    let hello = json!({ "t": "hello", "protocol": PROTOCOL, "version": "v".repeat(9_999), "arch": "../..", "pid": 1,
        "monotonic_ns": u64::MAX, "realtime_ns": u64::MAX, "can": vec!["w".repeat(9_999); 99] });
    let mut said: Vec<Value> = (0..9).map(tick).collect();
    let outlier =
        json!({ "t": "outlier", "activity": 0, "series": series, "at_ns": u64::MAX, "value_ns": u64::MAX });
    let total = json!({ "t": "total", "activity": 0, "series": series, "at_ns": u64::MAX, "total": total, "last": true });
    let trial = json!({ "t": "trial", "activity": 0, "series": series, "stage": "before", "injected_ns": u64::MAX,
        "attempts": u32::MAX, "by": "hog", "quiet": counted, "held": counted });
    let facts = |n: u64| json!({ "t": "facts", "readings": { format!("threads:{n}"): { "text": "f".repeat(16_000) } }, "last": true });
    said.extend(
        times(60, &outlier).chain(times(20, &total)).chain(times(16, &trial)).chain(times(8, &injected)),
    );
    said.extend(
        times(20, &hello)
            .chain(times(20, &json!({ "t": "proven", "told_ns": u64::MAX, "proven_ns": 0, "clock": clock }))),
    );
    said.extend((0..900).map(facts));
    said.extend(times(1000, &json!({ "t": "output", "child": 7, "stream": 1, "data": "eA==" })));
    said.extend(times(
        1,
        &json!({ "t": "done", "end": "complete", "reason": "d".repeat(9_999), "measured_ns": u64::MAX,
        "load_rounds": [[u32::MAX, u64::MAX]], "jump_ns": u64::MAX }),
    ));
    said
}

/// The same of a measurement of values.
fn values() -> Vec<Value> {
    let value = |n: u64| {
        json!({ "t": "value", "activity": 0, "item": "system call", "at": { "bytes": n % 256 }, "unit": "ns", "better": "lower",
            "samples": 1_u64 << (n / 256), "value": 1e308, "low": -1e308, "high": 1e308, "min": -1e308, "max": 1e308,
            "deviation": 1e308, "variation": 1e308, "dropped": u64::MAX, "batch": u64::MAX })
    };
    let counts: Vec<(u32, u64)> = (0..1024).map(|cpu| (cpu, 7)).collect();
    let kinds = vec![json!({ "name": "k".repeat(999), "counts": counts }); 16];
    let thread = json!({ "name": "t".repeat(999), "process": "p".repeat(999), "pid": 1, "ns": u64::MAX });
    let cpu = |cpu: u32| {
        let all = ["user", "nice", "system", "hardirq", "softirq", "guest", "steal", "idle"]
            .map(|kind| (format!("{kind}_ns"), json!(u64::MAX)));
        let mut of: serde_json::Map<String, Value> = all.into_iter().collect();
        of.insert("cpu".into(), json!(cpu));
        of
    };
    let cpus: Vec<_> = (0..1000).map(cpu).collect();
    let breakdown = json!({ "t": "breakdown", "activity": 0, "phase": "TX", "ns": u64::MAX, "switches": u64::MAX, "cpus": cpus,
        "threads": vec![thread; 64], "interrupts": kinds, "softirqs": kinds });
    (0..10 * 256).map(value).chain(times(4, &breakdown)).collect()
}

/// Sends the same until the reader has gone.
fn endless(bytes: &[u8]) -> io::Result<()> {
    let mut out = fs::File::options().write(true).open("/proc/self/fd/1")?;
    loop {
        out.write_all(bytes)?;
    }
}
