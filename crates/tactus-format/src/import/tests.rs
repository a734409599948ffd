//! Every format as its instrument wrote it, and what befalls files on the way.

use proptest::prelude::*;
use tactus_model::latency::{HIGHEST_NS, histogram};

use super::*;

const US: u64 = 1_000;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/import/", $name)).as_slice()
    };
}

/// Every format. Most are as rt-tests 2.4 and jitterdebugger wrote them on one machine, or as users of rtla
/// and its newer versions print them. One is the output of the guest without an operating system, started by
/// GRUB in an emulated PC. Three are made after the source of their instruments: the histogram without empty
/// rows (`-N-new.hist`), jitterdebugger's table and rteval's summary.
const FILES: [(&str, &[u8]); 14] = [
    ("cyclictest.json", fixture!("cyclictest.json")),
    ("cyclictest-h.txt", fixture!("cyclictest-h.txt")),
    ("cyclictest-H-old.txt", fixture!("cyclictest-H-old.txt")),
    ("cyclictest-N-new.hist", fixture!("cyclictest-N-new.hist")),
    ("cyclictest-v.txt", fixture!("cyclictest-v.txt")),
    ("oslat.json", fixture!("oslat.json")),
    ("signaltest.json", fixture!("signaltest.json")),
    ("jitterdebugger-results.json", fixture!("jitterdebugger-results.json")),
    ("jitterdebugger-samples.raw", fixture!("jitterdebugger-samples.raw")),
    ("jitterdebugger-samples.csv", fixture!("jitterdebugger-samples.csv")),
    ("rtla-timerlat.txt", fixture!("rtla-timerlat.txt")),
    ("rtla-osnoise.txt", fixture!("rtla-osnoise.txt")),
    ("rteval-summary.xml", fixture!("rteval-summary.xml")),
    ("bare-guest.log", fixture!("bare-guest.log")),
];

fn of(name: &str) -> &'static [u8] {
    FILES.iter().find(|(known, _)| *known == name).unwrap().1
}

fn imported(bytes: &[u8]) -> Vec<Recording> {
    read(bytes, Options::default()).unwrap()
}

fn one(name: &str) -> Recording {
    let mut all = imported(of(name));
    assert_eq!(all.len(), 1, "{name}");
    all.remove(0)
}

fn error(bytes: &[u8]) -> String {
    read(bytes, Options::default()).unwrap_err().to_string()
}

/// Cycles, minimum and maximum in microseconds, how many values are in the histogram, and how many beyond the file's.
fn figures(series: &Series) -> (u64, u64, u64, u64, u64) {
    let Series { totals, beyond, .. } = series;
    (totals.cycles, totals.min_ns / US, totals.max_ns / US, series.latency().raw.len(), *beyond)
}

#[test]
fn a_file_of_which_nearly_nothing_is_a_reading_is_given_up() {
    for (name, beginning) in FILES {
        if name.ends_with(".json") || name.ends_with(".xml") || name.ends_with(".raw") {
            continue;
        }
        for idle in ["#\n", "\n", "\r\n", " # x\n", "x\n", "\"x\n"] {
            let said = error(&[beginning, &idle.repeat(70_000).into_bytes()].concat());
            let damaged = said.contains("cut or damaged")
                || said.contains("not CPU;")
                || said.contains("not an interval");
            assert!(said.contains("contain no data") || damaged, "{name}, {idle:?}: {said}");
        }
    }
}

#[test]
fn one_run_of_cyclictest_is_the_same_from_its_json_and_its_text() {
    let (json, text) = (one("cyclictest.json"), one("cyclictest-h.txt"));
    for recording in [&json, &text] {
        let found: Vec<_> = recording.series.iter().map(figures).collect();
        assert_eq!(found, [(200, 13, 674, 200, 3), (200, 12, 1770, 200, 4)]);
    }
    for (a, b) in json.series.iter().zip(&text.series) {
        assert_eq!(a.counts, b.counts);
        // The text cuts the mean to whole microseconds.
        assert!(a.totals.sum_ns - b.totals.sum_ns < 200 * US);
    }
    assert_eq!(json.interval_ns, Some(500 * US));
    assert_eq!(json.series[1].totals.sum_ns, 8_184 * US, "40.92 us in the mean");
    assert_eq!((json.series[0].priority, json.instrument.as_str()), (Some(80), "cyclictest 2.40"));
    assert_eq!(text.series[0].least_beyond_ns, Some(109 * US));
    assert!(json.notes[0].starts_with("thread 0: 3 values lie beyond its histogram"), "{:?}", json.notes);
}

