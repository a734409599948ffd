//! cyclictest's JSON (`--json`), with its keys as they are: two of them end in a colon.

use std::io::{BufWriter, Write};

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};
use tactus_model::bundle::environment_key;
use tactus_model::number::float;

use super::cyclictest::{self, Thread};
use super::{Export, ExportError, Measured, Options, Out, Shape, Source, of_each};

/// The entry.
pub static ENTRY: Export = Export {
    name: "cyclictest-json",
    about: "cyclictest's JSON (--json), a file for each scenario, with its keys as they are",
    ending: "json",
    shape: Shape::Scenario(write),
    cannot: "missed periods, verdicts, tail bounds, findings, how many values are beyond the histogram (`cycles` has them); the evidence stands in `cmdline:`",
    notes: |source, options| {
        let mut notes = of_each(source.latencies(), |one| {
            let over: u64 = cyclictest::threads(*one, options).iter().map(|thread| thread.overflows).sum();
            (over > 0).then(|| format!("{over} values are beyond the histogram: its `cycles` have them, and no key says how many they are"))
        });
        notes.extend(cyclictest::notes(source, options));
        notes
    },
};

fn write(source: &Source<'_>, one: Measured<'_>, options: Options, out: Out<'_>) -> Result<(), ExportError> {
    let result = &one.row.result;
    let threads = cyclictest::threads(one, options);
    let started = result.started.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let measured = i64::try_from(result.measured_ns).ok().map(jiff::SignedDuration::from_nanos);
    let ended = started.zip(measured).and_then(|(started, measured)| started.checked_add(measured).ok());
    let mut thread = Map::new();
    for (number, one) in threads.iter().enumerate() {
        thread.insert(number.to_string(), of_thread(one));
    }
    let document = json!({
        "file_version": 1,
        "cmdline:": cyclictest::command(one, options),
        "rt_test_version:": env!("CARGO_PKG_VERSION"),
        "start_time": time(started),
        "end_time": time(ended),
        "return_code": 0,
        "sysinfo": sysinfo(source, one),
        "num_threads": threads.len(),
        "resolution_in_ns": u8::from(options.unit_ns() == 1),
        "thread": thread,
    });
    let mut out = BufWriter::new(out);
    serde_json::to_writer_pretty(&mut out, &document).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

fn of_thread(thread: &Thread<'_>) -> Value {
    let mut entries = Map::new();
    if let Some(rows) = &thread.rows {
        let rows: Map<String, Value> =
            rows.iter().map(|(value, count)| (value.to_string(), json!(count))).collect();
        entries.insert("histogram".into(), rows.into());
    }
    entries.insert("cycles".into(), thread.cycles.into());
    entries.insert("min".into(), thread.min.into());
    entries.insert("max".into(), thread.max.into());
    // Two decimals, as cyclictest.
    let hundredths = tactus_model::number::whole(thread.mean * 100.0);
    entries.insert("avg".into(), json!(float(hundredths) / 100.0));
    entries.insert("cpu".into(), thread.key.cpu.into());
    entries.insert("node".into(), 0.into());
    entries.into()
}

/// `Mon, 23 Nov 2026 07:57:25 +0000`; nothing where it is not known.
fn time(moment: Option<jiff::Timestamp>) -> String {
    moment.map_or_else(String::new, |moment| {
        moment.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
    })
}

/// The system that measured, as far as it was read.
fn sysinfo(source: &Source<'_>, one: Measured<'_>) -> Value {
    let key = environment_key(&one.entry.environment, one.entry.host.as_deref());
    let facts = source.contents.facts.get(&key);
    let machine = &source.contents.manifest.machine;
    let (release, version) = machine.kernel.split_once(' ').unwrap_or((&machine.kernel, ""));
    let fact = |name: &str, other: &str| {
        facts
            .and_then(|facts| facts.text(name))
            .unwrap_or(if facts.is_some() { "" } else { other })
            .to_owned()
    };
    let version = fact("uname:version", version);
    let realtime =
        facts.and_then(|facts| facts.text("/sys/kernel/realtime")).is_some_and(|text| text.trim() == "1");
    json!({
        "sysname": "Linux",
        "nodename": fact("uname:nodename", &machine.name),
        "release": fact("uname:release", release),
        "realtime": u8::from(realtime || version.contains("PREEMPT_RT")),
        "version": version,
        "machine": fact("uname:machine", ""),
    })
}
