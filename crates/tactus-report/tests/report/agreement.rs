//! Every format tells the same of the same bundle: what a reader of many bundles found to contradict itself.

use tactus_model::bundle::Contents;
use tactus_model::number::float;
use tactus_model::outcome::{Ending, RowEnd};
use tactus_model::plan::{Require, Scenario, TailLimit};
use tactus_model::{Evidence, Nanos};
use tactus_report::answer::{Came, Case, answer, cases, closing, headline};
use tactus_report::render::text::{Style, screen};
use tactus_report::render::{FORMATS, junit, lava};
use tactus_report::stats::comparison;
use tactus_statistics::tail::Refusal;

use crate::common::{Shape, Span, compared, empty, measured, planned, scheduler, unmeasured, whole_minute};

/// Two seconds of a measurement, with limits.
fn short(require: Require) -> Contents {
    let mut contents = empty();
    let mut result = planned("host idle", "host", "host", Vec::new());
    (result.planned_ns, result.require) = (2_000_000_000, Some(require));
    let span = Span { ticks: 20, samples: 500, per_interval: 1, series: 1 };
    contents.rows.push(measured(result, Evidence::BareMetal, Shape::IDLE, span, 5));
    contents
}

fn shown(contents: &Contents) -> String {
    let text = screen(contents, Style { colour: false, width: 80 }, "tactus report first");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn written(format: &str, contents: &Contents) -> String {
    let format = FORMATS.iter().find(|own| own.name == format).unwrap();
    String::from_utf8((format.render)(contents).unwrap()).unwrap()
}

#[test]
fn a_bound_that_is_unknown_is_a_number_in_no_format() {
    let tail = TailLimit { max: Nanos(1), horizon: Nanos::from_secs(86_400) };
    let contents = short(Require {
        max: Some(Nanos::from_ms(100)),
        p99: Some(Nanos::from_us(50)),
        tail: Some(tail),
        ..Require::default()
    });
    for format in FORMATS.iter().filter(|format| !["png", "svg"].contains(&format.name)) {
        let text = written(format.name, &contents);
        assert!(
            !text.contains("1797693134") && !text.contains("e299") && !text.contains("e308"),
            "{}",
            format.name
        );
    }
    assert!(!shown(&contents).contains("e299"), "{}", shown(&contents));
    let of = |quantity: &str| cases(&contents).into_iter().find(|case| case.name.contains(quantity)).unwrap();
    let all = contents.rows[0].result.all().unwrap();
    let p99 = of(": p99 ");
    let p99 = p99.measured.as_ref().unwrap_or_else(|| panic!("{:?}", contents.rows[0].result.require)).0;
    assert!(p99 <= float(all.max_ns.unwrap()) && p99 > 0.0, "the quantile, and no bound of it: {p99}");
    let most = |case: &Case| case.measured.as_ref().is_none_or(|(figure, _)| *figure < 1e12);
    assert!(cases(&contents).iter().all(most), "no latency is longer than its run");
}

#[test]
fn an_open_limit_has_its_reason_and_not_that_of_another_limit() {
    let require = Require { max: Some(Nanos::from_ms(500)), jitter: Some(Nanos(1)), ..Require::default() };
    let contents = short(require);
    let closed = closing(&contents, &comparison(&contents));
    let of = |limit: &str| closed.iter().find(|one| one.limit.starts_with(limit)).unwrap();
    assert!(of("jitter").said.contains("times the limit"), "{}", of("jitter").said);
    let said = &of("max").said;
    assert!(said.contains("too few") || said.contains("too short"), "{said}");
    assert!(!said.contains("jitter"), "{said}");
    let xml = junit::render(&contents).unwrap();
    let case = xml.split("<testcase").find(|case| case.contains("max: limit")).unwrap();
    assert!(case.contains("undecided") && !case.contains("jitter"), "{case}");
}

#[test]
fn a_quantile_that_keeps_its_limit_is_shown_with_its_bound_and_counted_without() {
    let mut contents = empty();
    let mut row = whole_minute();
    row.result.require =
        Some(Require { p99: Some(Nanos::from_ms(10)), cycles: Some(1), ..Require::default() });
    contents.rows.push(row);
    let [case] = &cases(&contents)[..] else { panic!("one limit") };
    assert_eq!(case.came, Came::Pass);
    let measured = case.measured.as_ref().unwrap().0;
    let most = contents.rows[0].result.series().iter().filter_map(|own| own.summary.corrected.p99_ns).max();
    assert!((measured / float(most.unwrap()) - 1.0).abs() < 0.01, "{measured} {most:?}");
    assert!(shown(&contents).contains(" (at most "), "{}", shown(&contents));
}

#[test]
fn idle_only_does_not_deny_a_load_whose_rows_are_missing() {
    let mut contents = short(Require::default());
    contents.rows[0].result.require = None;
    assert!(answer(&contents).sentence.contains("Idle only: tactus ran no load."));
    let loaded = Scenario {
        name: Some("host loaded".into()),
        load: vec![tactus_model::plan::Placed {
            what: tactus_model::catalogue::Load::Scheduler(Default::default()),
            environment: None,
            cpus: None,
        }],
        ..Scenario::default()
    };
    contents.plan.scenario.push(loaded);
    let said = answer(&contents).sentence;
    assert!(said.contains("Idle only: the measurements under load are missing here."), "{said}");
    // One that was never made ran no load.
    let waits = planned("host loaded", "host", "host", scheduler("host"));
    contents.rows.push(unmeasured(waits, RowEnd::Waiting, "the run was interrupted"));
    let said = answer(&contents).sentence;
    assert!(said.contains("Idle only: tactus ran no load."), "{said}");
}

#[test]
fn more_time_of_a_short_run_makes_longer_blocks() {
    let of = |blocks, block_ns| Refusal::TooShort { blocks, least: 300, block_ns }.longer_ns(300).unwrap();
    assert_eq!(of(15, 100_000_000), 298_500_000_000, "its blocks will be of 1 s");
    assert_eq!(of(30, 1_000_000_000), 270_000_000_000);
    assert_eq!(of(30, 5_000_000_000), 1_350_000_000_000);
}

#[test]
fn the_load_beside_an_imported_measurement_is_unknown() {
    let mut contents = short(Require::default());
    contents.rows[0].result.require = None;
    contents.rows[0].result.evidence = Some(Evidence::Imported);
    let page = written("html", &contents);
    assert!(page.contains("load unknown") && !page.contains("idle ·"));
    assert!(page.contains("Imported") && !page.contains(">Started<"), "when it was measured is unknown");
}

#[test]
fn an_imported_measurement_that_saw_nothing_was_made() {
    let mut contents = empty();
    let mut row = unmeasured(
        planned("hwlat", "host", "host", Vec::new()),
        RowEnd::Complete,
        "it saw no gap above 10 us",
    );
    (row.result.evidence, row.result.planned_ns) = (Some(Evidence::Imported), 0);
    row.result.end(Ending { ended: RowEnd::Complete, reason: Some("it saw no gap above 10 us".into()) });
    contents.rows.push(row);
    let headline = headline(&contents).join(" ");
    assert!(headline.contains("1 measurement was made") && !headline.contains("nothing"), "{headline}");
    let [case] = &cases(&contents)[..] else { panic!("one measurement") };
    assert_eq!(case.came, Came::Pass, "{case:?}");
    assert!(junit::render(&contents).unwrap().contains(r#"failures="0" errors="0""#));
    assert!(lava::render(&contents).contains("RESULT=pass"));
    // One that ended early, or beside another run without a result, passes in none.
    let passes = |contents: &Contents| {
        let junit = junit::render(contents).unwrap().contains(r#"failures="0" errors="0""#);
        (junit, cases(contents).iter().all(|case| case.came == Came::Pass))
    };
    let mut early = contents.clone();
    (early.rows[0].result.planned_ns, early.rows[0].result.measured_ns) = (120_000_000_000, 1_000_000_000);
    assert_eq!(passes(&early), (false, false));
    let mut two = contents.clone();
    two.rows.push(two.rows[0].clone());
    for (row, run) in two.rows.iter_mut().zip(1..) {
        row.result.repeat = Some(run);
    }
    assert_eq!(passes(&two), (true, true));
    two.rows[1].result.reason = None;
    assert_eq!(passes(&two), (false, false));
}

#[test]
fn the_time_of_a_case_is_that_of_all_runs() {
    let mut contents = empty();
    for run in 1..=3 {
        let mut own = short(Require::default()).rows.remove(0);
        (own.result.require, own.result.repeat) = (None, Some(run));
        contents.rows.push(own);
    }
    let xml = junit::render(&contents).unwrap();
    assert!(xml.contains(r#"time="6.000""#), "{xml}");
}

#[test]
fn one_limit_of_two_measurements_is_one_limit() {
    let require = Require { max: Some(Nanos::from_ms(500)), ..Require::default() };
    let mut contents = short(require.clone());
    let mut other = planned("host loaded", "host", "host", scheduler("host"));
    other.require = Some(require);
    contents.rows.push(unmeasured(other, RowEnd::Waiting, "the run was interrupted"));
    assert!(shown(&contents).contains("the limit is not decided."), "{}", shown(&contents));
}

#[test]
fn every_file_for_a_server_has_a_case_for_each_limit_also_where_none_was_judged() {
    let mut contents = empty();
    let mut waits = planned("host idle", "host", "host", Vec::new());
    let max = Some(Nanos::from_ms(500));
    waits.require = Some(Require { max, overruns: Some(0), ..Require::default() });
    contents.rows.push(unmeasured(waits, RowEnd::Waiting, "the run was interrupted"));
    let names: Vec<String> = cases(&contents).into_iter().map(|case| case.name).collect();
    assert_eq!(names, ["host idle: max 500 ms", "host idle: overruns 0"]);
    assert_eq!(junit::render(&contents).unwrap().matches("<testcase").count(), 2);
}

#[test]
fn two_runs_of_a_damaged_bundle_show_no_effect() {
    let run = |name: &str, seed: u64, shape: Shape| {
        let span = Span { ticks: 20, samples: 2_000, per_interval: 1, series: 1 };
        measured(planned(name, "host", "host", Vec::new()), Evidence::BareMetal, shape, span, seed)
    };
    let slow = Shape { base: 8.0 * Shape::IDLE.base, ..Shape::IDLE };
    let mut contents = compared(vec![run("a", 1, Shape::IDLE), run("b", 2, slow)]);
    assert!(written("markdown", &contents).contains("these two runs differ in"), "whole, it shows one");
    contents.rows.iter_mut().for_each(|row| row.result.damaged = true);
    contents.damage.push("events.jsonl is not as the run wrote it".into());
    let text = written("markdown", &contents);
    assert!(text.contains("the bundle is damaged") && !text.contains("differ in"), "{text}");
}
