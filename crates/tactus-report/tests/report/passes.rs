//! Runs that must never pass: a part of a run, a lossy one, a short one, and an instrument that calls itself
//! proven. Each of these passed once.

use std::collections::BTreeMap;

use tactus_model::Nanos;
use tactus_model::bundle::Row;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::{Application, MarkedValue, Spin};
use tactus_model::clock::ClockCheck;
use tactus_model::document::{Fit, Outcome};
use tactus_model::message::{Control, Stage};
use tactus_model::number::float;
use tactus_model::outcome::Restart;
use tactus_model::plan::Require;
use tactus_report::row::verdict;
use tactus_report::{document, render};

use crate::common::{self, latency, whole_minute};

fn said(row: &Row) -> (Outcome, String) {
    let verdict = verdict(row).expect("it is required something");
    (verdict.outcome, verdict.reason)
}

/// The verdict is inconclusive, and names this.
fn inconclusive(row: &Row, words: &str) {
    let (outcome, reason) = said(row);
    assert_eq!(outcome, Outcome::Inconclusive, "{reason}");
    assert!(reason.contains(words), "{reason}");
}

#[test]
fn what_is_whole_passes_and_says_what_it_bounds() {
    let (outcome, reason) = said(&whole_minute());
    assert_eq!(outcome, Outcome::Pass, "{reason}");
    let words = "no exceedance in 60 s: at most 0.05 a second (95 %, independent seconds)";
    assert!(reason.ends_with(words), "{reason}");
}

#[test]
fn two_per_cent_of_a_run_are_inconclusive_however_many_cycles_they_are() {
    let mut row = whole_minute();
    // 2 % of the planned cycles.
    row.result.interval_ns = 120_000;
    row.result.frames_lost = 5_000;
    inconclusive(&row, "has 2.0 % of its planned periods");
}

#[test]
fn one_of_two_threads_is_a_part_of_what_was_planned() {
    let mut row = whole_minute();
    latency(&mut row).series.truncate(1);
    row.result.control.truncate(1);
    inconclusive(&row, "self-test not passed");
}

#[test]
fn a_thread_of_which_only_the_control_arrived_has_measured_nothing() {
    let mut row = whole_minute();
    let gone = latency(&mut row).series.pop().expect("two");
    assert!(row.result.control.iter().any(|control| control.series == gone.key));
    inconclusive(&row, &format!("nothing arrived of thread {} on CPU {}", gone.key.thread, gone.key.cpu));
}

#[test]
fn a_series_whose_last_totals_did_not_arrive_may_have_had_its_maximum_there() {
    let mut row = whole_minute();
    latency(&mut row).series[1].whole = false;
    inconclusive(&row, "the last totals of cpu2/t1/thread did not arrive");
}

#[test]
fn a_few_milliseconds_of_polling_are_no_measurement_however_many_polls_they_are() {
    let mut row = whole_minute();
    row.result.measurement = Measure::Spin(Spin::default());
    for series in &mut latency(&mut row).series {
        series.summary.cycles = 120_000;
        series.summary.mean_ns = Some(25.0);
    }
    inconclusive(&row, "of its planned time");
    row.result.planned_ns = 3_000_000;
    row.result.measured_ns = 3_000_000;
    inconclusive(&row, "3 ms are too short for a pass, which needs 1 min");
    let polled = f64::from(95 * 6) * 1e8 / 120_000.0;
    latency(&mut row).series.iter_mut().for_each(|series| series.summary.mean_ns = Some(polled));
    (row.result.planned_ns, row.result.measured_ns) = (60_000_000_000, 60_000_000_000);
    assert_eq!(said(&row).0, Outcome::Pass, "all of the time was polled");
}

