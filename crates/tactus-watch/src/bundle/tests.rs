use std::collections::BTreeMap;

use tactus_model::buckets::{BUCKETS, Counts, Packed};
use tactus_model::bundle::{FORMAT, Machine, Manifest};
use tactus_model::latency::Latency;
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, RowStatus, RunStatus, SeriesResult};
use tactus_model::plan::Plan;
use tactus_model::series::ThreadCounters;
use tactus_model::ticks::TickScalars;

use super::*;
use crate::state::tests::key;

/// Four rows: one that has ended, one that is measured, two that wait.
fn contents(finished: bool) -> Contents {
    let manifest = Manifest {
        format: FORMAT,
        tactus: "1".into(),
        plan: "ni\u{1b}ght".into(),
        started: String::new(),
        finished: finished.then(String::new),
        status: RunStatus::Interrupted,
        machine: Machine::default(),
        files: BTreeMap::new(),
        sessions: Vec::new(),
        asked: None,
    };
    let row = |ended: Ending, seconds: u64| {
        let mut result = RowResult::unmeasured("s", "host", "host");
        (result.planned_ns, result.measured_ns) = (60_000_000_000, seconds * 1_000_000_000);
        result.end(ended);
        let mut row = Measured::of(result);
        if seconds > 0 {
            let mut latency = Latency::new();
            for n in 0..seconds {
                latency.record(1_000 * (n + 1), 0);
                let max_ns = Some(1_000 * (n + 1));
                let (at_ns, cycles) = ((n + 1) * 1_000_000_000, 1);
                row.ticks.add(&key(1), &TickScalars { n, at_ns, cycles, max_ns, ..TickScalars::default() });
            }
            let summary = latency.summary();
            let (counters, outliers, whole) = (ThreadCounters::default(), Vec::new(), false);
            let series = vec![SeriesResult { key: key(1), summary, counters, outliers, whole }];
            row.result.outcome = Outcome::Latency(LatencyOutcome { series, all: None });
        }
        row
    };
    let died = Ending::because(RowEnd::Died, "the run died while this was measured");
    let waits = || row(Ending::because(RowEnd::Waiting, "not yet"), 0);
    let mut rows = vec![row(Ending::complete(), 60), row(died, 20), waits(), waits()];
    for (row, name) in rows.iter_mut().zip(["s", "t", "u", "u"]) {
        row.result.name = name.into();
    }
    Contents {
        manifest,
        plan: Plan::default(),
        facts: BTreeMap::new(),
        audits: BTreeMap::new(),
        rows,
        notes: Vec::new(),
        damage: Vec::new(),
        raw: false,
        own: false,
    }
}

#[test]
fn of_a_bundle_that_grows_the_row_that_has_begun_is_the_one_that_is_measured() {
    let watched = watched(&contents(false));
    assert_eq!(watched.plan, "ni\u{fffd}ght");
    let stages: Vec<Stage> = watched.rows.iter().map(|row| row.stage).collect();
    assert_eq!(stages, [Stage::Ended(RowStatus::Measured), Stage::Measuring, Stage::Waiting, Stage::Waiting]);
    assert_eq!((watched.current(), watched.ended), (vec![1], None));
    // The two that wait are of one scenario.
    assert_eq!(watched.left, Some(Duration::from_secs(40 + 60)));
    let series = &watched.rows[1].series[&key(1)];
    assert_eq!((series.max_ns(), series.now_ns), (Some(20_000), Some(20_000)));
    assert_eq!(series.maxima.in_columns(4).len(), 4);
}

#[test]
fn of_a_bundle_that_was_finished_nothing_is_measured() {
    let watched = watched(&contents(true));
    assert!(watched.rows.iter().all(|row| matches!(row.stage, Stage::Ended(_))));
    assert_eq!((watched.ended, watched.left), (Some(RunStatus::Interrupted), None));
}

#[test]
fn what_was_added_is_seen_and_what_is_as_before_is_not_drawn_again() {
    let before = contents(false);
    let mut after = contents(false);
    assert_eq!(watched(&before).events, watched(&after).events);
    let n = 20;
    after.rows[1].ticks.add(&key(1), &TickScalars { n, at_ns: 1, cycles: 1, ..TickScalars::default() });
    assert_ne!(watched(&before).events, watched(&after).events);
}

/// `rows` rows of `each` series, all with these counts; all are measured now, or all have ended.
fn wide(rows: usize, each: u64, counts: &Packed, measuring: bool) -> Contents {
    let mut contents = contents(!measuring);
    let one = contents.rows[usize::from(measuring)].clone();
    let mut latency = Latency::new();
    latency.record(1_000, 0);
    let mut row = Measured::of(one.result);
    let series = |thread: u64| {
        let key = SeriesKey { kind: format!("k{thread}"), ..key(1) };
        let (counters, outliers, whole) = (ThreadCounters::default(), Vec::new(), false);
        SeriesResult { key, summary: latency.summary(), counters, outliers, whole }
    };
    let series: Vec<SeriesResult> = (0..each).map(series).collect();
    for own in &series {
        row.histograms.series.insert(own.key.to_string(), counts.clone());
    }
    row.result.outcome = Outcome::Latency(LatencyOutcome { series, all: None });
    contents.rows = vec![row; rows];
    contents
}

fn counts_bytes(watched: &Watched) -> usize {
    watched.rows.iter().flat_map(|row| row.series.values()).map(Series::counts_bytes).sum()
}

#[test]
fn counts_in_the_last_bucket_of_many_series_take_no_memory_for_all_the_buckets_before() {
    let mut last = Counts::default();
    last.add(BUCKETS - 1, 1);
    for measuring in [false, true] {
        let watched = watched(&wide(10, 470, &last.pack(), measuring));
        assert_eq!(watched.rows.iter().map(|row| row.series.len()).sum::<usize>(), 4_700);
        assert!(counts_bytes(&watched) < 4_700 * 8, "{}", counts_bytes(&watched));
        let shown = watched.rows.last().unwrap().series.values().next().unwrap();
        assert_eq!(shown.packed(), last.pack(), "what is shown is there");
        assert!(watched.rows.iter().flat_map(|row| row.series.values()).all(|own| own.p99_ns().is_some()));
    }
}

#[test]
fn however_many_counts_and_series_a_bundle_has_what_is_kept_of_it_has_an_end() {
    let mut full = Counts::default();
    for bucket in 0..BUCKETS {
        full.add(bucket, 1);
    }
    let full = full.pack();
    let many = MOST_COUNTS / full.bytes() + 10;
    let bundle = wide(1, u64::try_from(many).unwrap(), &full, true);
    let kept = counts_bytes(&watched(&bundle));
    assert!(kept <= MOST_COUNTS && kept > MOST_COUNTS / 2, "{kept}");
    assert_eq!(watched(&wide(1, 3_000, &Packed::default(), true)).rows[0].series.len(), MOST_SERIES);
}
