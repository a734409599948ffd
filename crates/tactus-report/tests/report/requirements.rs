//! Requirements on latencies and their reports: limits that warn, how much longer would do, and the files for
//! CI servers.

use std::process::Command;

use tactus_model::buckets::bucket_of;
use tactus_model::bundle::Contents;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::Timer;
use tactus_model::document::{Outcome, Side, Verdict};
use tactus_model::event::RowStatus;
use tactus_model::histograms::{Folding, Histograms, Place};
use tactus_model::message::Control;
use tactus_model::plan::Require;
use tactus_model::{Evidence, Nanos};
use tactus_report::render::{FORMATS, github, junit};
use tactus_report::row::{pass_needs, verdict};

use crate::common::{latency, this_machine, whole_minute};
use crate::export::python::python;

const WIDE: Option<Nanos> = Some(Nanos::from_ms(10));

fn judged(require: Require) -> Verdict {
    let mut row = whole_minute();
    row.result.require = Some(Require { cycles: Some(1), ..require });
    verdict(&row).expect("something is required")
}

fn warn(limits: Require) -> Option<Box<Require>> {
    Some(Box::new(limits))
}

#[test]
fn a_limit_that_only_warns_passes_with_a_warning_and_a_hard_one_counts_before_it() {
    let tight = || Require { p99: Some(Nanos(1)), ..Require::default() };
    let verdict = judged(Require { max: WIDE, warn: warn(tight()), ..Require::default() });
    assert_eq!(verdict.outcome, Outcome::Warn);
    assert!(verdict.reason.contains("exceeds the warning limit 0.001 us"), "{}", verdict.reason);
    let sides: Vec<_> =
        verdict.limits.iter().map(|one| (one.quantity.as_str(), one.warns, one.side)).collect();
    assert_eq!(sides, [("max", false, Side::Kept), ("p99", true, Side::Broken)]);
    let verdict = judged(Require { warn: warn(tight()), ..tight() });
    assert_eq!(verdict.outcome, Outcome::Fail);
    let verdict =
        judged(Require { warn: warn(Require { max: WIDE, ..Require::default() }), ..Require::default() });
    assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.reason);
}

/// Servers keep each limit as a separate case.
#[test]
fn a_limit_that_is_kept_passes_by_itself_as_little_as_its_row_would() {
    let mut contents = this_machine();
    let mut row = whole_minute();
    row.result.measured_ns = 3_000_000_000;
    (row.result.name, row.result.environment) = ("short".into(), "host".into());
    let kept = Require { p99: WIDE, overruns: Some(1_000), cycles: Some(1), ..Require::default() };
    row.result.require = Some(Require { max: Some(Nanos(1)), ..kept });
    let verdict = verdict(&row).unwrap();
    assert_eq!(verdict.outcome, Outcome::Fail);
    let sides: Vec<_> = verdict.limits.iter().map(|one| (one.quantity.as_str(), one.side)).collect();
    assert_eq!(sides, [("max", Side::Broken), ("p99", Side::Open), ("overruns", Side::Open)]);
    contents.rows = vec![row];
    for name in ["junit", "ktap", "lava"] {
        let format = FORMATS.iter().find(|format| format.name == name).unwrap();
        let said = String::from_utf8((format.render)(&contents).unwrap()).unwrap();
        let passed = |line: &&str| {
            line.starts_with("ok ") && line.contains("p99")
                || line.contains("RESULT=pass") && line.contains("p99")
        };
        assert_eq!(said.lines().find(passed), None, "{name}: {said}");
        assert!(name != "junit" || said.contains("errors=\"2\""), "{said}");
    }
}

#[test]
fn limits_that_only_warn_are_no_success_where_nothing_could_be_judged() {
    let mut contents = this_machine();
    let tight = || Require { max: Some(Nanos(1)), ..Require::default() };
    let mut rows = [whole_minute(), whole_minute()];
    for (n, row) in rows.iter_mut().enumerate() {
        (row.result.name, row.result.environment) = (format!("row {n}"), "host".into());
        row.result.require = Some(Require { cycles: Some(1), warn: warn(tight()), ..Require::default() });
    }
    (rows[0].result.status, rows[0].result.reason) =
        (RowStatus::Failed, Some("the guest did not boot".into()));
    rows[1].result.evidence = Some(Evidence::Emulated);
    contents.rows = rows.into();
    let xml = junit::render(&contents).unwrap();
    assert!(xml.contains("errors=\"2\""), "{xml}");
    // Judged, and exceeded, in a row that is too short to pass.
    let mut short = contents.rows[0].clone();
    let whole = whole_minute();
    (short.result.status, short.result.reason) = (whole.result.status, None);
    short.result.measured_ns = 3_000_000_000;
    contents.rows = vec![short];
    let judged = verdict(&contents.rows[0]).unwrap();
    assert_eq!(judged.outcome, Outcome::Inconclusive);
    assert!(!judged.reason.starts_with(','), "{}", judged.reason);
    let xml = junit::render(&contents).unwrap();
    assert!(xml.contains("errors=\"1\""), "{xml}");
}