#[test]
fn cycles_of_a_program_pass_as_wake_ups_do_and_not_where_one_was_left_out() {
    let of = |value| Measure::Application(Application { value: Some(value), ..Application::default() });
    let mut row = whole_minute();
    row.result.measurement = of(MarkedValue::Response);
    assert_eq!(said(&row).0, Outcome::Pass);
    latency(&mut row).series[1].summary.lost = 1;
    inconclusive(&row, "1 cycles of cpu2/t1/thread were left out; how long they took is unknown");
    row.result.require = Some(Require { max: Some(Nanos(1)), cycles: Some(1), ..Require::default() });
    assert_eq!(said(&row).0, Outcome::Fail, "what was left out cannot make it better");
    row.result.measurement = of(MarkedValue::Execution);
    row.result.require = Some(Require { overruns: Some(0), cycles: Some(1), ..Require::default() });
    inconclusive(&row, "no periods");
}

#[test]
fn a_poller_that_somebody_kept_from_its_slices_does_not_pass_on_the_rest() {
    let mut row = whole_minute();
    row.result.measurement = Measure::Spin(Spin::default());
    let mut polled = |part: f64| {
        for series in &mut latency(&mut row).series {
            series.summary.mean_ns = Some(part * 0.95 * 6e10 / float(series.summary.cycles));
        }
        said(&row)
    };
    let (outcome, reason) = polled(1.0);
    assert_eq!(outcome, Outcome::Pass);
    assert!(reason.contains("in 57 of 60 s: at most 0.053 a second"), "the time that was polled: {reason}");
    // 73 slices of 100 ms of which the first 40 ms are nowhere.
    let (outcome, reason) = polled(0.95);
    assert_eq!(outcome, Outcome::Inconclusive);
    assert!(reason.contains("95.0 % of its planned time"), "{reason}");
}

#[test]
fn a_quantile_passes_on_what_may_be_expected_and_not_on_what_happened_to_be_measured() {
    let mut row = whole_minute();
    let require = |p999| Some(Require { p999: Some(p999), cycles: Some(1), ..Require::default() });
    row.result.require = require(Nanos::from_ms(10));
    let (outcome, reason) = said(&row);
    assert_eq!(outcome, Outcome::Pass, "{reason}");
    assert!(reason.contains(" (95 %, if no unseen stall is longer than "), "{reason}");
    // Exactly what was measured is no bound.
    let measured = row.result.series().iter().filter_map(|series| series.summary.corrected.p999_ns).max();
    row.result.require = require(Nanos(measured.unwrap()));
    inconclusive(&row, "of its periods may be later (95 %");
}

#[test]
fn values_pass_after_a_minute_as_latencies_do() {
    let of = |seconds: u64| {
        let mut row = common::overheads().rows.swap_remove(0);
        let values = BTreeMap::from([("signal handler".into(), "4us".parse().unwrap())]);
        row.result.require = Some(Require { values, ..Require::default() });
        (row.result.planned_ns, row.result.measured_ns) = (seconds * 1_000_000_000, seconds * 1_000_000_000);
        row
    };
    inconclusive(&of(3), "3 s are too short for a pass, which needs 1 min");
    assert_eq!(verdict(&of(3)).unwrap().longer_ns, Some(57_000_000_000));
    assert_eq!(said(&of(60)).0, Outcome::Pass);
}

#[test]
fn a_control_is_judged_by_its_figures_and_not_by_what_it_says_of_itself() {
    for (seen_ns, noise_ns) in [(0, 4_000), (14_000_000, 4_000), (2_700_000, 3_000_000)] {
        let mut row = whole_minute();
        let control = &mut row.result.control[0];
        (control.seen_ns, control.noise_ns, control.passed) = (seen_ns, noise_ns, true);
        inconclusive(&row, "self-test not passed");
    }
}

#[test]
fn a_control_that_is_no_longer_seen_after_the_measurement_proves_nothing_before_it() {
    let mut row = whole_minute();
    let again: Vec<Control> =
        row.result.control.iter().map(|one| Control { stage: Stage::After, ..one.clone() }).collect();
    row.result.control.extend(again);
    assert_eq!(said(&row).0, Outcome::Pass);
    row.result.control.last_mut().unwrap().seen_ns = 4_000;
    inconclusive(&row, "self-test not passed");
    row.result.control.pop();
    inconclusive(&row, "self-test not passed");
}

