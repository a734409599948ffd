//! Files as users have them: outputs of the field's tools with the text around them, and the right values of
//! each. Names of people and machines in them are neutral.

#![expect(clippy::disallowed_methods, reason = "fixtures are read beside the door")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tactus_format::import::{FORMATS, Options, Policy, Recording, Series, read};

/// Where a file is from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A public mail, page or repository.
    Public,
    /// The tool, run in a virtual machine.
    Tool,
    /// Made after the tool's source or documentation.
    Layout,
}
use Source::{Layout, Public, Tool};

/// Each file, its source, and what must be said of it; a file that is not read must be refused in these words.
const CASES: &[(&str, Source, &[&str])] = &[
    // Its own column says 1895.825 ms: the largest value of the last bucket.
    (
        "jhiccup-v1.hlog",
        Public,
        &["HdrHistogram log of jHiccup version 2.0.6", "cycles 65964, max 1895825407"],
    ),
    (
        "oslat-1.10.txt",
        Public,
        &["oslat 1.10, Some(Fifo)", "cpu Some(6) priority Some(1)", "largest 17000", "duration 10003000000"],
    ),
    ("oslat-2.40.txt", Tool, &["oslat 2.40, None", "largest 16174000", "it set no priority"]),
    ("hwlatdetect.txt", Public, &["cycles 6, max 48000", "duration 900000000000", "SMIs during run: 0"]),
    ("hwlatdetect-nothing.txt", Layout, &["nothing: it saw no gap above 10 us"]),
    ("hwlatdetect-without-tracer.txt", Tool, &["REFUSED", "hwlatdetect", "CONFIG_HWLAT_TRACER"]),
    (
        "rtla-timerlat-rows-far-apart.txt",
        Public,
        &["IRQ", "max 6000, min 6000", "max 21000, min 21000", "cycles 0"],
    ),
    (
        "rtla-osnoise-nothing.txt",
        Public,
        &["nothing: it saw no noise above its threshold", "duration 5000000000"],
    ),
    (
        "rtla-osnoise-top.txt",
        Public,
        &["largest 277000", "min unknown", "duration 60000000000", "Max Single"],
    ),
    ("rtla-timerlat-top.txt", Layout, &["IRQ", "largest 51200", "ended by Some(51200)", "hit stop tracing"]),
    ("rtla-without-tracer.txt", Tool, &["REFUSED", "rtla", "CONFIG_TIMERLAT_TRACER"]),
    ("xenomai-latency.txt", Public, &["max 49833, min 4374, mean 6187", "overruns 0", "duration 4000000000"]),
    ("latmus.txt", Layout, &["cpu Some(1) priority Some(98)", "max 3899, min 1182, mean 1313"]),
    (
        "cyclicdeadline-break.txt",
        Public,
        &["cyclicdeadline, Some(Deadline)", "ended by Some(51000)", "largest 51000", "max 18000"],
    ),
    (
        "cyclictest-sched-other.txt",
        Public,
        &["cyclictest, Some(Other)", "largest 2199000", "load average 3.71 4.06 3.51", "missed 2"],
    ),
    ("cyclictest-v-break.txt", Public, &["ended by Some(115000)", "cycles 11, max 115000"]),
    ("cyclictest-v-break-2.4.txt", Tool, &["ended by Some(210000)", "max 210000", "cpu Some(1)"]),
    (
        "cyclictest-status-200us.txt",
        Public,
        &["Some(Fifo)", "largest 1076000", "missed 5", "priority Some(80)"],
    ),
    (
        "stress-ng-cyclic.txt",
        Public,
        &["stress-ng --cyclic, Some(Deadline)", "cycles 10000, max 3145065, min 2413", "99.90% 1360837 ns"],
    ),
    // The YAML of stress-ng 0.15 and of its sources up to 2025 has no latency of --cyclic.
    ("stress-ng-cyclic.yaml", Tool, &["REFUSED", "stress-ng (YAML)", "not their latencies", "--log-file"]),
    (
        "stress-ng-cyclic-dist.log",
        Tool,
        &[
            "stress-ng --cyclic, Some(Rr)",
            "cycles 18060, max 202541, min 4434, mean 7376",
            "p50 7999, p99 21999",
        ],
    ),
    (
        "stress-ng-cyclic-dist-and-yaml.txt",
        Tool,
        &[
            "Some(Fifo)",
            "cycles 10000, max 287615, min 5405, mean 7753",
            "first 10000 of ",
            "kernel 6.18.44-fc-v657 #1 SMP PREEMPT_DYNAMIC @0",
            "measured on 2026:11:29",
        ],
    ),
    (
        "linuxcnc-latency-histogram.txt",
        Tool,
        &[
            "LinuxCNC latency-histogram, Some(Other), all",
            "cycles 2, max 3194800, min unknown, mean unknown",
            "cycles 2, max 2963000, min unknown, mean unknown",
            "up to 3194.8 us too long and 24.8 us too short",
            "interval 0, duration 11000000000",
        ],
    ),
    (
        "perf-sched-latency.txt",
        Tool,
        &[
            "perf sched latency, None",
            "cycles 45, max 12017000, min unknown, mean unknown",
            "thread 5 is `lto cgu.06:25356`: its mean delay is 1220 us",
            "that of `lto cgu.00:25348`",
            "tasks of every policy",
        ],
    ),
    ("perf-sched-timehist.txt", Tool, &["perf sched timehist", "cpu Some(1)", "min unknown", "0.000"]),
    ("perf-sched-timehist-summary.txt", Tool, &["REFUSED", "perf sched timehist --summary", "without -s"]),
    ("perf-bench.txt", Tool, &["REFUSED", "perf bench", "not a latency of each", "cyclictest"]),
    ("perf-bench-simple.txt", Tool, &["REFUSED", "perf bench --format=simple", "no unit"]),
    (
        "rtc-testbench-reference.log",
        Layout,
        &[
            "cycles 703936, max 2114000, min 1786000, mean 1800740",
            "cycles 1407872, max 1797000, min 1753000, mean 1780023",
            "704000 frames sent, 703936 received, 3 round trips longer than two cycles",
            "thread 2: it has no round trip",
            "duration 999999986",
        ],
    ),
    (
        "rtc-testbench-public.log",
        Public,
        &[
            "cycles 14, max 2997000, min 2071000, mean 2204286",
            "cycles 22, max 1003180000",
            "largest 1003180000",
        ],
    ),
    (
        "rtc-testbench-mqtt.json",
        Layout,
        &[
            "cycles 191999, max 2114000, min 1786000, mean 1800667",
            "cycles 200, max 1790000, min 1753000, mean 1775500",
            "duration 2000000000",
        ],
    ),
    (
        "rtc-testbench-udp.json",
        Layout,
        &["cycles 2999, max 2114000, min 1780000, mean 1802000", "1 round trips longer"],
    ),
    // Histograms of HdrHistogram 1.2.1, whose counts are words of 8, 4 and 2 bytes: 3000 values from 2001 to 25093677.
    (
        "hdrhistogram-v0.hlog",
        Tool,
        &["cycles 3000, max 25100287, min 2001, mean 63", "duration 3000000000", "of HdrHistogram 1.2.1"],
    ),
    (
        "two-cyclictest-q.txt",
        Tool,
        &["run 1", "run 2", "max 36000", "max 2408000", "max 1280000", "max 216000"],
    ),
    ("two-cyclictest-h.txt", Tool, &["run 1", "run 2", "max 476000", "max 10082000"]),
    ("two-cyclictest-v.txt", Tool, &["run 1", "run 2", "cycles 60"]),
    ("two-cyclictest.json", Tool, &["run 1", "run 2", "cyclictest 2.40"]),
    ("two-oslat.txt", Tool, &["run 1", "run 2", "oslat 2.40"]),
    ("two-oslat.json", Tool, &["run 1", "run 2", "oslat 2.40"]),
    ("rteval-timerlat.xml", Layout, &["rteval (timerlat)", "largest 48000", "duration 60000000000"]),
    (
        "rteval-breaktrace.xml",
        Layout,
        &[
            "ended by Some(2718000)",
            "largest 2718000",
            "load average 9.25",
            "kernel 2.6.33.9-rt31.75.el6rt.x86_64",
        ],
    ),
    ("pmqtest.json", Tool, &["pmqtest 2.40, Some(Fifo)", "largest 44000", "cycles 338", "missed 0"]),
    ("ptsematest.json", Tool, &["ptsematest 2.40", "max 34000", "max 31000"]),
    ("sigwaittest.json", Tool, &["sigwaittest 2.40", "largest 40000", "measured on Sat, 28 Nov 2026"]),
    ("svsematest.json", Tool, &["svsematest 2.40", "largest 35000", "PREEMPT_RT: no"]),
    ("pmqtest.txt", Tool, &["pmqtest, Some(Other)", "cycles 180, max 161000, min 4000, mean 9000"]),
    ("ptsematest.txt", Tool, &["Some(Other)", "cycles 200, max 7963000", "cycles 146, max 38000"]),
    ("sigwaittest.txt", Tool, &["Some(Other)", "cycles 200, max 1605000"]),
    ("svsematest.txt", Tool, &["Some(Other)", "cycles 200, max 27000"]),
    ("signaltest.txt", Tool, &["signaltest, Some(Other)", "max 26032000", "largest 29832000"]),
    ("jitterdebugger-v.txt", Tool, &["jitterdebugger", "cycles 234, max 153000, min 7000, mean 16620"]),
    ("jitterdebugger-live-then-json.txt", Tool, &["jitterdebugger", "cycles 50, max 48000"]),
    ("sysjitter.txt", Layout, &["sysjitter", "cycles 812, max 14321, min 246, mean 1330", "cpu Some(3)"]),
    (
        "kubectl-timestamps.txt",
        Public,
        &["largest 34000", "Some(Fifo)", "priority Some(1)", "interval 1000000"],
    ),
    ("journald-short.txt", Layout, &["Some(Other)", "largest 2199000"]),
    ("journald-iso.txt", Layout, &["oslat 1.10", "largest 17000"]),
    ("compose.txt", Layout, &["nothing: it saw no noise"]),
    ("ci-log.txt", Layout, &["pmqtest 2.40", "largest 44000"]),
    ("quoted.md", Layout, &["largest 1076000"]),
    ("indented.md", Layout, &["max 49833"]),
    ("hackbench.txt", Tool, &["REFUSED", "hackbench", "not a latency"]),
    ("pi_stress.txt", Tool, &["REFUSED", "pi_stress", "no latency"]),
    ("ssdd.txt", Tool, &["REFUSED", "ssdd", "no latency"]),
    ("queuelat-help.txt", Tool, &["REFUSED", "queuelat", "oslat"]),
];

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/field").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Everything that is read of a file, in words.
fn said(bytes: &[u8]) -> String {
    let recordings = match read(bytes, Options::default()) {
        Ok(recordings) => recordings,
        Err(error) => return format!("REFUSED: {error}\nhint: {}", error.hint.as_deref().unwrap_or("none")),
    };
    let mut text = String::new();
    for one in &recordings {
        let part = one.part.unwrap_or("all");
        let _ = writeln!(text, "{}, {:?}, {part}", one.instrument, one.policy);
        if let Some(run) = one.run {
            let _ = writeln!(text, "run {run}");
        }
        for series in &one.series {
            let mean = series
                .latency()
                .totals
                .mean_ns()
                .map_or_else(|| "unknown".into(), |mean| format!("{mean:.0}"));
            let totals = &series.totals;
            let min = if series.knows_min { totals.min_ns.to_string() } else { "unknown".into() };
            let _ = writeln!(
                text,
                "cpu {:?} priority {:?}: cycles {}, max {}, min {min}, mean {mean}, overruns {}",
                series.cpu, series.priority, totals.cycles, totals.max_ns, totals.overruns
            );
            let summary = series.latency().summary();
            if let (Some(p50), Some(p99)) = (summary.p50_ns, summary.p99_ns) {
                let _ = writeln!(text, "p50 {p50}, p99 {p99}");
            }
        }
        let _ = writeln!(
            text,
            "largest {}",
            one.series.iter().map(|series| series.totals.max_ns).max().unwrap_or(0)
        );
        let _ = writeln!(
            text,
            "interval {}, duration {}",
            one.interval_ns.unwrap_or(0),
            one.duration_ns.unwrap_or(0)
        );
        let _ = writeln!(
            text,
            "missed {}, kernel {}",
            one.least_missed(),
            one.kernel.as_deref().unwrap_or("unknown")
        );
        if let Some(ended) = &one.ended_by {
            let _ = writeln!(text, "ended by {:?}: {}", ended.value_ns, ended.said);
        }
        if let Some(nothing) = &one.found_nothing {
            let _ = writeln!(text, "nothing: {nothing}");
        }
        one.conditions.iter().chain(&one.notes).for_each(|line| text += &format!("{line}\n"));
    }
    text
}

