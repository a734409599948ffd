//! Bundles that are whole, cut, altered, unfinished and foreign.
#![expect(clippy::disallowed_methods, reason = "bundles are spoiled beside their door")]

mod full;
mod impossible;
mod plans;
mod slices;
mod strangers;

use std::fs;
use std::path::Path;

use tactus_model::bundle::{Machine, RowResult};
use tactus_model::event::{Event, RunStatus, Stamped, Ticked};
use tactus_model::latency::{Latency, Sparse};
use tactus_model::message::{ThreadCounters, Tick};
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, Repeats, RowEnd, SeriesResult, ValueResult};
use tactus_model::plan::{MOST_MEASURED, Plan};
use tactus_model::series::SeriesKey;

use super::{BundleError, Trust, Writer, read, verify};

const TICK_NS: u64 = 1_000_000_000;

fn row(ticks: u64) -> RowResult {
    RowResult { planned_ns: ticks * TICK_NS, ..RowResult::unmeasured("host, idle", "host", "host") }
}

fn tick(n: u64, total: &mut Latency) -> Tick {
    let mut now = Latency::new();
    for value in [5_000 + n, 7_000, 900_000 + n] {
        now.record(value, 200_000);
    }
    total.merge(&now);
    Tick {
        activity: 0,
        series: SeriesKey { cpu: 1, thread: 0, priority: 95, kind: "thread".into() },
        n,
        at_ns: (n + 1) * TICK_NS,
        now: now.totals,
        total: total.totals,
        counts: Sparse::of(&now.raw),
        missed: Sparse::of(&now.missed),
        thread: ThreadCounters::default(),
    }
}

/// A run of `planned` ticks that made `done` of them; `end`: whether it could finish.
fn bundle(dir: &Path, planned: u64, done: u64, end: bool) -> Latency {
    let mut result = row(planned);
    let writer = Writer::create(dir, &Plan::default(), &[result.clone()], Machine::default()).unwrap();
    result.end(Ending::because(RowEnd::Died, "the run died while this was measured"));
    let mut log = writer.begin_row(0, &result, TICK_NS).unwrap();
    let mut total = Latency::new();
    for n in 0..done {
        log.tick(&Ticked::of(0, tick(n, &mut total), None)).unwrap();
    }
    if end {
        log.finish().unwrap();
        let key = SeriesKey { cpu: 1, thread: 0, priority: 95, kind: "thread".into() };
        let counters = ThreadCounters::default();
        let series =
            vec![SeriesResult { key, summary: total.summary(), counters, outliers: Vec::new(), whole: true }];
        result.outcome = Outcome::Latency(LatencyOutcome { series, all: Some(total.summary()) });
        result.end(Ending::complete());
        result.measured_ns = done * TICK_NS;
        writer.result(0, &result).unwrap();
        writer.finish(RunStatus::Complete).unwrap();
    }
    total
}

#[test]
fn a_finished_bundle_is_read_back_whole() {
    let dir = tempfile::tempdir().unwrap();
    let total = bundle(dir.path(), 10, 10, true);
    let contents = read(dir.path(), Trust::Whole).unwrap();
    assert_eq!(contents.manifest.status, RunStatus::Complete);
    assert!(contents.damage.is_empty(), "{:?}", contents.damage);
    let row = &contents.rows[0];
    assert_eq!((row.ticks.iter().count(), row.histograms.intervals.len()), (10, 10));
    assert_eq!(row.result.series()[0].key.cpu, 1);
    assert_eq!(row.histogram(), total.raw);
}

#[test]
fn a_bundle_opens_from_its_first_file_on() {
    let dir = tempfile::tempdir().unwrap();
    Writer::create(dir.path(), &Plan::default(), &[row(10)], Machine::default()).unwrap();
    // The remains of a run that is killed when it has begun: the manifest is written first.
    for entry in fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.file_name().unwrap().to_str().unwrap() {
            "manifest.json" => {}
            _ if entry.is_dir() => fs::remove_dir_all(entry).unwrap(),
            _ => fs::remove_file(entry).unwrap(),
        }
    }
    let contents = read(dir.path(), Trust::Whole).unwrap();
    assert_eq!(contents.manifest.status, RunStatus::Interrupted);
    assert!(contents.rows.is_empty() && !contents.damage.is_empty());
}

#[test]
fn rows_beyond_those_that_a_plan_may_have_are_left_out_and_said() {
    let dir = tempfile::tempdir().unwrap();
    bundle(dir.path(), 10, 10, false);
    for more in 2..=MOST_MEASURED + 3 {
        fs::create_dir(dir.path().join(format!("scenarios/{more:02}-more"))).unwrap();
    }
    let contents = read(dir.path(), Trust::Whole).unwrap();
    assert_eq!(contents.rows.len(), 1, "the others have no result");
    let (died, rest) = contents.damage.split_first().unwrap();
    assert!(died.contains("died"), "{died}");
    assert_eq!(rest[0], "3 of its rows exceed the number in any plan: they are left out");
    assert_eq!(rest.len(), MOST_MEASURED, "nothing was looked for in those");
}

