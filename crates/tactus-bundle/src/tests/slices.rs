//! Rows that are joined from slices.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tactus_model::bundle::{Contents, InjectedIn, Machine, Row, RowResult, Slice};
use tactus_model::event::{RunStatus, Ticked};
use tactus_model::latency::Latency;
use tactus_model::message::{Control, Injected, Stage, ThreadCounters};

use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, RowEnd, SeriesResult};
use tactus_model::plan::Plan;
use tactus_model::series::SeriesKey;
use tactus_model::windows::Moments;

use super::{TICK_NS, row, tick};
use crate::slices::{Joining, Part};
use crate::{Resumed, Trust, Writer, open, read, read_with_logs};

/// A slice of `ticks` ticks that began `at_s` after the first.
fn slice(name: &str, number: u32, of: u32, ticks: u64, at_s: i64) -> RowResult {
    let whole_ns = u64::from(of) * ticks * TICK_NS;
    let at = jiff::Timestamp::from_second(1_700_000_000 + at_s).unwrap();
    RowResult {
        name: name.into(),
        slice: Some(Slice { number, of, whole_ns, tick_ns: TICK_NS }),
        started: Some(at.to_string()),
        ..row(ticks)
    }
}

/// A bundle of these slices; the last one dies after `died` ticks, if it does.
fn bundle(dir: &Path, slices: &[RowResult], died: Option<u64>) -> Vec<Latency> {
    let mut writer = Writer::create(dir, &Plan::default(), slices, Machine::default()).unwrap();
    writer.keep_source(&Plan::default(), tactus_model::bundle::Asked::default()).unwrap();
    let mut all = Vec::new();
    for (n, planned) in slices.iter().enumerate() {
        let mut result = planned.clone();
        result.end(Ending::because(RowEnd::Died, "the run died while this was measured"));
        let mut log = writer.begin_row(n, &result, TICK_NS).unwrap();
        let dies = died.filter(|_| n + 1 == slices.len());
        let ticks = dies.unwrap_or(planned.planned_ns / TICK_NS);
        let mut total = Latency::new();
        let mut key = None;
        for n in 0..ticks {
            let tick = tick(n, &mut total);
            key = Some(tick.series.clone());
            log.tick(&Ticked::of(0, tick, None)).unwrap();
        }
        all.push(total.clone());
        if dies.is_some() {
            return all;
        }
        log.finish().unwrap();
        let counters = ThreadCounters { cpu_ns: Some(7), ..ThreadCounters::default() };
        let own = SeriesResult {
            key: key.unwrap(),
            summary: total.summary(),
            counters,
            outliers: Vec::new(),
            whole: true,
        };
        result.outcome = Outcome::Latency(LatencyOutcome { series: vec![own], all: Some(total.summary()) });
        result.end(Ending::complete());
        result.measured_ns = ticks * TICK_NS;
        writer.result(n, &result).unwrap();
    }
    writer.finish(RunStatus::Complete).unwrap();
    all
}

fn by_name<'a>(contents: &'a Contents, name: &str) -> &'a Row {
    contents.rows.iter().find(|row| row.result.name == name).unwrap()
}

#[test]
fn of_an_altered_bundle_the_slices_are_damaged_like_their_row() {
    let dir = tempfile::tempdir().unwrap();
    let slices = [slice("a", 1, 2, 3, 0), slice("a", 2, 2, 3, 10)];
    bundle(dir.path(), &slices, None);
    let damaged = |trust| {
        let contents = read(dir.path(), trust).unwrap();
        let row = &contents.rows[0];
        [row.result.damaged, row.slices.len() == 2 && row.slices.iter().all(|own| own.result.damaged)]
    };
    assert_eq!(damaged(Trust::Whole), [false, false]);
    let events = dir.path().join("events.jsonl");
    let text = fs::read_to_string(&events).unwrap();
    fs::write(&events, text + "\n").unwrap();
    assert_eq!(damaged(Trust::Damaged), [true, true]);
}