#[test]
fn overruns_are_counted_and_nothing_that_did_not_arrive_makes_them_fewer() {
    let none = Require { overruns: Some(0), ..Require::default() };
    assert_eq!(judged(none.clone()).outcome, Outcome::Pass);
    let mut row = whole_minute();
    let of = latency(&mut row);
    of.all.as_mut().unwrap().overruns = Some(3);
    row.result.require = Some(Require { cycles: Some(1), ..none });
    let verdict = verdict(&row).unwrap();
    assert_eq!(verdict.outcome, Outcome::Fail);
    assert!(verdict.reason.starts_with("3 overruns are more than the required 0"), "{}", verdict.reason);
}

#[test]
fn a_quantile_that_needs_more_says_how_much_longer() {
    let verdict = judged(Require { p99999: WIDE, ..Require::default() });
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    let words = "but up to 0.050 % of its periods may be later (95 %, from 0 late ones, which come in stalls). The limit \
                 allows 0.001 %";
    assert!(verdict.reason.contains(words), "{}", verdict.reason);
    // Three stalls of 10 ms may come in 50 minutes, of which one was measured.
    let longer_ns = verdict.longer_ns.expect("time decides");
    assert_eq!(longer_ns / 60_000_000_000, 48, "{longer_ns}");
    assert!(verdict.reason.ends_with(" more of the same would be enough"), "{}", verdict.reason);
}

#[test]
fn a_limit_on_a_quantile_is_judged_for_each_thread_and_the_worst_decides() {
    let (mut row, mut slow) = (whole_minute(), whole_minute());
    // One of sixteen threads has a p99 of 990 us, and all of them together one of some microseconds.
    let (good, bad) = (latency(&mut row).series[0].clone(), latency(&mut slow).series[1].clone());
    let mut late = Folding::new(vec![6_000_000_000], usize::MAX);
    for second in 0..10 {
        let place = Place { start_ns: second * 6_000_000_000, length_ns: 6_000_000_000 };
        assert!(late.add("7", place, &[(bucket_of(2_000), 970), (bucket_of(990_000), 30)]));
    }
    let late = late.finish();
    let (histograms, squares) = (row.histograms.series["1"].clone(), row.histograms.squares["1"].clone());
    let of = latency(&mut row);
    of.series = (0..16)
        .map(|cpu| {
            let mut own = if cpu == 7 { bad.clone() } else { good.clone() };
            own.key.cpu = cpu;
            if cpu == 7 {
                own.summary.max_ns = Some(990_000);
            }
            own
        })
        .collect();
    of.all.as_mut().unwrap().max_ns = Some(990_000);
    row.result.threads = Some(row.result.series().iter().map(|series| series.key.of_thread()).collect());
    let control = row.result.control[0].clone();
    let keys: Vec<_> = row.result.series().iter().map(|series| series.key.clone()).collect();
    row.result.control = keys.iter().map(|key| Control { series: key.clone(), ..control.clone() }).collect();
    for key in &keys {
        let tag = key.cpu.to_string();
        let slow = key.cpu == 7;
        row.histograms
            .series
            .insert(tag.clone(), if slow { late.series["7"].clone() } else { histograms.clone() });
        row.histograms.squares.insert(tag, if slow { late.squares["7"].clone() } else { squares.clone() });
    }
    assert!(row.corrected().value_at_quantile(0.99) < 100_000, "all together keep it");
    row.result.require =
        Some(Require { p99: Some(Nanos::from_us(100)), cycles: Some(1), ..Require::default() });
    let verdict = verdict(&row).unwrap();
    assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.reason);
    assert!(verdict.reason.starts_with("p99 of cpu7/t1/thread 990 us exceeds"), "{}", verdict.reason);
}