#[test]
fn a_thread_without_a_row_has_all_of_its_values_beyond_the_histogram() {
    let row = r#""0": {"histogram": {"3": 5}, "cycles": 5, "min": 3, "max": 3, "avg": 3.00}"#;
    let none = r#""1": {"histogram": {}, "cycles": 5, "min": 70, "max": 90, "avg": 80.00}"#;
    let text = format!(r#"{{"cmdline:": "cyclictest -t2 -h 60", "thread": {{{row}, {none}}}}}"#);
    let beyond = imported(text.as_bytes()).remove(0).series.remove(1);
    assert_eq!((figures(&beyond), beyond.least_beyond_ns), ((5, 70, 90, 5, 5), Some(60 * US)));
    let text = format!(r#"{{"cmdline:": "cyclictest -t2 -h 60", "thread": {{{none}}}}}"#);
    assert_eq!(imported(text.as_bytes())[0].series[0].beyond, 5);
    let text = format!(r#"{{"cmdline:": "cyclictest -t2", "thread": {{{none}}}}}"#);
    assert_eq!(
        (imported(text.as_bytes())[0].series[0].beyond, figures(&imported(text.as_bytes())[0].series[0]).3),
        (0, 0)
    );
}

#[test]
fn a_column_that_adds_the_others_up_is_no_thread() {
    let found: Vec<_> = one("cyclictest-H-old.txt").series.iter().map(figures).collect();
    assert_eq!(found, [(300, 55, 5430, 300, 50), (297, 66, 5375, 297, 35)]);
}

#[test]
fn a_histogram_without_its_empty_rows_is_one_and_its_unit_is_what_the_user_says() {
    let options = Options { unit_ns: Some(1) };
    let recording = read(of("cyclictest-N-new.hist"), options).unwrap().remove(0);
    let found: Vec<_> =
        recording.series.iter().map(|series| (series.totals.max_ns, figures(series).3)).collect();
    assert_eq!(found, [(3_980_319, 26), (99_369, 30)]);
    assert!(recording.notes.iter().all(|note| !note.contains("unit")));
}

#[test]
fn values_one_by_one_are_all_there() {
    let recording = one("cyclictest-v.txt");
    let text = std::str::from_utf8(of("cyclictest-v.txt")).unwrap();
    let values = |thread: u64| -> Vec<u64> {
        let numbers = |line: &str| -> Option<Vec<u64>> {
            line.split(':').map(|word| word.trim().parse().ok()).collect()
        };
        text.lines()
            .filter_map(numbers)
            .filter(|n| n.len() == 3 && n[0] == thread)
            .map(|n| n[2] * US)
            .collect()
    };
    for (thread, series) in recording.series.iter().enumerate() {
        let values = values(thread as u64);
        assert_eq!(series.totals.cycles, values.len() as u64);
        assert_eq!(series.totals.sum_ns, values.iter().sum::<u64>());
        assert_eq!(Some(&series.totals.max_ns), values.iter().max());
    }
    assert_eq!((recording.series.len(), recording.interval_ns), (2, Some(1_000 * US)));
}

#[test]
fn the_last_bucket_of_oslat_is_what_is_as_large_or_larger() {
    let recording = one("oslat.json");
    assert_eq!((recording.values, recording.duration_ns), (Values::Gaps, Some(1_012_000_000)));
    let found: Vec<_> = recording.series.iter().map(figures).collect();
    assert_eq!(found[0], (9_972_529, 1, 20_112, 9_972_529, 81));
    assert_eq!((found[1].2, found[1].4), (16_077, 332));
    assert_eq!(recording.series[0].least_beyond_ns, Some(32 * US));
}

#[test]
fn totals_without_a_histogram_have_no_quantile() {
    let recording = one("signaltest.json");
    assert_eq!(figures(&recording.series[1]), (200, 21, 13_627, 0, 0));
    assert_eq!(recording.series[1].latency().summary().p99_ns, None);
    assert_eq!(recording.notes, ["it has totals but no histogram: quantiles are unknown"]);
}

#[test]
fn samples_of_jitterdebugger_are_the_same_raw_and_as_a_table() {
    let (raw, csv) = (one("jitterdebugger-samples.raw"), one("jitterdebugger-samples.csv"));
    assert_eq!(raw.series, csv.series);
    assert_eq!(raw.duration_ns, csv.duration_ns);
    assert_eq!(raw.series.iter().map(|series| series.totals.cycles).sum::<u64>(), 50);
    let found: Vec<_> = one("jitterdebugger-results.json").series.iter().map(figures).collect();
    assert_eq!(found, [(50, 17, 48, 50, 0), (50, 16, 53, 50, 0)]);
}

#[test]
fn what_jitterdebugger_leaves_out_of_its_histogram_is_beyond_it() {
    let text = String::from_utf8(of("jitterdebugger-results.json").to_vec()).unwrap();
    let text = text.replacen("\"count\": 50", "\"count\": 52", 1).replacen("\"max\": 48", "\"max\": 2048", 1);
    assert_eq!(figures(&imported(text.as_bytes())[0].series[0]), (52, 17, 2048, 52, 2));
}

#[test]
fn rtla_has_a_recording_for_each_of_its_contexts_and_rows_of_ten_microseconds_are_no_smaller_than_that() {
    let all = imported(of("rtla-timerlat.txt"));
    let parts: Vec<_> = all.iter().map(|one| (one.part, one.series.len())).collect();
    assert_eq!(parts, [(Some("IRQ"), 2), (Some("thread"), 2), (Some("user"), 2)]);
    let thread = &all[1].series[0];
    assert_eq!((figures(thread), thread.cpu), ((1_000, 3, 21, 1_000, 0), Some(1)));
    // 55 values lie from 10 to 19 us, and one from 20 on: that one is the largest, 21 us.
    let summary = thread.latency().summary();
    assert!(summary.p99_ns.unwrap() >= 19 * US && summary.max_ns == Some(21 * US), "{summary:?}");
    assert_eq!(thread.totals.mean_ns(), Some(7_000.0), "the mean is rtla's, not that of such rows");
    assert!(all[1].notes[0].starts_with("its rows lie 10 apart"));
    assert_eq!(all[0].duration_ns, Some(2_000_000_000));
}

#[test]
fn what_is_over_the_histogram_of_rtla_is_at_its_maximum() {
    let noise = one("rtla-osnoise.txt");
    assert_eq!(noise.values, Values::Gaps);
    assert_eq!(figures(&noise.series[0]), (545, 0, 1846, 545, 2));
    assert_eq!(figures(&noise.series[1]), (529, 0, 20, 529, 0));
    assert!(
        noise.notes.iter().any(|note| note.contains("a maximum may be up to 9 us larger")),
        "{:?}",
        noise.notes
    );
}

#[test]
fn rteval_has_its_cpus_even_where_it_dropped_their_statistics() {
    let recording = one("rteval-summary.xml");
    let found: Vec<_> = recording.series.iter().map(figures).collect();
    assert_eq!(found, [(8, 3, 9, 8, 0), (4, 5, 5, 4, 0)]);
    assert_eq!(recording.series[0].totals.sum_ns, (2 * 3 + 4 * 4 + 7 + 9) * US);
    assert!(recording.notes[0].starts_with("CPU 1: rteval left its statistics out"), "{:?}", recording.notes);
    assert_eq!((recording.series[0].priority, recording.interval_ns), (Some(95), Some(100 * US)));
}

/// A log as the library writes it, with values of two tags.
#[test]
fn what_the_guest_without_an_operating_system_says_alone_is_whole_with_the_periods_it_missed() {
    let recording = one("bare-guest.log");
    assert_eq!((recording.interval_ns, recording.duration_ns), (Some(1_000_000), Some(3_000_000_000)));
    let series = &recording.series[0];
    assert_eq!(figures(series), (2964, 17, 3942, 2964, 0));
    assert_eq!((series.totals.overruns, series.latency().missed.len()), (37, 37));
    let notes = recording.notes.join("\n");
    assert!(notes.contains("is called `TCGTCGTCGTCG`") && notes.contains("saw 1002216 ns"), "{notes}");
    assert!(!notes.contains("lost") && !notes.contains("ends before"), "{notes}");
}

#[test]
fn a_serial_line_that_spoiled_frames_or_ended_early_is_noticed() {
    let whole = String::from_utf8(of("bare-guest.log").to_vec()).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let tick = lines.iter().position(|line| line.contains(r#"\"t\":\"tick\""#)).unwrap();
    // A byte of the only tick: its counts are lost, the totals are not.
    let spoiled = whole.replace(lines[tick], &lines[tick].replacen("tick", "tock", 1));
    let [recording] = &imported(spoiled.as_bytes())[..] else { panic!() };
    let notes = recording.notes.join("\n");
    assert!(notes.contains("of 2964 latencies the sizes of 2964 were lost on the line"), "{notes}");
    assert_eq!(recording.series[0].totals.max_ns / US, 3942);
    // Cut within what follows the totals.
    let total = lines.iter().position(|line| line.contains(r#""t":"total""#)).unwrap();
    let cut = lines[..=total].join("\r\n");
    let [recording] = &imported(cut.as_bytes())[..] else { panic!() };
    let notes = recording.notes.join("\n");
    assert!(notes.contains("ends before the measurement did"), "{notes}");
    assert!(notes.contains("its self-test after measuring was not passed"), "{notes}");
    // Before anything was measured.
    assert!(error(lines[..tick].join("\n").as_bytes()).contains("no measured values"));
    // Other words on the same line, and a second measurement behind the first.
    let twice = format!("Booting from DVD/CD...\n\u{1b}[2J{whole}[  0.1] noise {whole}");
    assert_eq!(imported(twice.as_bytes()).len(), 2);
}

#[test]
fn ticks_of_anybody_else_are_refused() {
    let whole = String::from_utf8(of("bare-guest.log").to_vec()).unwrap();
    let series = tactus_model::series::SeriesKey { cpu: 3, thread: 0, priority: 80, kind: "thread".into() };
    let mut encoder = tactus_model::wire::Encoder::new();
    let hello = whole.lines().next().unwrap();
    // The first frame of another.
    encoder.encode(&serde_json::json!({"t": "ready"})).unwrap();
    let zero = serde_json::json!({"cycles": 1, "overruns": 0, "min_ns": 1, "max_ns": 1, "sum_ns": 1});
    let tick = serde_json::json!({
        "t": "tick", "activity": 0, "series": series, "n": 0, "at_ns": 5, "now": zero, "total": zero, "counts": [1, 1],
        "thread": {},
    });
    let frames = encoder.encode(&tick).unwrap();
    let said = error(format!("{hello}\n{}", String::from_utf8(frames).unwrap()).as_bytes());
    assert!(said.contains("a tick of `cpu3/t0/thread`"), "{said}");
}

/// The output of a guest that begins like the recorded one and continues with these messages.
fn bare_guest_saying(messages: &[serde_json::Value]) -> Vec<u8> {
    let whole = String::from_utf8(of("bare-guest.log").to_vec()).unwrap();
    let mut encoder = tactus_model::wire::Encoder::new();
    // The first frame is its own.
    encoder.encode(&serde_json::json!({"t": "ready"})).unwrap();
    let mut said = format!("{}\n", whole.lines().next().unwrap()).into_bytes();
    messages.iter().for_each(|message| said.extend(encoder.encode(message).unwrap()));
    said
}

fn bare_tick(cycles: u64, sum_ns: u64, counts: &[u64]) -> serde_json::Value {
    let totals =
        serde_json::json!({"cycles": cycles, "overruns": 0, "min_ns": 1, "max_ns": 9, "sum_ns": sum_ns});
    let series = tactus_model::series::SeriesKey { cpu: 0, thread: 0, priority: 0, kind: "interrupt".into() };
    serde_json::json!({
        "t": "tick", "activity": 0, "series": series, "n": 0, "at_ns": 5, "now": totals, "total": totals,
        "counts": counts, "thread": {},
    })
}

#[test]
fn ticks_that_contradict_themselves_are_refused() {
    let said = |tick| error(&bare_guest_saying(&[tick]));
    assert_eq!(imported(&bare_guest_saying(&[bare_tick(2, 10, &[1, 1, 8, 1])])).len(), 1);
    assert!(
        said(bare_tick(2, 10, &[1, 1 << 60]))
            .contains("tick 0: it counts 1152921504606846976 latencies of 2")
    );
    assert!(said(bare_tick(2, 19, &[1, 2])).contains("contradict each other"));
    assert!(said(bare_tick(2, 1, &[1, 2])).contains("contradict each other"));
    assert!(said(bare_tick(u64::MAX, u64::MAX, &[1, u64::MAX, 8, 1])).contains("too large"));
}

fn log(values: &[u64]) -> Vec<u8> {
    use hdrhistogram::serialization::V2DeflateSerializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
    use std::time::Duration;
    let (mut text, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut log = IntervalLogWriterBuilder::new().begin_log_with(&mut text, &mut serializer).unwrap();
    let mut counted = histogram();
    values.iter().for_each(|value| counted.saturating_record(*value));
    for (number, tag) in ["0", "cpu3/t0/thread"].into_iter().enumerate() {
        let start = Duration::from_secs(number as u64);
        log.write_histogram(&counted, start, Duration::from_secs(1), Tag::new(tag)).unwrap();
    }
    drop(log);
    text
}

#[test]
fn a_log_of_histograms_has_its_tags_as_series() {
    let recording = imported(&log(&[1_000, 2_000, 2_000, 1_000_000])).remove(0);
    let found: Vec<_> = recording.series.iter().map(|series| (series.cpu, figures(series))).collect();
    assert_eq!(found, [(Some(0), (4, 1, 1_000, 4, 0)), (Some(3), (4, 1, 1_000, 4, 0))]);
    assert_eq!(recording.duration_ns, Some(2_000_000_000));
}

#[test]
fn a_log_of_values_of_very_many_sizes_is_read_whole() {
    let values: Vec<u64> = (0..20_000).map(|n| 1_000 + n * n).collect();
    let recording = imported(&log(&values)).remove(0);
    assert_eq!(recording.series[0].totals.cycles, 20_000);
}

#[test]
fn threads_that_have_been_read_take_the_memory_of_their_values() {
    let longest = u64::MAX >> 20;
    let tags: Vec<String> = (0..500).map(|cpu| cpu.to_string()).collect();
    let line = String::from_utf8(log(&[longest])).unwrap();
    let line = line.lines().find(|line| line.starts_with("Tag=0,")).unwrap();
    let text: String =
        tags.iter().map(|tag| format!("{}\n", line.replacen("Tag=0,", &format!("Tag={tag},"), 1))).collect();
    let recording = imported(text.as_bytes()).remove(0);
    assert_eq!(recording.series.len(), 500);
    assert!(recording.series.iter().all(|series| series.counts.bytes() < 16), "not those of a histogram");
}

#[test]
fn a_small_log_of_what_would_take_minutes_to_count_is_refused() {
    use base64::Engine;
    use std::io::Write;
    // One count in each of a million buckets, which the packer makes a thousandth of.
    let mut plain: Vec<u8> =
        [0x1c84_9313_u32, 1 << 20, 0, 5].iter().flat_map(|word| word.to_be_bytes()).collect();
    plain.extend([1, 1 << 62, 1.0_f64.to_bits()].iter().flat_map(|long: &u64| long.to_be_bytes()));
    plain.resize(40 + (1 << 20), 2);
    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&plain).unwrap();
    let packed = packer.finish().unwrap();
    let mut bytes = 0x1c84_9314_u32.to_be_bytes().to_vec();
    bytes.extend(u32::try_from(packed.len()).unwrap().to_be_bytes());
    bytes.extend(packed);
    let line = format!("0.000,1.000,1.0,{}\n", base64::engine::general_purpose::STANDARD.encode(bytes));
    assert_eq!(imported(line.as_bytes())[0].series[0].totals.cycles, 1 << 20);
    assert!(error(line.repeat(700).as_bytes()).contains("longer than any of a log of its size"));
    // Runs behind one another are one file.
    let run = |n: u32| format!("#[StartTime: {n}.0 (seconds since epoch)]\n{}", line.repeat(4));
    let runs: String = (0..200).map(run).collect();
    assert!(error(runs.as_bytes()).contains("longer than any of a log of its size"));
}

#[test]
fn a_line_of_more_traffic_classes_than_there_can_be_is_refused_at_the_first_that_is_too_many() {
    let begins = "[1779189234.471340708]: [INFO]: aSent=1|aReceived=1|aRttMin=1|aRttMax=2|";
    let text = format!("{begins}\n{begins}{}\n", "Sent=|".repeat(100_000));
    assert!(
        error(text.as_bytes()).contains("more traffic classes than possible"),
        "{}",
        error(text.as_bytes())
    );
}

#[test]
fn a_file_of_no_known_instrument_is_refused() {
    assert_eq!(error(b""), "it is empty");
    assert_eq!(error(b"hello\nworld\n"), "its format is unknown");
    assert_eq!(error(b"\xff\xfeT\0:\0"), "byte 0: it is text in UTF-16: write it as UTF-8");
    assert!(error(b"{}").starts_with("it has no `thread`"));
    assert!(error(b"<html></html>").starts_with("it has no element <cyclictest>"));
}

#[test]
fn text_in_latin_1_is_refused_with_its_place() {
    let after = |name: &str, line: &[u8]| error(&[of(name), line].concat());
    let next = of("cyclictest-h.txt").split(|byte| *byte == b'\n').count();
    let said = after("cyclictest-h.txt", b"# caf\xe9\n");
    assert_eq!(said, format!("line {next}: byte 5 of it is not UTF-8"));
    let said = error(b"{\n\"cmdline:\": \"caf\xe9\",\n\"thread\": {}}");
    assert!(said.starts_with("line 2: column ") && said.contains("unicode"), "{said}");
    let said = after("rteval-summary.xml", b"<!-- caf\xe9 -->");
    assert_eq!(said, format!("byte {}: not UTF-8", of("rteval-summary.xml").len() + 8));
}

#[test]
fn a_document_and_a_line_without_an_end_are_refused_where_they_are_too_long() {
    let endless = |beginning: &[u8], byte: u8| {
        read(beginning.chain(std::io::repeat(byte)), Options::default()).unwrap_err().to_string()
    };
    for beginning in [b"{".as_slice(), b"<rteval>"] {
        let said = endless(beginning, b' ');
        assert_eq!(said, format!("byte {MOST_DOCUMENT}: a document this long is not read"));
    }
    let next = of("cyclictest-h.txt").split(|byte| *byte == b'\n').count();
    let said = endless(of("cyclictest-h.txt"), b'#');
    assert_eq!(said, format!("line {next}: it is longer than {} bytes", 16 << 20));
}

#[test]
fn invalid_json_is_refused_with_its_line() {
    let text = String::from_utf8(of("cyclictest.json").to_vec()).unwrap();
    let nan = text.replacen("\"avg\": ", "\"avg\": -nan,", 1);
    assert!(error(nan.as_bytes()).starts_with("line 61: column "), "{}", error(nan.as_bytes()));
    assert!(error(nan.as_bytes()).contains("-nan"));
    let quoted = text.replacen("-q ", "-q \"x\" ", 1);
    assert!(error(quoted.as_bytes()).starts_with("line 3: column "), "{}", error(quoted.as_bytes()));
    let huge = text.replacen("\"cycles\": 200", "\"cycles\": 99999999999999999999999", 1);
    assert!(error(huge.as_bytes()).starts_with("line "), "{}", error(huge.as_bytes()));
    let huge = text.replacen("\"cycles\": 200", "\"cycles\": 9999999999999999999", 1);
    assert!(error(huge.as_bytes()).contains("more than any measurement has"), "{}", error(huge.as_bytes()));
    let deep = format!("{{\"thread\": {}", "[".repeat(100_000));
    assert!(error(deep.as_bytes()).starts_with("line 1: "));
    let deep = format!("{{\"x\": {}", "[".repeat(100_000));
    assert!(error(deep.as_bytes()).starts_with("line 1: "));
    let twice = text.replacen("\"13\": ", "\"13\": 1, \"13\": ", 1);
    assert!(error(twice.as_bytes()).contains("does not belong here"));
}

/// The least CPU time that this thread needs for it, in three attempts.
fn cpu_time(what: impl Fn()) -> std::time::Duration {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        std::time::Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
    };
    let times = [(); 3].map(|()| {
        let began = now();
        what();
        now() - began
    });
    times.into_iter().min().unwrap_or_default()
}

#[test]
fn ten_times_the_documents_of_a_file_are_read_in_ten_times_the_time_and_not_a_hundred() {
    let message = br#"{"testbench": {"MeasurementName": "m", "stats": {"TCName": "Rtc", "FramesSent": 9, "FramesReceived": 9,
        "RoundTripMin": 1, "RoundTripMax": 9, "RoundTripAv": 5}}}"#;
    let message = String::from_utf8(message.to_vec()).unwrap().replace('\n', " ");
    // Blanks behind all documents; documents that are one line.
    let blanks = |many: usize| format!("{}{}", format!("{message}\n").repeat(many), " ".repeat(many * 250));
    let one_line = |many: usize| format!("{message} ").repeat(many);
    for of in [&blanks as &dyn Fn(usize) -> String, &one_line] {
        let time = |many| {
            let text = of(many);
            cpu_time(|| assert_eq!(imported(text.as_bytes())[0].series.len(), 1))
        };
        // Few are so quick that beside other work a tenth of the time is the machine's.
        let few = (0..3).map(|_| time(400)).max().unwrap();
        let more = time(4_000);
        assert!(more < few * 40, "{few:?}, {more:?}");
    }
}

#[test]
fn a_document_that_cannot_be_is_refused_before_the_next_one_is_read() {
    let run = String::from_utf8(of("cyclictest.json").to_vec()).unwrap();
    for before in ["{}".to_owned(), format!("{run}{{}}")] {
        let said = error(format!("{before}\n{{no document").as_bytes());
        assert!(said.starts_with("it has no `thread`"), "{said}");
    }
    let message =
        String::from_utf8(include_bytes!("../../tests/field/rtc-testbench-udp.json").to_vec()).unwrap();
    for mixed in [format!("{message}{run}"), format!("{run}{message}")] {
        assert!(error(mixed.as_bytes()).starts_with("it has no `thread`"), "{}", error(mixed.as_bytes()));
    }
}

#[test]
fn a_document_behind_blank_lines_and_words_begins_where_its_line_does() {
    let begins = |text: &str| json::begin(text.as_bytes());
    assert_eq!((begins("{"), begins("  {"), begins(" \n\n  {")), (Some(0), Some(0), Some(3)));
    assert_eq!(
        (begins("words {\n"), begins("words {\n\n {}"), begins("words\r\n{")),
        (None, Some(9), Some(7))
    );
    assert_eq!((begins(""), begins(" \n "), begins("words")), (None, None, None));
}

#[test]
fn rows_that_were_lost_on_the_way_are_noticed() {
    let text = String::from_utf8(of("cyclictest-h.txt").to_vec()).unwrap();
    let without: String =
        text.lines().filter(|line| !line.starts_with("000080")).map(|l| format!("{l}\n")).collect();
    assert!(error(without.as_bytes()).contains("`# Total:` is 197"), "{}", error(without.as_bytes()));
    let cut = text.split("# Histogram Overflows").next().unwrap();
    assert!(error(cut.as_bytes()).contains("ends before the histogram's `# Histogram Overflows:`"));
    let damaged = text.replacen("000080 000001", "0000x0 000001", 1);
    assert!(
        error(damaged.as_bytes()).contains(": cut or damaged: `0000x0 000001"),
        "{}",
        error(damaged.as_bytes())
    );
    let rtla = String::from_utf8(of("rtla-osnoise.txt").to_vec()).unwrap();
    let without: String =
        rtla.lines().filter(|line| !line.starts_with("20 ")).map(|l| format!("{l}\n")).collect();
    assert!(error(without.as_bytes()).contains("rows are missing"));
}

#[test]
fn a_cycle_that_is_missing_is_counted_and_one_that_goes_back_is_refused() {
    let text = |n: [u64; 3]| n.map(|n| format!("{:8}:{n:8}:{:8}\n", 0, 40)).concat();
    let recording = imported(text([0, 1, 5]).as_bytes()).remove(0);
    let series = &recording.series[0];
    assert_eq!((series.totals.cycles, series.latency().lost(), series.totals.sum_ns), (6, 3, 240 * US));
    assert!(recording.notes.iter().any(|note| note.starts_with("3 values that it numbers")));
    assert_eq!(error(text([0, 5, 1]).as_bytes()), "line 3: value 1 of thread 0 comes after a later one");
}

#[test]
fn a_million_lines_take_no_more_memory_than_a_histogram() {
    let text: String = (0..1_000_000).map(|n| format!("{:8}:{n:8}:{:8}\n", n % 2, n % 977)).collect();
    let recording = read(text.as_bytes(), Options::default());
    // Each of the two threads has every second number.
    let cycles: Vec<u64> =
        recording.unwrap()[0].series.iter().map(|series| series.latency().raw.len()).collect();
    assert_eq!(cycles, [500_000, 500_000]);
}

/// Whatever comes out is sound.
fn sound(bytes: &[u8]) {
    for unit_ns in [None, Some(1)] {
        let Ok(recordings) = read(bytes, Options { unit_ns }) else { continue };
        for series in recordings.iter().flat_map(|recording| &recording.series) {
            let latency = series.latency();
            assert!(latency.raw.len() <= series.totals.cycles, "{series:?}");
            assert!(series.totals.cycles == 0 || series.totals.min_ns <= series.totals.max_ns, "{series:?}");
            assert!(series.beyond <= series.totals.cycles);
        }
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused_or_sound() {
    for (name, bytes) in FILES {
        let whole: u64 =
            imported(bytes).iter().flat_map(|one| &one.series).map(|one| one.totals.cycles).sum();
        for end in (0..bytes.len()).step_by(11).chain(bytes.len().saturating_sub(40)..bytes.len()) {
            sound(&bytes[..end]);
            let Ok(cut) = read(&bytes[..end], Options::default()) else { continue };
            let cut: u64 = cut.iter().flat_map(|one| &one.series).map(|one| one.totals.cycles).sum();
            let stream = name.contains("-v") || name.contains("samples");
            assert!(stream || cut == whole, "{name} cut at {end}: {cut} of {whole}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        sound(&bytes);
    }

    #[test]
    fn a_spoiled_file_is_refused_or_sound(
        file in 0..FILES.len(), at in any::<prop::sample::Index>(), byte in any::<u8>(), length in 0usize..4,
    ) {
        let mut bytes = FILES[file].1.to_vec();
        let at = at.index(bytes.len());
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, [byte]);
        sound(&bytes);
    }

    #[test]
    fn what_a_histogram_of_cyclictest_has_is_what_is_read(
        rows in proptest::collection::btree_map(0u64..5_000, 1u64..1_000_000, 1..50), over in 0u64..10, zeros in any::<bool>(),
    ) {
        let most = *rows.keys().next_back().unwrap();
        let values: u64 = rows.values().sum();
        let max = if over > 0 { most + 5_000 } else { most };
        let mut text = String::from("# Histogram\n");
        for value in 0..=most {
            let count = rows.get(&value).copied().unwrap_or(0);
            if zeros || count > 0 {
                text += &format!("{value:06} {count:06}\n");
            }
        }
        let min = rows.keys().next().unwrap();
        text += &format!("# Total: {values:09}\n# Min Latencies: {min:05}\n# Avg Latencies: {min:05}\n");
        text += &format!("# Max Latencies: {max:05}\n# Histogram Overflows: {over:05}\n");
        let series = &imported(text.as_bytes())[0].series[0];
        prop_assert_eq!(figures(series), (values + over, *min, max, values + over, over));
        let sum: u64 = rows.iter().map(|(value, count)| value * count * US).sum();
        prop_assert!(over > 0 || series.totals.sum_ns == sum);
        let packed = &series.counts;
        let beyond = packed.buckets().filter(|(value, _)| *value > most * US * 1_001 / 1_000 + US);
        prop_assert_eq!(beyond.map(|(_, count)| count).sum::<u64>(), over);
    }

    #[test]
    fn what_a_log_of_histograms_counts_is_what_is_read(values in proptest::collection::vec(1..HIGHEST_NS, 1..100)) {
        let mut wanted = histogram();
        values.iter().for_each(|value| wanted.saturating_record(*value));
        let series = imported(&log(&values)).remove(0).series.remove(0);
        prop_assert_eq!(series.latency().raw, wanted);
    }

    #[test]
    fn a_decimal_number_is_what_it_says(ones in 0u64..1_000_000, thousandths in 0u64..1_000) {
        prop_assert_eq!(text::decimal(&format!("{ones}.{thousandths:03}"), 1_000), Some(ones * 1_000 + thousandths));
    }
}