#[test]
fn slices_of_a_scenario_are_one_row_that_is_their_sum_with_gaps_where_it_was_not_its_turn() {
    let dir = tempfile::tempdir().unwrap();
    let slices = [
        slice("idle", 1, 3, 10, 0),
        slice("load", 1, 3, 10, 12),
        slice("load", 2, 3, 10, 24),
        slice("idle", 2, 3, 10, 36),
        slice("idle", 3, 3, 10, 48),
        slice("load", 3, 3, 10, 60),
    ];
    let all = bundle(dir.path(), &slices, None);
    let (contents, logs) = read_with_logs(&open(dir.path()).unwrap(), Trust::Whole).unwrap();
    assert!(contents.damage.is_empty(), "{:?}", contents.damage);
    assert_eq!(contents.rows.len(), 2);
    let idle = by_name(&contents, "idle");
    let mut wanted = Latency::new();
    [0, 3, 4].into_iter().for_each(|n| wanted.merge(&all[n]));
    assert!(idle.result.is_complete());
    assert_eq!(idle.result.all(), Some(&wanted.summary()));
    assert_eq!((idle.histogram(), idle.corrected()), (wanted.raw.clone(), wanted.corrected()));
    assert_eq!((idle.result.planned_ns, idle.result.measured_ns), (30 * TICK_NS, 30 * TICK_NS));
    let series = &idle.result.series()[0];
    assert_eq!((series.counters.cpu_ns, series.counters.smi, series.whole), (Some(21), None, true));
    let begins: Vec<u64> = idle.slices.iter().map(|slice| slice.at_ns / TICK_NS).collect();
    assert_eq!(begins, [0, 36, 48], "as the clock said");
    let ends: Vec<u64> = idle.ticks.iter().map(|(_, tick)| tick.at_ns / TICK_NS).collect();
    assert_eq!(ends, (1..=10).chain(37..=46).chain(49..=58).collect::<Vec<u64>>());
    assert_eq!(
        idle.histograms.intervals.keys().copied().collect::<Vec<_>>(),
        (0..10).chain(36..46).chain(48..58).collect::<Vec<_>>()
    );
    assert!(idle.result.notes[0].text.contains("3 slices of 10 s"), "{:?}", idle.result.notes);
    let at = contents.rows.iter().position(|row| row.result.name == "idle").unwrap();
    let (mut ticks, mut intervals) = (Vec::new(), 0);
    logs.ticks(at, &mut |_, tick| {
        ticks.push(tick.at_ns / TICK_NS);
        Ok(())
    })
    .unwrap();
    logs.intervals(at, &mut |_, place, _| {
        intervals += usize::from(place.end_ns() <= 58 * TICK_NS);
        Ok(())
    })
    .unwrap();
    assert_eq!((ticks, intervals), (ends, 30), "an export has the same time");
    assert_eq!(Resumed::open(dir.path()).unwrap().contents.rows.len(), 6, "whoever goes on sees each slice");
}

#[test]
fn a_slice_that_died_leaves_what_the_others_measured_and_its_own_ticks() {
    let dir = tempfile::tempdir().unwrap();
    let slices = [slice("idle", 1, 3, 10, 0), slice("idle", 2, 3, 10, 12), slice("idle", 3, 3, 10, 24)];
    let all = bundle(dir.path(), &slices, Some(4));
    let contents = read(dir.path(), Trust::Whole).unwrap();
    let row = &contents.rows[0];
    let cycles: u64 = all.iter().map(|own| own.totals.cycles).sum();
    assert_eq!((contents.rows.len(), row.result.all().unwrap().cycles), (1, cycles));
    assert_eq!((row.result.ended, row.result.is_complete()), (RowEnd::Died, false));
    let reason = row.result.reason.as_deref().unwrap();
    assert!(reason.starts_with("2 of 3 slices are complete; slice 3: the run died"), "{reason}");
    assert!(!row.result.series()[0].whole, "its last totals did not come");
}

#[test]
fn a_day_in_slices_has_as_many_intervals_and_stretches_as_one_at_one_go() {
    let dir = tempfile::tempdir().unwrap();
    // Two of 144 slices of a day.
    let slices = [slice("idle", 1, 144, 600, 0), slice("idle", 2, 144, 600, 2_460)];
    bundle(dir.path(), &slices, None);
    let contents = read(dir.path(), Trust::Whole).unwrap();
    let row = &contents.rows[0];
    let places: Vec<u64> = row.histograms.intervals.keys().copied().collect();
    assert_eq!(places, (0..10).chain(41..51).collect::<Vec<u64>>(), "a minute each");
    assert_eq!((row.ticks.joined, row.ticks.iter().count()), (12, 100));
    assert_eq!((row.result.ended, row.result.planned_ns), (RowEnd::Interrupted, 86_400 * TICK_NS));
}

