//! The common part of rt-tests' JSON documents: the command, its time and machine, and a list of threads.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::tz::TimeZone;
use serde::Serialize;
use tactus_model::bundle::environment_key;
use tactus_model::text::clean;

use super::{Measured, Source};

/// The document of a row, with a newline at its end; `command` is the command that it claims,
/// `resolution_in_ns` cyclictest's alone.
///
/// # Errors
/// When it cannot be written.
pub(super) fn document<T: Serialize>(
    source: &Source<'_>,
    one: Measured<'_>,
    command: String,
    resolution_in_ns: Option<u8>,
    threads: Vec<T>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let document = Document {
        head: Head::of(source, one, command),
        num_threads: threads.len(),
        resolution_in_ns,
        thread: threads.into_iter().enumerate().collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// The document, its keys in rt-tests' order.
#[derive(Serialize)]
struct Document<T> {
    #[serde(flatten)]
    head: Head,
    num_threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution_in_ns: Option<u8>,
    thread: BTreeMap<usize, T>,
}

/// The beginning; two of its keys end in a colon.
#[derive(Serialize)]
struct Head {
    file_version: u32,
    #[serde(rename = "cmdline:")]
    command: String,
    #[serde(rename = "rt_test_version:")]
    version: &'static str,
    start_time: String,
    end_time: String,
    return_code: u32,
    sysinfo: Sysinfo,
}

impl Head {
    /// The document of a row; `command` is the command that it claims.
    fn of(source: &Source<'_>, one: Measured<'_>, command: String) -> Self {
        let result = &one.row.result;
        let started = result.started.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
        let measured = i64::try_from(result.measured_ns).ok().map(jiff::SignedDuration::from_nanos);
        let ended = started.zip(measured).and_then(|(started, measured)| started.checked_add(measured).ok());
        Self {
            file_version: 1,
            command,
            version: env!("CARGO_PKG_VERSION"),
            start_time: time(started),
            end_time: time(ended),
            return_code: 0,
            sysinfo: sysinfo(source, one),
        }
    }
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

/// `Mon, 23 Nov 2026 07:57:25 +0000`; empty if unknown.
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
