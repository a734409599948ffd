//! cyclictest's JSON (`--json`), with its keys as they are: two of them end in a colon.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use jiff::tz::TimeZone;
use serde::Serialize;
use tactus_model::bundle::environment_key;
use tactus_model::number::float;
use tactus_model::text::clean;

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
    let mut out = BufWriter::new(out);
    let threads = cyclictest::threads(one, options);
    document(source, one, threads, cyclictest::command(one, options), options, &mut out)?;
    Ok(out.flush()?)
}

/// Every series of a bundle as a thread of one cyclictest, in its order. `command` is what it says was called; without
/// rows in the options the histograms stay empty, as cyclictest's without `-h`.
///
/// # Errors
/// When it cannot be written.
pub fn whole(source: &Source<'_>, command: String, options: Options, out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = source.latencies().next() else { return Ok(()) };
    let mut threads: Vec<Thread<'_>> =
        source.latencies().flat_map(|one| cyclictest::threads(one, options)).collect();
    if options.histogram.is_none() {
        threads.iter_mut().for_each(|thread| thread.rows = Some(BTreeMap::new()));
    }
    document(source, first, threads, command, options, out)
}

fn document(
    source: &Source<'_>,
    one: Measured<'_>,
    threads: Vec<Thread<'_>>,
    command: String,
    options: Options,
    out: &mut dyn Write,
) -> io::Result<()> {
    let result = &one.row.result;
    let started = result.started.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let measured = i64::try_from(result.measured_ns).ok().map(jiff::SignedDuration::from_nanos);
    let ended = started.zip(measured).and_then(|(started, measured)| started.checked_add(measured).ok());
    let document = Document {
        file_version: 1,
        command,
        version: env!("CARGO_PKG_VERSION"),
        start_time: time(started),
        end_time: time(ended),
        return_code: 0,
        sysinfo: sysinfo(source, one),
        num_threads: threads.len(),
        resolution_in_ns: u8::from(options.unit_ns() == 1),
        thread: threads.into_iter().map(of_thread).enumerate().collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// The document, its keys in cyclictest's order.
#[derive(Serialize)]
struct Document {
    file_version: u32,
    #[serde(rename = "cmdline:")]
    command: String,
    #[serde(rename = "rt_test_version:")]
    version: &'static str,
    start_time: String,
    end_time: String,
    return_code: u32,
    sysinfo: Sysinfo,
    num_threads: usize,
    resolution_in_ns: u8,
    thread: BTreeMap<usize, ThreadEntry>,
}

#[derive(Serialize)]
struct Sysinfo {
    sysname: &'static str,
    nodename: String,
    release: String,
    version: String,
    machine: String,
    realtime: u8,
}

#[derive(Serialize)]
struct ThreadEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<BTreeMap<u64, u64>>,
    cycles: u64,
    min: u64,
    max: u64,
    avg: f64,
    cpu: u32,
    node: u32,
}

fn of_thread(thread: Thread<'_>) -> ThreadEntry {
    // Two decimals, as cyclictest.
    let hundredths = tactus_model::number::whole(thread.mean * 100.0);
    ThreadEntry {
        histogram: thread.rows,
        cycles: thread.cycles,
        min: thread.min,
        max: thread.max,
        avg: float(hundredths) / 100.0,
        cpu: thread.key.cpu,
        node: 0,
    }
}

/// `Mon, 23 Nov 2026 07:57:25 +0000`; nothing where it is not known.
fn time(moment: Option<jiff::Timestamp>) -> String {
    moment.map_or_else(String::new, |moment| {
        moment.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
    })
}

/// The system that measured, as far as it was read.
fn sysinfo(source: &Source<'_>, one: Measured<'_>) -> Sysinfo {
    let key = environment_key(&one.entry.environment, one.entry.host.as_deref());
    let facts = source.contents.facts.get(&key);
    let machine = &source.contents.manifest.machine;
    let (release, version) = machine.kernel.split_once(' ').unwrap_or((&machine.kernel, ""));
    let fact = |name: &str, other: &str| match facts {
        Some(facts) => clean(facts.text(name).unwrap_or_default()),
        None => clean(other),
    };
    let version = fact("uname:version", version);
    let realtime =
        facts.and_then(|facts| facts.text("/sys/kernel/realtime")).is_some_and(|text| text.trim() == "1");
    Sysinfo {
        sysname: "Linux",
        nodename: fact("uname:nodename", &machine.name),
        release: fact("uname:release", release),
        realtime: u8::from(realtime || version.contains("PREEMPT_RT")),
        version,
        machine: fact("uname:machine", ""),
    }
}