#[test]
fn a_clock_that_was_set_back_or_far_ahead_puts_slices_after_each_other_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let far = 90 * 366 * 86_400;
    let slices = [slice("idle", 1, 3, 10, 0), slice("idle", 2, 3, 10, 5), slice("idle", 3, 3, 10, far)];
    bundle(dir.path(), &slices, None);
    let contents = read(dir.path(), Trust::Whole).unwrap();
    let begins: Vec<u64> = contents.rows[0].slices.iter().map(|slice| slice.at_ns / TICK_NS).collect();
    assert_eq!(begins, [0, 11, 22]);
    assert_eq!(contents.rows[0].ticks.iter().count(), 30);
}

/// The CPU time of this thread that it takes to put two slices together, the least of three, in ns.
fn joining(slice: &RowResult) -> u64 {
    let now = || -> u64 {
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    };
    let time = || {
        let began = now();
        let mut joining = Joining::new(slice);
        for row in 0..2 {
            let of = Slice { number: u32::try_from(row).unwrap() + 1, ..slice.slice.unwrap() };
            let part =
                Part { row, slice: Some(of), first_tick: 0, first_interval: 0, at_ns: row as u64 * TICK_NS };
            joining.add(part, Row::of(RowResult { slice: Some(of), ..slice.clone() }));
        }
        let row = joining.finish();
        assert_eq!(row.result.control.len(), slice.control.len());
        assert_eq!(row.result.injected.len(), slice.injected.len());
        now() - began
    };
    [(); 3].map(|()| time()).into_iter().min().unwrap()
}

#[test]
fn ten_times_the_controls_and_faults_of_slices_take_ten_times_as_long_and_not_a_hundred() {
    let of = |count: u32| {
        let control = |thread| Control {
            series: SeriesKey { cpu: 1, thread, priority: 95, kind: "thread".into() },
            activity: 0,
            injected_ns: 1_000_000,
            seen_ns: 1_000_010,
            noise_ns: 10,
            passed: true,
            attempts: 1,
            by: "hog".into(),
            stage: Stage::Before,
        };
        let injected = |activity| InjectedIn {
            environment: "host".into(),
            outside: "1".parse().unwrap(),
            injected: Injected {
                activity,
                kind: "block".into(),
                way: "hwlat tracer".into(),
                cpus: "1".parse().unwrap(),
                length_ns: 1,
                every_ns: 1,
                times: Some(1),
                longest_ns: None,
                at: Moments::default(),
            },
        };
        let mut latency = Latency::new();
        latency.record(5_000, 200_000);
        let measured = SeriesResult {
            key: control(0).series,
            summary: latency.summary(),
            counters: ThreadCounters::default(),
            outliers: Vec::new(),
            whole: true,
        };
        RowResult {
            control: (0..count).map(control).collect(),
            injected: (0..count).map(injected).collect(),
            outcome: Outcome::Latency(LatencyOutcome {
                series: vec![measured],
                all: Some(latency.summary()),
            }),
            ..slice("idle", 1, 2, 10, 0)
        }
    };
    let (few, many) = (joining(&of(1_500)), joining(&of(15_000)));
    assert!(many < few * 40, "{few} ns, {many} ns");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Any slices in a stranger's bundle.
    #[test]
    fn no_words_of_slices_make_the_reader_panic(
        numbers in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>()), 1..4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let slices: Vec<RowResult> = (1..).zip(&numbers).map(|(n, _)| slice("idle", n, 3, 2, 4 * i64::from(n))).collect();
        bundle(dir.path(), &slices, Some(1));
        for (n, (number, of, whole_ns, tick_ns)) in numbers.iter().enumerate() {
            let file = dir.path().join(format!("scenarios/{:02}-idle/result.json", n + 1));
            let mut value: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            value["slice"] = serde_json::json!({ "number": number, "of": of, "whole_ns": whole_ns, "tick_ns": tick_ns });
            fs::write(&file, value.to_string()).unwrap();
        }
        let contents = read(dir.path(), Trust::Damaged).unwrap();
        prop_assert!(contents.rows.len() <= numbers.len());
    }
}
