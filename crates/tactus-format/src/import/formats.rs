//! Every format that is read, declared once: what tells it apart, what makes it, its unit, and what is not in it. And what
//! looks like a tool's output and is not read.

use std::io::BufRead;

use super::{
    cyclictest, hlog, hwlat, jitterdebugger, linuxcnc, oslat, pairs, perf_sched, rtc_testbench, rtla,
    rtla_top, stress_ng, sysjitter, xenomai,
};

/// A format that is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    BareGuest,
    Json,
    Xml,
    HistogramLog,
    Rtla,
    RtlaTop,
    Oslat,
    Hwlat,
    Pairs,
    Xenomai,
    StressNg,
    Sysjitter,
    LinuxCnc,
    PerfLatency,
    PerfTimehist,
    RtcTestbench,
    JitterLive,
    JitterCsv,
    Cyclictest,
    JitterRaw,
}

/// The description of a format.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// The tool, or tools.
    pub tool: &'static str,
    /// The part of it that is read.
    pub what: &'static str,
    /// A command that makes it.
    pub made_by: &'static str,
    /// The unit of its numbers.
    pub unit: &'static str,
    /// Data that it lacks.
    pub lacks: &'static str,
    format: Format,
    /// Whether a line is certainly of it; `None` if the first bytes show it.
    is_line: Option<fn(&str) -> bool>,
}

const fn text(
    format: Format,
    tool: &'static str,
    what: &'static str,
    made_by: &'static str,
    unit: &'static str,
    lacks: &'static str,
    is_line: fn(&str) -> bool,
) -> Declared {
    Declared { tool, what, made_by, unit, lacks, format, is_line: Some(is_line) }
}

const fn bytes(
    format: Format,
    tool: &'static str,
    what: &'static str,
    made_by: &'static str,
    unit: &'static str,
    lacks: &'static str,
) -> Declared {
    Declared { tool, what, made_by, unit, lacks, format, is_line: None }
}

