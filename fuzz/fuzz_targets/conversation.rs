//! The conversation with a probe that means harm: whatever it says in frames that arrive whole, the run comes to its
//! end, its bundle can be read whole, and everything is made of it that a user can have.
//!
//! An input is the number of a plan, then lines. A line is a message as JSON; `--` waits for the next word to the probe;
//! `*N` says the line after it N times; `!` loses a frame. Any other line is said as it is.

#![cfg_attr(fuzzing, no_main)]

mod played;
#[expect(dead_code, reason = "the samples are for the reader of bundles")]
mod sample;

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{OnceLock, PoisonError};

use libfuzzer_sys::{Corpus, fuzz_target};
use played::{Machine, PARTS, PLAYED};
use serde_json::value::RawValue;
use tactus_model::event::RunStatus;
use tactus_model::message::FromProbe;
use tactus_model::plan::Plan;
use tactus_model::wire::Encoder;
use tactus_run::plan::{Choices, Resolved, Source, parse, resolve};
use tactus_run::{Destination, Interrupt, Marks, Request, execute};
use tactus_system::{Memory, topology};

/// Longest input that is tried, and the most that is said: enough for every message, and quick.
const LONGEST: usize = 16 * 1024;
const MOST: usize = 2 << 20;

/// What is measured: latencies beside a load, windows of time, values.
const PLANS: [&str; 3] = [
    r#"name = "fuzzed"
[environment.guest]
kind = "host"
cpus = "1-2"
[[scenario]]
name = "timer"
environment = "guest"
measurement = "timer"
policy = "fifo"
load = ["cpu"]
duration = "10s"
"#,
    r#"name = "fuzzed"
[environment.guest]
kind = "host"
cpus = "1-2"
[[scenario]]
name = "hog"
environment = "guest"
measurement = "spin"
policy = "fifo"
fault = { kind = "hog", length = "4ms", every = "1s" }
duration = "10s"
"#,
    r#"name = "fuzzed"
[environment.guest]
kind = "host"
cpus = "1"
[[scenario]]
name = "os"
environment = "guest"
measurement = "os"
duration = "10s"
"#,
];

struct Stage {
    dir: PathBuf,
    machine: Machine,
    plans: Vec<(Plan, Resolved)>,
}

static STAGE: OnceLock<Stage> = OnceLock::new();

/// In a directory of its own, which the script that runs the fuzzer removes.
fn stage() -> Stage {
    let dir = tempfile::tempdir().expect("a directory").keep();
    let machine = Memory::new()
        .root()
        .file("/sys/devices/system/cpu/online", "0-3\n")
        .set("TACTUS_CACHE_DIR", &dir.display().to_string());
    let machine = Machine(machine);
    let plans = PLANS.map(|text| {
        let source = Source::new("plan.toml", text);
        let plan = parse(&source).expect("a plan");
        let mut resolved = resolve(&plan, &source, &Choices::default(), &topology(&machine), &machine)
            .expect("a plan that this machine can do");
        for environment in resolved.environments.values_mut() {
            (environment.kind, environment.obstacle) = (&PLAYED, None);
        }
        assert!(resolved.scenarios.iter().all(|scenario| scenario.skip.is_none()));
        (plan, resolved)
    });
    Stage { dir, machine, plans: plans.into() }
}

/// The parts of what is said, each after another word to the probe.
fn parts(lines: &str) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new();
    let (mut parts, mut said, mut times) = (vec![Vec::new()], 0, 1);
    for line in lines.lines() {
        let part = parts.last_mut().expect("one at least");
        match line {
            "--" => parts.push(Vec::new()),
            "!" => drop(encoder.encode(&FromProbe::Ready)),
            _ if line.starts_with('*') => times = line[1..].parse().unwrap_or(1).min(2000),
            _ => {
                let message = serde_json::from_str::<&RawValue>(line).ok();
                for _ in 0..std::mem::replace(&mut times, 1) {
                    let bytes = match message {
                        Some(message) => encoder.encode(&message).expect("JSON"),
                        None => [line.as_bytes(), b"\n"].concat(),
                    };
                    said += bytes.len();
                    if said > MOST {
                        return parts;
                    }
                    part.extend(bytes);
                }
            }
        }
    }
    parts
}

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((which, lines)) = data.split_first() else { return Corpus::Reject };
    let Ok(lines) = std::str::from_utf8(lines) else { return Corpus::Reject };
    if lines.len() > LONGEST {
        return Corpus::Reject;
    }
    let stage = STAGE.get_or_init(stage);
    let (plan, resolved) = &stage.plans[usize::from(*which) % stage.plans.len()];
    *PARTS.lock().unwrap_or_else(PoisonError::into_inner) = parts(lines);
    let run = stage.dir.join("run");
    let bundle = stage.dir.join("bundle");
    for dir in [&run, &bundle] {
        let _ = fs::remove_dir_all(dir);
    }
    DirBuilder::new().mode(0o700).create(&run).expect("a directory for the journal");
    let request = Request {
        resolved,
        choices: &Choices::default(),
        into: Destination::New(bundle.as_path().into(), plan),
        interrupt: &Interrupt::default(),
        marks: &Marks::default(),
        machine: &topology(&stage.machine),
    };
    let executed = execute(&request, &stage.machine, Vec::new()).expect("no probe ends a run");
    assert_eq!(executed.contents.manifest.status, RunStatus::Complete);
    assert!(executed.contents.damage.is_empty(), "{:?}", executed.contents.damage);
    assert_eq!(executed.contents.rows.len(), resolved.rows.len());
    sample::report(&executed.contents, lines.len());
    Corpus::Keep
});