#[test]
fn fifty_microseconds_are_asked_for_only_where_the_place_is_quiet_enough() {
    let fine = |seen_ns, noise_ns| {
        let mut row = whole_minute();
        let all = row.result.control.clone().into_iter();
        let fine =
            all.map(|one| Control { stage: Stage::Fine, injected_ns: 50_000, seen_ns, noise_ns, ..one });
        row.result.control.extend(fine);
        row
    };
    assert_eq!(said(&fine(52_000, 4_000)).0, Outcome::Pass);
    assert_eq!(said(&fine(1_000, 40_000)).0, Outcome::Pass, "it could not be told from the noise");
    inconclusive(&fine(1_000, 4_000), "self-test not passed");
}

#[test]
fn a_clock_that_is_known_to_be_wrong_gives_no_verdict() {
    let mut row = whole_minute();
    row.result.clock = Some(ClockCheck { step_ns: Some(4_000_000), stands: true, ..ClockCheck::default() });
    inconclusive(&row, "self-test not passed");
    row.result.clock = Some(ClockCheck { step_ns: Some(40), jump_ns: 10_000_001, ..ClockCheck::default() });
    inconclusive(&row, "its clock and others moved apart by 10 ms");
    row.result.clock = Some(ClockCheck { step_ns: Some(40), jump_ns: 9_000_000, ..ClockCheck::default() });
    assert_eq!(said(&row).0, Outcome::Pass);
}

/// An environment that died at this moment, and was measured on after 4.2 s.
fn death(at_ns: u64) -> Restart {
    let reason = "the guest's kernel panicked; its last words:\nKernel panic".to_owned();
    Restart { at_ns, first_tick: 20, gap_ns: 4_200_000_000, reason }
}

#[test]
fn an_environment_that_died_does_not_pass_however_good_it_was_before_and_after() {
    let mut row = whole_minute();
    row.result.restarts = vec![death(20_000_000_000)];
    inconclusive(&row, "but its environment died once (the guest's kernel panicked)");
    assert!(said(&row).1.contains("in 1 min"), "the measured time has no gap in it: {}", said(&row).1);
    row.result.restarts.push(death(30_000_000_000));
    inconclusive(
        &row,
        "died 2 times (the guest's kernel panicked), was started again, and was not measured for 8.4 s",
    );
    let max = row.result.require.as_ref().and_then(|require| require.max);
    row.result.require = Some(Require { max, overruns: Some(0), cycles: Some(1), ..Require::default() });
    inconclusive(&row, "died 2 times");
    row.result.require = Some(Require { max: Some(Nanos(1)), cycles: Some(1), ..Require::default() });
    assert_eq!(said(&row).0, Outcome::Fail, "what was exceeded is exceeded");
    row.result.require = Some(Require { max, overruns: Some(0), cycles: Some(1), ..Require::default() });
    row.result.restarts.clear();
    assert_eq!(said(&row).0, Outcome::Pass);
}

#[test]
fn a_guest_that_died_is_a_pass_in_no_format() {
    let mut contents = common::empty();
    let mut row = whole_minute();
    row.result.restarts = vec![death(20_000_000_000), death(30_000_000_000)];
    contents.rows.push(row);
    let format = |name: &str| {
        let format = render::FORMATS.iter().find(|format| format.name == name).unwrap();
        String::from_utf8((format.render)(&contents).unwrap()).unwrap()
    };
    for name in ["text", "markdown", "html", "json", "junit", "github"] {
        assert!(format(name).contains("died 2 times"), "{name}");
    }
    assert!(format("junit").contains("errors=\"1\""), "{}", format("junit"));
    assert!(format("github").starts_with("::warning title=NOT DECIDED::"), "{}", format("github"));
    contents.rows[0].result.require = None;
    let report = render::junit::render(&contents).unwrap();
    assert!(report.contains("errors=\"1\"") && report.contains("its environment died 2 times"), "{report}");
    let fitness = &document(&contents).fitness[0];
    assert!(fitness.classes.iter().all(|class| class.fit != Fit::Fit), "{fitness:?}");
}

