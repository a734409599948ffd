//! What may be required of latencies, and how it is told: limits that warn, how much longer would do, and what CI servers
//! read.

use std::process::Command;

use tactus_model::Nanos;
use tactus_model::bundle::Contents;
use tactus_model::document::{Outcome, Side, Verdict};
use tactus_model::plan::Require;
use tactus_report::render::{github, junit};
use tactus_report::row::verdict;

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
    assert!(verdict.reason.contains("too few for its p99.999, which needs 1 000 000"), "{}", verdict.reason);
    // 10 000 periods in a minute: 99 minutes more.
    assert_eq!(verdict.longer_ns, Some(99 * 60_000_000_000));
    assert!(verdict.reason.ends_with("; 1 h 39 min more of the same would be enough"), "{}", verdict.reason);
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
fn a_workflow_is_told_that_nothing_was_judged() {
    let mut contents = this_machine();
    contents.rows = vec![whole_minute()];
    contents.rows[0].result.require = None;
    assert!(github::render(&contents).starts_with("::notice title=tactus::nothing was judged"));
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