/// Every format, in the order in which lines are tried: the first one that knows a line.
pub const FORMATS: [Declared; 26] = [
    bytes(
        Format::Json,
        "cyclictest",
        "JSON",
        "cyclictest -m -p 95 -i 1000 -D 10m -h 400 --json=run.json",
        "us (ns with -N)",
        "the time of each latency; which one ended the run (-b)",
    ),
    bytes(
        Format::Json,
        "signaltest, cyclicdeadline, pmqtest, ptsematest, svsematest, sigwaittest",
        "JSON",
        "pmqtest -a -t -p 90 -l 100000 -q --json=run.json",
        "us",
        "a histogram; missed periods",
    ),
    bytes(Format::Json, "oslat", "JSON", "oslat -c 2-3 -D 10m --json=run.json", "us", "the time of each gap"),
    bytes(
        Format::Json,
        "jitterdebugger",
        "results.json",
        "jitterdebugger -o out -D 10m",
        "us, or ns if the file says so",
        "values of 1 ms and more one by one; missed periods",
    ),
    bytes(
        Format::Json,
        "RTC-Testbench",
        "its messages by MQTT or UDP, one behind another",
        "mosquitto_sub -t testbench > run.json",
        "us",
        "a histogram; one-way times; the cycle time",
    ),
    bytes(
        Format::Xml,
        "rteval",
        "summary.xml, with cyclictest or timerlat",
        "rteval --duration 10m",
        "us",
        "values beyond its histogram one by one; missed periods",
    ),
    bytes(
        Format::JitterRaw,
        "jitterdebugger",
        "samples.raw",
        "jitterdebugger -o out -s -D 1m",
        "us (--unit ns where it ran with -N)",
        "interval and priority; missed periods",
    ),
    bytes(
        Format::BareGuest,
        "tactus's guest without an operating system",
        "its output on a serial line",
        "docs/guide/bare-metal.md",
        "ns",
        "nothing",
    ),
    text(
        Format::HistogramLog,
        "HdrHistogram",
        "interval logs, in the encodings V0, V1 and V2",
        "java -javaagent:jHiccup.jar -jar program.jar",
        "ns (--unit us where it is another)",
        "the exact minimum and maximum; CPUs",
        hlog::is_line,
    ),
    text(
        Format::Rtla,
        "rtla timerlat hist, rtla osnoise hist",
        "text",
        "rtla timerlat hist -d 10m",
        "us (ns with -n)",
        "the width of its rows (-b); the priority; missed periods",
        rtla::is_line,
    ),
    text(
        Format::RtlaTop,
        "rtla timerlat top, rtla osnoise top",
        "text: only the last table is read",
        "rtla timerlat top -q -d 10m",
        "us (ns with -n)",
        "a histogram; the smallest noise; missed periods",
        rtla_top::is_line,
    ),
    text(
        Format::Oslat,
        "oslat",
        "its table, and that of tactus oslat",
        "oslat -c 2-3 -f 1 -D 10m",
        "us",
        "how large each overflow was, but the largest",
        oslat::is_line,
    ),
    text(
        Format::Hwlat,
        "hwlatdetect",
        "its report",
        "hwlatdetect --duration=10m --threshold=10",
        "us",
        "gaps below the threshold, and outside of the sample windows",
        hwlat::is_line,
    ),
    text(
        Format::Pairs,
        "pmqtest, ptsematest, svsematest, sigwaittest",
        "text: only the last totals are read",
        "ptsematest -a -t -p 90 -l 100000 -q",
        "us",
        "a histogram; missed periods",
        pairs::is_line,
    ),
    text(
        Format::Xenomai,
        "latency of Xenomai, latmus of EVL",
        "text",
        "latency -p 1000 -T 600",
        "us",
        "a histogram; the number of samples",
        xenomai::is_line,
    ),
    text(
        Format::StressNg,
        "stress-ng",
        "its log with --cyclic; its YAML (--yaml) has no latency",
        "stress-ng --cyclic 1 --cyclic-policy fifo --cyclic-dist 1000 -t 60 --log-file run.log",
        "ns",
        "wake-ups beyond --cyclic-samples; CPUs; missed periods",
        stress_ng::is_line,
    ),
    text(
        Format::Sysjitter,
        "sysjitter",
        "its table",
        "sysjitter --runtime 60 200",
        "ns",
        "gaps below its threshold; a histogram",
        sysjitter::is_line,
    ),
    text(
        Format::LinuxCnc,
        "latency-histogram of LinuxCNC",
        "lines of --nox: only the last totals are read",
        "latency-histogram --nox",
        "us",
        "a histogram; the number of values; the mean; CPUs; missed periods",
        linuxcnc::is_line,
    ),
    text(
        Format::PerfLatency,
        "perf sched latency",
        "its table: the delays of each task",
        "perf sched record sleep 60 && perf sched latency",
        "ms",
        "a histogram; the smallest delay; policy and priority",
        perf_sched::is_latency_line,
    ),
    text(
        Format::PerfTimehist,
        "perf sched timehist",
        "its column `sch delay`, by CPU",
        "perf sched record sleep 60 && perf sched timehist",
        "ms",
        "delays that it prints as 0.000; policy and priority",
        perf_sched::is_timehist_line,
    ),
    text(
        Format::RtcTestbench,
        "RTC-Testbench",
        "the log of the reference: only the last round trips are read",
        "reference -c reference.yaml",
        "us",
        "a histogram; one-way times; the cycle time",
        rtc_testbench::is_line,
    ),
    text(
        Format::JitterLive,
        "jitterdebugger",
        "lines of -v: only the last totals are read",
        "jitterdebugger -v -D 1m",
        "us",
        "a histogram; interval and priority; missed periods",
        jitterdebugger::is_live,
    ),
    text(
        Format::Cyclictest,
        "cyclictest",
        "text of -h, -H and --histfile, the stream of -v, status lines",
        "cyclictest -m -p 95 -i 1000 -D 10m -h 400 -q",
        "us (--unit ns where it ran with -N)",
        "missed periods; with -h the interval, the priority and the CPUs",
        cyclictest::is_line,
    ),
    text(
        Format::Cyclictest,
        "cyclicdeadline",
        "status lines",
        "cyclicdeadline -t 4 -i 1000 -D 1m -q",
        "us",
        "a histogram; missed periods",
        cyclictest::is_line,
    ),
    text(
        Format::Cyclictest,
        "signaltest",
        "status lines",
        "signaltest -t 2 -p 90 -l 100000 -q",
        "us",
        "a histogram; the number of cycles",
        cyclictest::is_line,
    ),
    text(
        Format::JitterCsv,
        "jitterdebugger",
        "the table CPU;seconds;value of jittersamples",
        "jittersamples out/samples.raw",
        "us (--unit ns where it ran with -N)",
        "interval and priority; missed periods",
        jitterdebugger::is_csv,
    ),
];

/// The format of lines that begin a file.
pub(super) fn of_lines(start: &[u8]) -> Option<Format> {
    let lines: Vec<String> = start.lines().map_while(Result::ok).collect();
    let knows = |declared: &&Declared| {
        let Some(is_line) = declared.is_line else { return false };
        // Any program may write a table of numbers: the first line must be one of this format.
        let most = if declared.format == Format::JitterCsv { 1 } else { usize::MAX };
        lines.iter().take(most).any(|line| is_line(line))
    };
    FORMATS.iter().find(knows).map(|declared| declared.format)
}