#[test]
fn every_file_of_the_field_is_right_or_refused_with_what_would_help() {
    let (mut right, mut refused, mut wrong) = (0, 0, Vec::new());
    for (name, source, wanted) in CASES {
        let found = said(&file(name));
        match wanted.iter().find(|words| !found.contains(**words)) {
            Some(words) => wrong.push(format!("{name} ({source:?}): `{words}` is not in:\n{found}")),
            None if found.starts_with("REFUSED") => refused += 1,
            None => right += 1,
        }
    }
    println!("tried {}, right {right}, refused with reason {refused}, wrong {}", CASES.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_that_is_kept_is_a_case() {
    let kept = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/field")).unwrap();
    for entry in kept {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(CASES.iter().any(|(known, ..)| *known == name), "{name} is no case");
    }
}

/// Whether a part of a file says no more than all of it.
fn says_no_more(part: &Recording, whole: &Recording) -> Result<(), String> {
    if part.policy.is_some() && whole.policy.is_some() && part.policy != whole.policy {
        return Err(format!("policy {:?}", part.policy));
    }
    if part.found_nothing.is_some() && whole.found_nothing.is_none() {
        return Err("nothing was found".into());
    }
    let of = |series: &Series| whole.series.iter().find(|own| own.thread == series.thread).cloned();
    for series in part.series.iter().filter(|series| series.totals.cycles > 0) {
        let Some(own) = of(series) else {
            return Err(format!("a thread {} that is not there", series.thread));
        };
        // A latency that ended the run may be counted with another thread, where the file no longer says whose it was.
        let most = if whole.ended_by.is_some() {
            whole.series.iter().map(|series| series.totals.max_ns).max().unwrap_or(0)
        } else {
            own.totals.max_ns
        };
        let more = u64::from(whole.ended_by.is_some());
        let sound = series.totals.max_ns <= most
            && series.totals.cycles <= own.totals.cycles + more
            && (!series.knows_min || series.totals.min_ns >= own.totals.min_ns);
        if !sound {
            return Err(format!("{:?} of {:?}", series.totals, own.totals));
        }
    }
    Ok(())
}

#[test]
fn whatever_line_is_lost_the_rest_is_the_same_says_less_or_is_refused() {
    for (name, ..) in CASES {
        let bytes = file(name);
        let Ok(whole) = read(bytes.as_slice(), Options::default()) else { continue };
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let step = (lines.len() / 200).max(1);
        for lost in (0..lines.len()).step_by(step) {
            let rest: Vec<u8> = lines
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != lost)
                .flat_map(|(_, line)| *line)
                .copied()
                .collect();
            let Ok(part) = read(rest.as_slice(), Options::default()) else { continue };
            for own in &part {
                // A run of the whole file, whichever it is, has all that it says.
                let of_part = whole.iter().filter(|whole| whole.part == own.part);
                let said: Vec<_> = of_part.map(|whole| says_no_more(own, whole)).collect();
                assert!(!said.is_empty(), "{name} without line {}: a part that is not there", lost + 1);
                if said.iter().all(Result::is_err) {
                    panic!(
                        "{name} without line {}: {said:?}\n{}",
                        lost + 1,
                        String::from_utf8_lossy(lines[lost])
                    );
                }
            }
        }
    }
}

/// The figures of every thread of every recording, in a line each.
fn figures(recordings: &[Recording]) -> Vec<String> {
    let of = |one: &Recording| {
        let figures = |series: &Series| {
            let totals = &series.totals;
            let (cycles, min, max) = (totals.cycles, totals.min_ns, totals.max_ns);
            format!("{:?} {:?} {cycles} {min} {max}", one.part, series.thread)
        };
        one.series.iter().map(figures).collect::<Vec<_>>()
    };
    recordings.iter().flat_map(of).collect()
}

/// Files that are known to be one run each, and can stand behind another one of their format.
const RUNS: [(&str, &str); 14] = [
    ("two-cyclictest-q.txt", "cyclictest-status-200us.txt"),
    ("two-cyclictest-h.txt", "two-cyclictest-q.txt"),
    ("cyclictest-v-break.txt", "cyclictest-v-break-2.4.txt"),
    ("oslat-1.10.txt", "oslat-2.40.txt"),
    ("hwlatdetect.txt", "hwlatdetect-nothing.txt"),
    ("rtla-timerlat-rows-far-apart.txt", "rtla-osnoise-nothing.txt"),
    ("rtla-timerlat-top.txt", "rtla-osnoise-top.txt"),
    ("xenomai-latency.txt", "xenomai-latency.txt"),
    ("pmqtest.txt", "pmqtest.txt"),
    ("stress-ng-cyclic.txt", "stress-ng-cyclic-dist.log"),
    ("sysjitter.txt", "sysjitter.txt"),
    ("jitterdebugger-v.txt", "jitterdebugger-v.txt"),
    ("perf-sched-latency.txt", "perf-sched-latency.txt"),
    ("perf-sched-timehist.txt", "perf-sched-timehist.txt"),
];

#[test]
fn two_runs_in_one_file_are_the_two_runs_and_never_one() {
    let pairs = RUNS.into_iter().flat_map(|(a, b)| [(a, b), (b, a), (a, a)]);
    let json = [("pmqtest.json", "ptsematest.json"), ("two-cyclictest.json", "sigwaittest.json")];
    for (first, second) in pairs.chain(json) {
        let (a, b) = (file(first), file(second));
        let alone = |bytes: &[u8]| figures(&read(bytes, Options::default()).unwrap());
        let both = [a.as_slice(), b.as_slice()].concat();
        let found = read(both.as_slice(), Options::default())
            .unwrap_or_else(|error| panic!("{first} and {second}: {error}"));
        let wanted = [alone(&a), alone(&b)].concat();
        assert_eq!(figures(&found), wanted, "{first} and {second}");
        let runs: Vec<Option<u32>> = found.iter().map(|one| one.run).collect();
        assert!(runs.iter().all(Option::is_some) && runs.is_sorted(), "{first} and {second}: {runs:?}");
    }
}

fn text(lines: &[&str]) -> Result<Vec<Recording>, String> {
    let text = lines.join("\n") + "\n";
    read(text.as_bytes(), Options::default()).map_err(|error| error.to_string())
}

#[test]
fn runs_whose_threads_have_the_same_ids_are_two_if_their_totals_say_so() {
    let line = |cycles: u64, min: u64, max: u64| {
        format!("T: 0 (    7) P:80 I:1000 C:{cycles:7} Min:{min:7} Act:{min:5} Avg:{min:5} Max:{max:8}")
    };
    let found = |lines: [String; 2]| text(&lines.each_ref().map(String::as_str)).unwrap();
    // Containers number their processes alike.
    for second in [line(1000, 4, 60), line(900, 3, 60), line(2000, 3, 40), line(2000, 9, 60)] {
        let found = found([line(1000, 3, 50), second.clone()]);
        assert_eq!(found.iter().map(|one| one.run).collect::<Vec<_>>(), [Some(1), Some(2)], "{second}");
    }
    // The same line again, and later totals of the same run.
    for second in [line(1000, 3, 50), line(2000, 2, 60)] {
        assert_eq!(found([line(1000, 3, 50), second]).len(), 1);
    }
}

#[test]
fn the_policy_of_the_next_run_is_not_that_of_the_one_before() {
    let found = text(&[
        "policy: fifo: loadavg: 0.10 0.20 0.30 1/100 10",
        "",
        "T: 0 (    7) P:80 I:1000 C:   1000 Min:      3 Act:    5 Avg:    5 Max:      50",
        "policy: fifo: loadavg: 0.20 0.20 0.30 1/100 10",
        "T: 0 (    7) P:80 I:1000 C:   2000 Min:      3 Act:    5 Avg:    5 Max:      50",
        "policy: other/other: loadavg: 9.10 9.20 9.30 1/100 10",
        "",
        "T: 0 (   17) P: 0 I:1000 C:   1000 Min:      3 Act:    5 Avg:    5 Max:     900",
    ])
    .unwrap();
    let said: Vec<_> = found.iter().map(|one| (one.policy, one.conditions.join("; "))).collect();
    let wanted = |policy, load: &str| (Some(policy), format!("load average {load}"));
    let wanted = [wanted(Policy::Fifo, "0.20 0.20 0.30"), wanted(Policy::Other, "9.10 9.20 9.30")];
    assert_eq!(said, wanted);
}

#[test]
fn what_stands_behind_the_last_document_is_damage() {
    let json = String::from_utf8(file("pmqtest.json")).unwrap();
    for rest in ["}", "x", "\"thread\": 1", "{", "{}"] {
        let found = read(format!("{json}\n{rest}\n").as_bytes(), Options::default());
        assert!(found.is_err(), "{rest}");
    }
    let between = format!("{json}\nnext run\n{json}");
    assert_eq!(read(between.as_bytes(), Options::default()).unwrap().len(), 2);
}

#[test]
fn a_distribution_or_a_table_without_one_of_its_rows_is_refused() {
    for (name, rows) in [("stress-ng-cyclic-dist.log", "cyclic:   "), ("perf-sched-latency.txt", "| avg:")] {
        let whole = String::from_utf8(file(name)).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let own = |line: &&str| line.contains(rows) && !line.contains('%') && !line.contains("mean");
        for at in (0..lines.len()).filter(|at| own(&lines[*at])).step_by(7) {
            let rest: Vec<&str> =
                lines.iter().enumerate().filter(|(number, _)| *number != at).map(|(_, line)| *line).collect();
            assert!(text(&rest).is_err(), "{name} without `{}`", lines[at]);
        }
    }
}

#[test]
fn the_command_of_latency_histogram_gives_its_periods() {
    let line = "   10 s  servo min: -60.000 us max:  15.500 us sdev:   2.100 us";
    let base = "   10 s   base min:  -1.000 us max:   2.500 us sdev:   0.100 us";
    let found = text(&["$ latency-histogram --nox --servo 500000", base, line]).unwrap().remove(0);
    let of = |series: &Series| (series.interval_ns, series.totals.cycles, series.totals.max_ns);
    let series: Vec<_> = found.series.iter().map(of).collect();
    assert_eq!(series, [(Some(25_000), 400_000, 2_500), (Some(500_000), 20_000, 60_000)]);
    // Statistics that shrink are those of another run.
    let found = text(&[line, "   11 s  servo min: -10.000 us max:  15.500 us sdev:   2.100 us"]).unwrap();
    assert_eq!(found.len(), 2);
    assert!(text(&[line, "   11 s  servo min: -70.0"]).unwrap_err().contains("cut or damaged"));
}

#[test]
fn statistics_of_rtc_testbench_that_begin_anew_are_another_run_and_a_mirror_has_none() {
    let log = String::from_utf8(file("rtc-testbench-reference.log")).unwrap();
    let (first, last) = log.trim_end().split_once('\n').unwrap();
    // As after SIGUSR1.
    let found = text(&[last, first]).unwrap();
    let largest: Vec<_> = found.iter().map(|one| (one.run, one.series[0].totals.max_ns)).collect();
    assert_eq!(largest, [(Some(1), 2_114_000), (Some(2), 1_812_000)]);
    let mirror = "[1709287211. 50000412]: [INFO]: RtcSent=5 | RtcReceived=5 | RtcRttMin=18446744073709551615 [us] | \
RtcRttMax=0 [us] | RtcRttAvg=0.000000 [us] | ";
    assert!(text(&[mirror]).unwrap_err().contains("only the reference"));
    // Messages that are neither of an interval nor since the beginning: nothing is added up.
    let udp = String::from_utf8(file("rtc-testbench-udp.json")).unwrap();
    let mut lines: Vec<&str> = udp.lines().collect();
    lines.reverse();
    let found = text(&lines).unwrap().remove(0);
    let totals = &found.series[0].totals;
    assert_eq!((totals.cycles, totals.max_ns, totals.mean_ns()), (2_999, 2_114_000, None));
}

#[test]
fn a_prefix_of_a_log_changes_nothing_of_a_new_format() {
    for name in [
        "linuxcnc-latency-histogram.txt",
        "perf-sched-latency.txt",
        "rtc-testbench-reference.log",
        "stress-ng-cyclic-dist.log",
        "two-cyclictest-q.txt",
        "two-oslat.txt",
    ] {
        let whole = String::from_utf8(file(name)).unwrap();
        let wanted = figures(&read(whole.as_bytes(), Options::default()).unwrap());
        for prefix in
            ["2024-03-05T10:11:12.131415Z ", "Mar 05 10:11:12 host unit[123]: ", "> ", "[pod/a/b] ", "    "]
        {
            let logged: String = whole.lines().map(|line| format!("{prefix}{line}\n")).collect();
            let found = read(logged.as_bytes(), Options::default());
            let found = found.unwrap_or_else(|error| panic!("{name} behind `{prefix}`: {error}"));
            assert_eq!(figures(&found), wanted, "{name} behind `{prefix}`");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_spoiled_file_of_the_field_is_refused_or_sound(
        case in 0..CASES.len(), at in any::<prop::sample::Index>(), byte in any::<u8>(), length in 0usize..4,
    ) {
        let mut bytes = file(CASES[case].0);
        let at = at.index(bytes.len());
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, [byte]);
        let Ok(found) = read(bytes.as_slice(), Options::default()) else { return Ok(()) };
        for series in found.iter().flat_map(|one| &one.series) {
            let (latency, totals) = (series.latency(), series.totals);
            prop_assert!(latency.raw.len() <= totals.cycles);
            prop_assert!(totals.cycles == 0 || totals.min_ns <= totals.max_ns);
            prop_assert!(series.beyond <= totals.cycles);
        }
    }
}

#[test]
fn a_file_with_one_run_has_no_number_of_it() {
    for name in ["oslat-2.40.txt", "pmqtest.json", "rtla-timerlat-top.txt", "hdrhistogram-v0.hlog"] {
        let found = read(file(name).as_slice(), Options::default()).unwrap();
        assert!(found.iter().all(|one| one.run.is_none()), "{name}");
    }
}

#[test]
fn a_file_of_more_runs_than_anybody_makes_is_refused() {
    let many = file("oslat-2.40.txt").repeat(300);
    let error = read(many.as_slice(), Options::default()).unwrap_err().to_string();
    assert!(error.contains("more than 256 runs"), "{error}");
    let many = file("pmqtest.json").repeat(300);
    let error = read(many.as_slice(), Options::default()).unwrap_err().to_string();
    assert!(error.contains("more than 256 runs"), "{error}");
}

#[test]
fn every_format_is_declared_with_the_command_that_makes_it() {
    for one in &FORMATS {
        for words in [one.tool, one.what, one.made_by, one.unit, one.lacks] {
            assert!(!words.is_empty(), "{one:?}");
        }
    }
}