#[test]
fn a_day_becomes_a_histogram_a_minute() {
    let dir = tempfile::tempdir().unwrap();
    let total = bundle(dir.path(), 86_400, 180, true);
    let contents = read(dir.path(), Trust::Whole).unwrap();
    assert_eq!(contents.rows[0].histograms.intervals.len(), 3);
    assert_eq!(contents.rows[0].histogram(), total.raw);
    assert!(!dir.path().join("scenarios/01-host-idle/pending.jsonl").exists());
}

#[test]
fn a_run_that_died_keeps_every_tick_it_wrote() {
    for planned in [10, 86_400] {
        let dir = tempfile::tempdir().unwrap();
        let total = bundle(dir.path(), planned, 7, false);
        let contents = read(dir.path(), Trust::Whole).unwrap();
        let row = &contents.rows[0];
        assert_eq!(contents.manifest.status, RunStatus::Interrupted);
        assert_eq!(row.histogram(), total.raw, "planned {planned}");
        let (found, wrote) = (row.result.all().unwrap(), total.summary());
        assert_eq!((found.cycles, found.max_ns, found.lost), (wrote.cycles, wrote.max_ns, 0));
        assert_eq!((found.overruns, &found.corrected), (wrote.overruns, &wrote.corrected));
        assert_eq!(row.result.series().len(), 1);
        assert!(contents.damage[0].contains("died"), "{:?}", contents.damage);
    }
}

#[test]
fn a_cut_last_line_costs_that_line_only() {
    let dir = tempfile::tempdir().unwrap();
    bundle(dir.path(), 10, 7, false);
    let path = dir.path().join("scenarios/01-host-idle/ticks.csv");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let contents = read(dir.path(), Trust::Whole).unwrap();
    assert_eq!(contents.rows[0].ticks.iter().count(), 6);
    assert!(contents.damage.iter().any(|d| d.contains("1 lines cannot be read")), "{:?}", contents.damage);
}

#[test]
fn an_altered_or_missing_file_is_refused_by_name_and_read_on_request() {
    let dir = tempfile::tempdir().unwrap();
    bundle(dir.path(), 10, 10, true);
    let path = dir.path().join("scenarios/01-host-idle/result.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"priority\": 95", "\"priority\": 96")).unwrap();
    let error = read(dir.path(), Trust::Whole).unwrap_err();
    assert!(error.to_string().contains("result.json"), "{error}");
    assert!(error.hint().unwrap().contains("--damaged"));
    let contents = read(dir.path(), Trust::Damaged).unwrap();
    assert!(contents.damage[0].contains("checksum"), "{:?}", contents.damage);
    fs::remove_file(&path).unwrap();
    assert!(matches!(read(dir.path(), Trust::Whole), Err(BundleError::Altered { .. })));
    assert!(read(dir.path(), Trust::Damaged).unwrap().rows.is_empty());
}

#[test]
fn another_major_version_is_refused_in_words_that_name_both_and_its_writer() {
    for (major, tactus) in [(1, "0.1.0"), (9, "7.0.0")] {
        let dir = tempfile::tempdir().unwrap();
        let manifest = format!(r#"{{"format":{{"major":{major},"minor":1}},"tactus":"{tactus}"}}"#);
        fs::write(dir.path().join("manifest.json"), manifest).unwrap();
        let error = read(dir.path(), Trust::Damaged).unwrap_err();
        let path = dir.path().display();
        let words =
            format!("{path} was written by tactus {tactus} in format {major}.1; this tactus reads format 2");
        assert_eq!(error.to_string(), words);
        assert_eq!(error.hint().unwrap(), "read it with the tactus that wrote it");
    }
}

#[test]
fn what_is_no_bundle_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(read(dir.path(), Trust::Damaged), Err(BundleError::NotABundle { .. })));
    fs::write(dir.path().join("manifest.json"), "{").unwrap();
    assert!(matches!(read(dir.path(), Trust::Damaged), Err(BundleError::NotABundle { .. })));
}

#[test]
fn a_manifest_cannot_name_files_outside_its_bundle() {
    let dir = tempfile::tempdir().unwrap();
    bundle(dir.path(), 10, 1, true);
    let path = dir.path().join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    // A file has one name: under many, it would be read many times.
    for name in ["../../etc/passwd", "/etc/passwd", ".//plan.toml", "./plan.toml", "scenarios//x"] {
        fs::write(&path, text.replace("\"plan.toml\"", &format!("{name:?}"))).unwrap();
        let error = read(dir.path(), Trust::Whole).unwrap_err();
        assert!(error.to_string().contains("outside"), "{name}: {error}");
    }
}