#[test]
fn what_a_pass_needs_is_known_before_anything_is_measured() {
    let timer = Measure::Timer(Timer::default());
    let seconds = |require: Require, measure: &Measure, interval_us: u64| {
        pass_needs(&require, measure, interval_us * 1_000).map(|needs| (needs.ns / 1_000_000_000, needs.why))
    };
    let max = || Require { max: WIDE, ..Require::default() };
    assert_eq!(seconds(Require::default(), &timer, 200), None);
    assert_eq!(seconds(max(), &timer, 200).unwrap().0, 60);
    assert_eq!(seconds(Require { p999: WIDE, ..max() }, &timer, 200).unwrap().0, 60);
    assert_eq!(seconds(Require { p9999: WIDE, ..max() }, &timer, 200).unwrap(), (300, "p99.99".into()));
    assert_eq!(seconds(Require { p99999: WIDE, ..max() }, &timer, 200).unwrap(), (3_000, "p99.999".into()));
    assert_eq!(seconds(max(), &timer, 1_000).unwrap(), (100, "100 000 cycles of each thread".into()));
    // The time that it calls enough is enough, and a little less is not.
    for (seconds, outcome) in [(301, Outcome::Pass), (299, Outcome::Inconclusive)] {
        let mut row = whole_minute();
        let counts: Vec<(usize, u64)> = vec![(bucket_of(5_000), 5_000)];
        let mut all = Folding::new(vec![1_000_000_000], usize::MAX);
        for second in 0..seconds {
            let place = Place { start_ns: second * 1_000_000_000, length_ns: 1_000_000_000 };
            assert!(["1", "2"].iter().all(|tag| all.add(tag, place, &counts)));
        }
        (row.histograms, row.missed) = (all.finish(), Histograms::default());
        row.result.interval_ns = 200_000;
        (row.result.planned_ns, row.result.measured_ns) = (seconds * 1_000_000_000, seconds * 1_000_000_000);
        for series in &mut latency(&mut row).series {
            series.summary.cycles = 5_000 * seconds;
        }
        row.result.require = Some(Require { p9999: WIDE, ..Require::default() });
        let verdict = verdict(&row).unwrap();
        assert_eq!(verdict.outcome, outcome, "{}", verdict.reason);
    }
}

#[test]
fn what_time_does_not_settle_names_no_time() {
    let mut row = whole_minute();
    row.result.require = Some(Require { max: WIDE, cycles: Some(1), ..Require::default() });
    row.result.control.clear();
    assert_eq!(verdict(&row).unwrap().longer_ns, None);
    let mut row = whole_minute();
    row.result.require = Some(Require { max: WIDE, cycles: Some(1), ..Require::default() });
    latency(&mut row).series[0].whole = false;
    assert_eq!(verdict(&row).unwrap().longer_ns, None);
}

/// Rows that pass, warn, fail and are not known, and one that could not be tried.
fn of_every_outcome() -> Contents {
    let mut contents = this_machine();
    let wide = || Require { max: WIDE, cycles: Some(1), ..Require::default() };
    let tight = || Require { max: Some(Nanos(1)), cycles: Some(1), ..Require::default() };
    let requires =
        [wide(), Require { warn: warn(Require { cycles: None, ..tight() }), ..wide() }, tight(), wide()];
    for (n, require) in requires.into_iter().enumerate() {
        let mut row = whole_minute();
        row.result.name = format!("<{n}> & \"{n}\"");
        row.result.environment = "host".into();
        row.result.require = Some(require);
        if n == 3 {
            row.result.control.clear();
        }
        contents.rows.insert(n, row);
    }
    contents
}

#[test]
fn annotations_of_a_workflow_name_what_does_not_pass() {
    insta::assert_snapshot!(github::render(&of_every_outcome()));
}

#[test]
fn a_workflow_is_told_that_no_deadline_was_asked_for() {
    let mut contents = this_machine();
    contents.rows = vec![whole_minute()];
    contents.rows[0].result.require = None;
    let told = github::render(&contents);
    assert!(told.starts_with("::notice title=NO LIMIT GIVEN::"), "{told}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another program reads what was written")]
fn a_reader_of_junit_files_counts_a_case_for_every_limit() {
    let xml = junit::render(&of_every_outcome()).unwrap();
    insta::assert_snapshot!(xml);
    let Some(python) = python("junitparser") else { return };
    let dir = tempfile::tempdir().unwrap();
    let passes = |name: &str, xml: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, xml).unwrap();
        Command::new(&python).args(["-m", "junitparser", "verify"]).arg(file).status().unwrap().success()
    };
    assert!(!passes("all.xml", &xml), "what is broken fails");
    let count = "import sys, junitparser; print(sum(len(list(suite)) for suite in junitparser.JUnitXml.fromfile(sys.argv[1])))";
    let out = Command::new(&python).args(["-c", count]).arg(dir.path().join("all.xml")).output().unwrap();
    // Five limits of the first rows, four of this machine's, and its three rows that nothing is required of.
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "12", "{}", String::from_utf8_lossy(&out.stderr));
    let mut contents = of_every_outcome();
    contents.rows.truncate(2);
    assert!(passes("kept.xml", &junit::render(&contents).unwrap()), "a warning passes");
    contents.rows = of_every_outcome().rows.split_off(3);
    contents.rows.truncate(1);
    assert!(!passes("unknown.xml", &junit::render(&contents).unwrap()), "what is not known does not pass");
}