/// Outputs of tools that are not read: a part of a line, the name of the tool, and advice.
const UNREAD: [(&str, &str, &str); 25] = [
    (
        " groups using ",
        "hackbench",
        "it measures the total time of messages, not a latency: measure one beside it, as cyclictest -D 1m \
            --json=run.json",
    ),
    (
        "total number of tasks in use",
        "hackbench",
        "it measures the total time of messages, not a latency: measure one beside it, as cyclictest -D 1m \
            --json=run.json",
    ),
    ("Current Inversions:", "pi_stress", "it counts inversions of priorities, and has no latency"),
    ("Total inversion performed:", "pi_stress", "it counts inversions of priorities, and has no latency"),
    ("forktest#", "ssdd", "it tests ptrace, and has no latency"),
    (
        "queuelat V",
        "queuelat",
        "it shows whether a queue overran, and has no distribution: measure with oslat --json=run.json",
    ),
    (
        "# Running '",
        "perf bench",
        "it prints the time of all operations together, not a latency of each: measure with cyclictest \
            --json=run.json",
    ),
    (
        "blocking on ",
        "perf bench futex",
        "it prints the time of all wake-ups together, not a latency of each: measure with cyclictest \
            --json=run.json",
    ),
    (
        "Runtime summary",
        "perf sched timehist --summary",
        "its times are those that tasks ran, not latencies: import perf sched timehist without -s, or perf \
            sched latency",
    ),
    (
        "#   DURATION     |",
        "perf ftrace latency",
        "it measures how long a function of the kernel takes: measure wake-ups with rtla timerlat hist",
    ),
    (
        "sched:sched_switch:",
        "perf script",
        "its events are no latencies: import perf sched timehist of the same perf.data",
    ),
    (
        " -- TC: ",
        "stat.pl of RTC-Testbench",
        "import the log of the reference, or its messages by MQTT: mosquitto_sub -t testbench > run.json",
    ),
    ("# tracer: timerlat", "the kernel's tracer timerlat", "rtla timerlat hist writes a histogram of it"),
    ("# tracer: osnoise", "the kernel's tracer osnoise", "rtla osnoise hist writes a histogram of it"),
    ("# tracer: hwlat", "the kernel's tracer hwlat", "hwlatdetect writes a report of it"),
    (
        "# tracer: ",
        "a tracer of the kernel",
        "a trace has no latencies of wake-ups: rtla timerlat hist writes a histogram",
    ),
    (
        "Latency Histogram",
        "latency-histogram of LinuxCNC",
        "its window cannot be read: import the lines of latency-histogram --nox",
    ),
    (
        "stressor       bogo ops",
        "stress-ng",
        "its throughput is not a latency: stress-ng --cyclic 1 prints latencies",
    ),
    ("stress-ng: ", "stress-ng", "only the lines of stress-ng --cyclic 1 are latencies"),
    (
        "stressor: cyclic",
        "stress-ng (YAML)",
        "its YAML has the number of wake-ups, but not their latencies: add --log-file run.log, and import that \
            file",
    ),
    (
        "system-info:",
        "stress-ng (YAML)",
        "its throughput is not a latency: stress-ng --cyclic 1 --log-file run.log writes latencies",
    ),
    (
        "hwlat tracer not available",
        "hwlatdetect",
        "the kernel has no hwlat tracer (CONFIG_HWLAT_TRACER): nothing was measured",
    ),
    (
        "tracer timerlat not found",
        "rtla",
        "the kernel has no timerlat tracer (CONFIG_TIMERLAT_TRACER): nothing was measured",
    ),
    (
        "cyclictest V ",
        "cyclictest",
        "it printed its help or its version: give it -q -h 400 or --json=run.json",
    ),
    ("rteval", "rteval", "its report in text is not read: import its summary.xml"),
];

/// The tool that an unknown text looks like, and advice.
pub(super) fn looks_like(beginning: &[u8]) -> Option<(&'static str, &'static str)> {
    let text = String::from_utf8_lossy(beginning).to_lowercase();
    if text.len() < 32 && super::text::decimal(text.trim(), 1).is_some() {
        let help = "a number alone has no unit and no count: measure with cyclictest --json=run.json, or \
            latency-histogram --nox";
        return Some(("perf bench --format=simple, or LinuxCNC's file .latency", help));
    }
    let found = UNREAD.iter().find(|(part, ..)| text.contains(&part.to_lowercase()));
    found.map(|(_, tool, help)| (*tool, *help))
}