#[test]
fn a_directory_with_something_in_it_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.txt"), "x").unwrap();
    let error = Writer::create(dir.path(), &Plan::default(), &[], Machine::default()).unwrap_err();
    assert!(matches!(error, BundleError::Exists(_)));
}

#[test]
fn what_is_said_of_the_cache_belongs_to_the_rows_of_its_scenario() {
    use tactus_model::partition::{CacheUse, Phase};
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("bundle");
    let rows = [row(1), row(1)];
    let mut writer = Writer::create(&dir, &Plan::default(), &rows, Machine::default()).unwrap();
    let used = |phase, group: &str| {
        Event::CacheUsed(CacheUse {
            phase,
            group: group.into(),
            cpus: "1".parse().unwrap(),
            occupancy_bytes: Some(4096),
            memory_bytes: None,
        })
    };
    let started = |row| Event::RowStarted {
        row,
        name: "host, idle".into(),
        environment: "host".into(),
        duration_ns: TICK_NS,
    };
    let ended = |row| Event::RowFinished { row, ending: Ending::complete(), measured_ns: TICK_NS };
    for event in [
        used(Phase::Before, "all"),
        started(0),
        used(Phase::With, "measured"),
        ended(0),
        used(Phase::After, "all"),
        started(1),
        ended(1),
    ] {
        writer.event(&Stamped { at_ms: 0, event }).unwrap();
    }
    writer.finish(RunStatus::Complete).unwrap();
    let contents = read(&dir, Trust::Whole).unwrap();
    let phases: Vec<Phase> = contents.rows[0].held.iter().map(|one| one.phase).collect();
    assert_eq!(phases, [Phase::Before, Phase::With, Phase::After]);
    assert!(contents.rows[1].held.is_empty(), "the next scenario divides nothing");
}

/// Its checksums are removed from the manifest as well: otherwise the files would be missed.
#[test]
fn a_row_that_was_taken_out_of_a_finished_bundle_is_missed() {
    let planned = |rows| Event::RunStarted { plan: "p".into(), rows, expected_ns: TICK_NS };
    for (told, taken, missing) in [(Some(2), "02-", 1), (None, "01-", 1), (Some(2), "none", 0)] {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("bundle");
        let rows = [row(1), row(1)];
        let mut writer = Writer::create(&dir, &Plan::default(), &rows, Machine::default()).unwrap();
        if let Some(rows) = told {
            writer.event(&Stamped { at_ms: 0, event: planned(rows) }).unwrap();
        }
        for (number, row) in rows.iter().enumerate() {
            writer.begin_row(number, row, TICK_NS).unwrap().finish().unwrap();
        }
        writer.finish(RunStatus::Complete).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let gone =
            fs::read_dir(dir.join("scenarios")).unwrap().map(name).find(|name| name.starts_with(taken));
        if let Some(gone) = gone {
            fs::remove_dir_all(dir.join("scenarios").join(&gone)).unwrap();
            let path = dir.join("manifest.json");
            let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let files = manifest["files"].as_object_mut().unwrap();
            files.retain(|file, _| !file.contains(&gone));
            fs::write(&path, manifest.to_string()).unwrap();
        }
        let damaged = read(&dir, Trust::Damaged).unwrap();
        let said = damaged.damage.iter().any(|damage| damage.contains("rows missing: 1 of 2"));
        assert_eq!(said, missing > 0, "{told:?} {taken}: {:?}", damaged.damage);
        assert!(damaged.rows.iter().all(|row| row.result.damaged == (missing > 0)), "{told:?} {taken}");
        assert_eq!(read(&dir, Trust::Whole).is_err(), missing > 0, "{told:?} {taken}");
    }
}

