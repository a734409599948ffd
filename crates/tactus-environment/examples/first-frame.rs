//! Starts an environment and prints what it took: one JSON line per start.
//!
//! `cargo run --release --example first-frame -- KIND [key=value]... [--twice]`, for
//! `scripts/bench/guest-start.py` and `container-start.py`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example says what it found")]
#![expect(clippy::disallowed_methods, reason = "a tool of the developers, not a part of tactus")]

use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tactus_environment::{self as environment, ConsoleFile, Environment, Setting};
use tactus_model::message::{FromProbe, ToProbe};
use tactus_model::plan;
use tactus_model::topology::Topology;
use tactus_model::wire::{Decoder, Encoder, Item};
use tactus_system::guardian::Guardian;
use tactus_system::topology;
use tactus_system::{Directory, Real};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let kind = words.next().unwrap_or_else(|| "qemu".into());
    let mut spec = plan::Environment { kind: kind.clone(), ..plan::Environment::default() };
    let mut times = 1;
    for word in words {
        if word == "--twice" {
            times = 2;
            continue;
        }
        let (key, value) = word.split_once('=').ok_or("key=value")?;
        spec.options.insert(key.into(), value.into());
    }
    let environment = environment::find(&kind).ok_or("no such kind of environment")?;
    let machine = topology(&Real);
    let guardian = Guardian::start(&Real)?;
    let workspace = guardian.workspace()?;
    for _ in 0..times {
        start(environment, &spec, &machine, &guardian, workspace.path())?;
    }
    drop(workspace);
    guardian.finish();
    Ok(())
}

fn start(
    environment: &dyn Environment,
    spec: &plan::Environment,
    machine: &Topology,
    guardian: &Guardian,
    workspace: &Path,
) -> Result<(), Box<dyn Error>> {
    let layout = environment.layout(&machine.allowed, false, machine);
    let console = ConsoleFile::new(&Directory::open(workspace)?, "console.log");
    let setting = Setting {
        system: &Real,
        guardian,
        name: "bench",
        spec,
        layout: &layout,
        housekeeping: machine.housekeeping(&machine.measuring()),
        measured: layout.measuring.clone(),
        workspace,
        console,
        patience: Duration::from_secs(60),
        network: None,
        card: None,
    };
    let began = Instant::now();
    let mut running = environment.start(&setting)?;
    let started = began.elapsed();
    let stream = running.take_stream().ok_or("no stream")?;
    let (mut reader, mut writer) = (stream.reader, stream.writer);
    let mut decoder = Decoder::new();
    let (mut hello, mut buffer) = (None, [0; 4096]);
    let facts = loop {
        let read = reader.read(&mut buffer)?;
        if read == 0 {
            return Err(running.last_words().unwrap_or_default().into());
        }
        let items: Vec<Item<FromProbe>> = decoder.feed(&buffer[..read]);
        if hello.is_none() && items.iter().any(|item| matches!(item, Item::Message(FromProbe::Hello(_)))) {
            hello = Some(began.elapsed());
        }
        if items.iter().any(|item| matches!(item, Item::Message(FromProbe::Facts { last: true, .. }))) {
            break began.elapsed();
        }
    };
    for note in running.after_hello()? {
        eprintln!("{:?}: {}", note.kind, note.text);
    }
    let ending = Instant::now();
    writer.write_all(&Encoder::new().encode(&ToProbe::Quit)?)?;
    drop(writer);
    running.stop();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let line = serde_json::json!({
        "kind": environment.kind(), "spawned_ms": ms(started), "hello_ms": hello.map(ms), "facts_ms": ms(facts), "stopped_ms": ms(ending.elapsed()),
    });
    println!("{line}");
    if std::env::var_os("TACTUS_SHOW_CONSOLE").is_some() {
        std::io::stderr().write_all(&std::fs::read(workspace.join("console.log")).unwrap_or_default())?;
    }
    Ok(())
}