#[test]
fn what_lacks_in_a_row_lacks_in_its_words() {
    let mut row = whole_minute();
    (row.result.planned_ns, row.result.measured_ns) = (600_000_000_000, 600_000_000_000);
    for series in &mut latency(&mut row).series {
        series.summary.cycles = 100_000;
    }
    let (outcome, reason) = said(&row);
    assert_eq!(outcome, Outcome::Pass);
    assert!(reason.contains("no exceedance in 600 s: at most 0.005 a second"), "{reason}");
    // 5 s of one thread did not arrive.
    latency(&mut row).series[1].summary.cycles -= 833;
    let (outcome, reason) = said(&row);
    assert_eq!(outcome, Outcome::Pass, "{reason}");
    assert!(reason.contains("no exceedance in 595 of 600 s: at most 0.005 a second"), "{reason}");
    assert!(reason.contains("cycles in 595 of 600 s"), "{reason}");
}

#[test]
fn missed_periods_that_no_limit_forbids_are_said_where_it_passes() {
    let mut row = whole_minute();
    if let Some(summary) = &mut latency(&mut row).all {
        summary.overruns = Some(71);
    }
    let missed = "; 71 periods of 6 ms were missed, which no limit forbids (`--overruns 0` does)";
    assert!(said(&row).1.contains(missed), "{}", said(&row).1);
    let limit = |overruns| Some(Require { overruns: Some(overruns), ..row.result.require.clone().unwrap() });
    let (many, none) = (limit(71), limit(0));
    row.result.require = many;
    assert!(!said(&row).1.contains("no limit forbids"), "{}", said(&row).1);
    row.result.require = none;
    assert_eq!(said(&row).0, Outcome::Fail);
}

#[test]
fn ten_seconds_are_too_short_and_a_broken_maximum_needs_no_more() {
    let mut row = whole_minute();
    (row.result.planned_ns, row.result.measured_ns, row.result.interval_ns) =
        (10_000_000_000, 10_000_000_000, 1_000_000);
    inconclusive(&row, "10 s are too short for a pass, which needs 1 min");
    row.result.require = Some(Require { max: Some(Nanos(1)), cycles: Some(1), ..Require::default() });
    latency(&mut row).series[1].whole = false;
    assert_eq!(said(&row).0, Outcome::Fail, "one value is enough");
    row.result.require = Some(Require { p99: Some(Nanos(1)), cycles: Some(1), ..Require::default() });
    inconclusive(&row, "the last totals of cpu2/t1/thread did not arrive");
}

#[test]
fn what_an_older_bundle_does_not_say_does_not_pass() {
    let mut row = whole_minute();
    row.result.threads = None;
    inconclusive(&row, "does not record which threads were to measure");
}

#[test]
fn lost_frames_are_shown_by_every_format() {
    let mut contents = common::study();
    contents.rows[0].result.frames_lost = 98_765;
    assert_eq!(document(&contents).scenarios[0].frames_lost, 98_765);
    let number = |text: &str| text.replace(['\u{a0}', '\u{202f}', ' '], "").contains("98765");
    // An image has no words, and a list of verdicts no measurements of which nothing is required.
    const VERDICTS: [&str; 5] = ["png", "junit", "github", "ktap", "lava"];
    for format in render::FORMATS.iter().filter(|format| !VERDICTS.contains(&format.name)) {
        let text = String::from_utf8((format.render)(&contents).unwrap()).unwrap();
        assert!(number(&text), "{}", format.name);
    }
}
