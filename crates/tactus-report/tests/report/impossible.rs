//! A value that was not measured is unknown: no format shows an internal word for it, or an empty place.

use tactus_format::export::Options;
use tactus_model::bundle::{Contents, InjectedIn};
use tactus_model::latency::{Latency, Summary};
use tactus_model::message::{Control, Injected, Stage};
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, RowEnd};
use tactus_model::plan::Require;
use tactus_model::windows::Moments;
use tactus_model::{CpuSet, Evidence, Nanos};
use tactus_report::document;
use tactus_report::render::FORMATS;

use crate::common::{Shape, Span, empty, measured, planned, this_machine};
use crate::export::{FORMATS_OF_EXPORT, exported};

/// Texts that no report and no export may contain: the largest number of a word, a fault of no length, and a
/// time of no length.
const IMPOSSIBLE: [&str; 9] = [
    "18446744",
    "1.84e",
    "9223372",
    "0 us FIFO spinner",
    "seen as 0 us",
    "0 ms every",
    "every 0 us",
    "every 0 ms",
    "0 ms each",
];

/// Every report and export of a bundle.
fn texts(contents: &Contents) -> Vec<(String, String)> {
    let formats = FORMATS.iter().filter(|format| format.name != "png");
    let reports = formats.map(|format| {
        let text = String::from_utf8((format.render)(contents).unwrap()).unwrap().replace('\u{a0}', " ");
        (format.name.to_owned(), text.replace("µs", "us"))
    });
    let exports = FORMATS_OF_EXPORT.iter().flat_map(|format| {
        let (files, _) = exported(contents, format, Options::default());
        files.into_iter().map(move |(name, bytes)| {
            (format!("{format}, {name}"), String::from_utf8_lossy(&bytes).into_owned())
        })
    });
    reports.chain(exports).collect()
}

fn nothing_impossible(what: &str, contents: &Contents) {
    for (format, text) in texts(contents) {
        for words in IMPOSSIBLE {
            let at = text.find(words);
            let around = at.map(|at| text[..at].chars().rev().take(80).collect::<String>());
            let around = around.map(|text| text.chars().rev().collect::<String>());
            assert!(at.is_none(), "{what}, {format}: {around:?}{words}");
        }
    }
}

#[test]
fn a_self_test_that_was_not_made_or_did_not_arrive_has_no_length() {
    let mut contents = this_machine();
    for row in &mut contents.rows {
        let fine = row.result.control.iter().map(|control| Control {
            stage: Stage::Fine,
            injected_ns: 0,
            seen_ns: 0,
            noise_ns: 80_000,
            passed: false,
            ..control.clone()
        });
        let fine: Vec<Control> = fine.collect();
        row.result.control.extend(fine);
    }
    nothing_impossible("the smaller one was not made", &contents);
    for row in &mut contents.rows {
        for control in &mut row.result.control {
            (control.injected_ns, control.seen_ns, control.noise_ns, control.passed) =
                (0, 0, u64::MAX, false);
        }
    }
    nothing_impossible("none was made", &contents);
    let entry = document(&contents).scenarios[0].self_test.clone().unwrap();
    assert_eq!((entry.injected_ns, entry.seen_ns, entry.passed), (None, None, false));
    for row in &mut contents.rows {
        row.result.control.iter_mut().for_each(|control| control.injected_ns = 1_000_000);
    }
    nothing_impossible("nothing of it arrived", &contents);
    let page = texts(&contents).into_iter().find(|(format, _)| format == "html").unwrap().1;
    assert!(page.contains("unknown"), "what is not known is said to be that");
}

/// Of an import that says neither how long it was measured nor how often.
#[test]
fn what_another_tool_does_not_say_is_unknown() {
    let mut contents = empty();
    let span = Span { ticks: 2, samples: 200, per_interval: 1, series: 2 };
    let mut row = measured(
        planned("cyclictest", "bench", "imported", Vec::new()),
        Evidence::Imported,
        Shape::IDLE,
        span,
        3,
    );
    row.result.control.clear();
    (row.result.interval_ns, row.result.planned_ns, row.result.measured_ns) = (0, 0, 0);
    let own = row.result.outcome.latency_mut().unwrap();
    let summaries = own.series.iter_mut().map(|series| &mut series.summary).chain(&mut own.all);
    summaries.for_each(|all| all.overruns = None);
    contents.rows.push(row);
    nothing_impossible("imported", &contents);
    let all = texts(&contents);
    let text = |name: &str| &all.iter().find(|(format, _)| format == name).unwrap().1;
    assert!(
        !text("openmetrics, bundle.txt").contains("tactus_overruns_total"),
        "what is unknown has no metric"
    );
    for format in ["text", "markdown", "html"] {
        assert!(text(format).contains("unknown"), "{format}: {}", text(format));
    }
    let json: serde_json::Value = serde_json::from_str(text("json")).unwrap();
    let entry = &json["scenarios"][0];
    assert!(entry["all"]["overruns"].is_null() && entry["duration_s"].is_null(), "{entry:#}");
    assert!(json["fitness"][0]["duration_s"].is_null(), "{:#}", json["fitness"][0]);
}

#[test]
fn what_measured_nothing_has_no_figures() {
    let mut contents = this_machine();
    for row in &mut contents.rows {
        let nothing = Latency::new().summary();
        let own = row.result.outcome.latency_mut().unwrap();
        own.series.iter_mut().for_each(|series| series.summary = nothing.clone());
        own.all = Some(nothing);
        row.result.control.clear();
        row.result.require = Some(Require { max: Some(Nanos::from_us(100)), ..Require::default() });
    }
    nothing_impossible("nothing", &contents);
    for row in &mut contents.rows {
        row.result.outcome = Outcome::Latency(LatencyOutcome::default());
        row.result.end(Ending::because(RowEnd::Failed, "it broke"));
        (row.result.planned_ns, row.result.measured_ns, row.result.interval_ns) = (0, 0, 0);
    }
    nothing_impossible("failed", &contents);
    nothing_impossible("empty", &empty());
}

#[test]
fn a_fault_whose_length_and_number_are_not_reported_is_unknown() {
    let mut contents = this_machine();
    let injected = Injected {
        activity: 1,
        kind: "block".into(),
        way: "hwlat tracer".into(),
        cpus: CpuSet::default(),
        length_ns: 0,
        every_ns: 0,
        times: None,
        longest_ns: None,
        at: Moments::default(),
    };
    let fault = InjectedIn { environment: "host".into(), outside: CpuSet::default(), injected };
    contents.rows[0].result.injected.push(fault);
    nothing_impossible("a fault", &contents);
}

#[test]
fn missed_periods_of_unknown_length_have_none() {
    let mut contents = this_machine();
    for row in &mut contents.rows {
        row.result.interval_ns = 0;
        row.result.require = None;
        if let Some(all) = row.result.outcome.latency_mut().and_then(|own| own.all.as_mut()) {
            all.overruns = Some(81);
        }
    }
    for (format, text) in texts(&contents) {
        assert!(!text.contains("of 0 us"), "{format}");
    }
}

/// A sum beyond what a word holds is no mean.
#[test]
fn a_mean_whose_sum_overflowed_is_unknown() {
    let mut latency = Latency::new();
    for _ in 0..3 {
        latency.record(u64::MAX / 2, 0);
    }
    let Summary { mean_ns, min_ns, .. } = latency.summary();
    assert_eq!((mean_ns, min_ns), (None, Some(u64::MAX / 2)));
}