/// A reader would take it for the row whose number it has.
#[test]
fn a_directory_that_was_added_to_a_finished_bundle_replaces_no_row() {
    let home = tempfile::tempdir().unwrap();
    for (number, added) in
        ["scenarios/02-x", "scenarios/2", "scenarios/03-x", "scenarios/02-x/.hidden", "facts/x"]
            .into_iter()
            .enumerate()
    {
        let dir = home.path().join(number.to_string());
        let rows = [row(1), row(1)];
        let writer = Writer::create(&dir, &Plan::default(), &rows, Machine::default()).unwrap();
        for (number, row) in rows.iter().enumerate() {
            writer.begin_row(number, row, TICK_NS).unwrap().finish().unwrap();
        }
        writer.finish(RunStatus::Complete).unwrap();
        assert_eq!(read(&dir, Trust::Whole).unwrap().damage, Vec::<String>::new());
        fs::create_dir_all(dir.join(added)).unwrap();
        assert!(read(&dir, Trust::Whole).is_err(), "{added}");
        assert!(verify(&tactus_system::Directory::open(&dir).unwrap()).is_err(), "{added}");
        let Ok(damaged) = read(&dir, Trust::Damaged) else {
            // Which of two directories is the run's is unknown.
            assert!(added.starts_with("scenarios/02") || added == "scenarios/2", "{added}");
            continue;
        };
        assert!(damaged.rows.iter().all(|row| row.result.damaged), "{added}: {:?}", damaged.damage);
    }
}

#[test]
fn ticks_that_wait_for_their_interval_stay_few_also_where_a_series_is_always_behind() {
    let dir = tempfile::tempdir().unwrap();
    // A day: an interval is a minute.
    let mut result = row(86_400);
    let writer = Writer::create(dir.path(), &Plan::default(), &[result.clone()], Machine::default()).unwrap();
    result.end(Ending::because(RowEnd::Died, "the run died while this was measured"));
    let mut log = writer.begin_row(0, &result, TICK_NS).unwrap();
    let counts =
        |n: u64| Sparse((0..400).flat_map(|at| [if at == 0 { 5_000 } else { 8 }, 1 + n % 2]).collect());
    let (mut one, mut other) = (Latency::new(), Latency::new());
    let mut longest = 0;
    let (ticks, behind) = (3_000, 7);
    let pending = dir.path().join("scenarios/01-host-idle/pending.jsonl");
    for n in 0..ticks {
        log.tick(&Ticked::of(0, Tick { counts: counts(n), ..tick(n, &mut one) }, None)).unwrap();
        if n >= behind {
            let late = Tick { counts: counts(n), ..tick(n, &mut other) };
            let series = SeriesKey { cpu: 2, ..late.series.clone() };
            log.tick(&Ticked::of(0, Tick { series, ..late }, None)).unwrap();
        }
        longest = longest.max(fs::metadata(&pending).map_or(0, |found| found.len()));
    }
    let each = u64::try_from(serde_json::to_string(&counts(0)).unwrap().len()).unwrap();
    assert!(ticks * each > 4 << 20, "all of them are more");
    // Less than an interval of each series waits.
    assert!(longest < 2 * 2 * 60 * (each + 1000) + (1 << 20) + each + 1000, "{longest}");
    drop((log, writer));
    let contents = read(dir.path(), Trust::Whole).unwrap();
    let counted = |cpu: &str| contents.rows[0].histograms.series[cpu].buckets().map(|(_, n)| n).sum::<u64>();
    let all = |ticks: std::ops::Range<u64>| ticks.map(|n| 400 * (1 + n % 2)).sum::<u64>();
    assert_eq!((counted("1"), counted("2")), (all(0..ticks), all(behind..ticks)), "and nothing is lost");
}

/// The `n`-th word on an item.
fn value(item: &str, n: u64) -> ValueResult {
    let kept = vec![1.5; usize::try_from(n).unwrap()];
    let mut repeats = Repeats { kept, dropped: 1, batch: 100 };
    let known = ValueResult::of(&tactus_model::catalogue::measure::os::SIGNAL_HANDLER, &mut repeats).unwrap();
    ValueResult { item: item.into(), ..known }
}

#[test]
fn values_that_had_arrived_when_the_run_died_stay_and_those_of_an_earlier_try_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut result = RowResult { outcome: Outcome::Values(Vec::new()), ..row(1) };
    let mut writer =
        Writer::create(dir.path(), &Plan::default(), &[result.clone()], Machine::default()).unwrap();
    let started = || Event::RowStarted {
        row: 0,
        name: "host, idle".into(),
        environment: "host".into(),
        duration_ns: TICK_NS,
    };
    let said = |item: &str, n| Event::ValueMeasured { row: 0, value: value(item, n) };
    result.end(Ending::because(RowEnd::Died, "the run died while this was measured"));
    writer.begin_row(0, &result, TICK_NS).unwrap();
    for event in
        [started(), said("of the first try", 3), started(), said("a", 7), said("b", 7), said("a", 20)]
    {
        writer.event(&Stamped { at_ms: 0, event }).unwrap();
    }
    drop(writer);
    let contents = read(dir.path(), Trust::Whole).unwrap();
    let result = &contents.rows[0].result;
    assert_eq!(result.values(), [value("a", 20), value("b", 7)]);
    assert_eq!((result.ended, result.all()), (RowEnd::Died, None));
    assert!(!result.is_complete());
}
