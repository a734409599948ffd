//! Two bundles of repeated runs are compared, and some that cannot be.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tactus_bundle::Writer;
use tactus_model::Evidence;
use tactus_model::bundle::{Machine, RowResult};
use tactus_model::event::{RunStatus, Ticked};
use tactus_model::latency::{Latency, Sparse};
use tactus_model::message::{ThreadCounters, Tick};
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, SeriesResult};
use tactus_model::series::SeriesKey;
use tactus_run::plan::{Source, parse};

use crate::common::{
    beside_others, json, measures_beside_others, nothing_is_left, output, stderr, stdout, tactus,
};

const PLAN: &str = r#"
name = "gate"
[defaults]
environment = "host"
cpus = "first"
interval = "1ms"
duration = "300ms"
[environment.host]
kind = "host"
[[scenario]]
name = "idle"
"#;

fn run(plan: &Path, out: &Path, more: &[&str]) {
    let result = output(tactus().arg("run").args(more).arg("--out").arg(out).arg(plan));
    assert!(out.join("manifest.json").exists(), "{}", stderr(&result));
}

/// A made-up bundle of eight runs: its latencies are `hundredths` hundredths of the usual ones, and those of each run
/// a little different.
fn made(dir: &Path, hundredths: u64) {
    const SECONDS: u64 = 10;
    let key = || SeriesKey { cpu: 1, thread: 0, priority: 95, kind: "thread".into() };
    let plan = parse(&Source::new("plan.toml", PLAN.replace("300ms", "10s"))).unwrap();
    fs::create_dir_all(dir.parent().unwrap()).unwrap();
    let row = |repeat| RowResult {
        repeat: Some(repeat),
        interval_ns: 1_000_000,
        planned_ns: SECONDS * 1_000_000_000,
        measured_ns: SECONDS * 1_000_000_000,
        evidence: Some(Evidence::BareMetal),
        threads: Some(vec![key().of_thread()]),
        ..RowResult::unmeasured("idle", "host", "host")
    };
    let rows: Vec<RowResult> = (1..=8).map(row).collect();
    let mut writer = Writer::create(dir, &plan, &rows, Machine::default()).unwrap();
    writer.begin_session(Machine::default(), None, None).unwrap();
    for (number, mut row) in rows.into_iter().enumerate() {
        let own = 100 + u64::from(row.repeat.unwrap() % 3);
        let mut latency = Latency::new();
        for cycle in 0..SECONDS * 1_000 {
            latency.record((40_000 + cycle * 7 % 9_000) * hundredths * own / 10_000, row.interval_ns);
        }
        let tick = Tick {
            activity: 0,
            series: key(),
            n: 0,
            at_ns: row.measured_ns,
            now: latency.totals,
            total: latency.totals,
            counts: Sparse::of(&latency.raw),
            missed: Sparse::default(),
            thread: ThreadCounters::default(),
        };
        let mut log = writer.begin_row(number, &row, row.planned_ns).unwrap();
        let summary = latency.summary();
        log.tick(&Ticked::of(number, tick, summary.p99_ns)).unwrap();
        log.finish().unwrap();
        let series = SeriesResult {
            key: key(),
            summary: summary.clone(),
            counters: ThreadCounters::default(),
            outliers: Vec::new(),
            whole: true,
        };
        row.outcome = Outcome::Latency(LatencyOutcome { series: vec![series], all: Some(summary) });
        row.end(Ending::complete());
        writer.result(number, &row).unwrap();
    }
    writer.finish(RunStatus::Complete).unwrap();
}

fn compared(dir: &Path, arguments: &[&str]) -> Output {
    output(tactus().current_dir(dir).arg("compare").args(arguments))
}

#[test]
fn bundles_of_repeats_are_judged_and_others_stand_side_by_side() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("plan.toml"), PLAN).unwrap();
    for name in ["before", "after"] {
        run(&at("plan.toml"), &at(name), &["--repeat", "5"]);
    }
    let result = compared(dir.path(), &["--json", "before", "after"]);
    let document = json(&result);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let scenario = &document["scenarios"][0];
    assert_eq!(scenario["runs"], serde_json::json!([5, 5]), "{scenario:#}");
    assert_eq!(scenario["quantities"].as_array().unwrap().len(), 4);
    assert!(scenario["quantities"][2]["left_out"].as_bool().unwrap(), "300 periods have no p99.9");
    let gate = compared(dir.path(), &["--gate", "--json", "before", "after"]);
    let expected = match json(&gate)["outcome"].as_str().unwrap() {
        "pass" => 0,
        "regression" => 1,
        _ => 3,
    };
    assert_eq!(gate.status.code(), Some(expected));
    let text = stdout(&compared(dir.path(), &["before", "after"]));
    assert!(text.contains("after against before") && text.contains("not measured in turn"), "{text}");
    let page = compared(dir.path(), &["before", "after", "--format", "html", "--out", "page.html"]);
    assert!(page.status.success() && fs::read_to_string(at("page.html")).unwrap().contains("<svg"));

    // Several bundles are runs of one condition, and one run each says nothing of runs.
    run(&at("plan.toml"), &at("many/one"), &[]);
    run(&at("plan.toml"), &at("single"), &[]);
    let single = json(&compared(dir.path(), &["--json", "many", "single"]));
    assert_eq!(single["outcome"], "inconclusive");
    assert_eq!(single["conditions"][0]["bundles"].as_array().unwrap().len(), 1);
    let gate = compared(dir.path(), &["--gate", "many", "single"]);
    assert_eq!(gate.status.code(), Some(3), "{}", stdout(&gate));
    assert!(stdout(&gate).contains("run-to-run variation unknown"), "{}", stdout(&gate));
    let itself = compared(dir.path(), &["--self", "before"]);
    assert_eq!(itself.status.code(), Some(3), "five runs are no baseline: {}", stdout(&itself));
    nothing_is_left();
}

#[test]
fn a_gate_ends_with_one_on_a_regression_and_each_condition_is_compared_with_the_first() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    // Three sittings each, that differ by 2 %.
    for (name, hundredths) in [("base", 100), ("same", 101), ("slower", 140)] {
        for day in 0..3 {
            made(&dir.path().join(format!("{name}/{day}")), hundredths + 2 * day);
        }
    }
    // One sitting each decides nothing, whatever it shows.
    let one = compared(dir.path(), &["--gate", "--json", "base/0", "slower/0"]);
    assert_eq!((json(&one)["outcome"].as_str(), one.status.code()), (Some("inconclusive"), Some(3)));
    for (new, outcome, code) in [("same", "pass", 0), ("slower", "regression", 1)] {
        let gate = compared(dir.path(), &["--gate", "--json", "base", new]);
        assert_eq!(json(&gate)["outcome"], outcome, "{new}: {:#}", json(&gate));
        assert_eq!(gate.status.code(), Some(code), "{new}");
    }
    // Only a gate judges by its exit code.
    let all = compared(dir.path(), &["--json", "base", "same", "slower"]);
    assert_eq!(all.status.code(), Some(0), "{}", stderr(&all));
    let document = json(&all);
    assert_eq!(document["outcome"], "regression");
    let scenarios = document["scenarios"].as_array().unwrap();
    let with: Vec<&str> = scenarios.iter().map(|scenario| scenario["with"].as_str().unwrap()).collect();
    assert_eq!(with, ["same", "slower"]);
    let worse = |scenario: &serde_json::Value| {
        scenario["quantities"].as_array().unwrap().iter().any(|of| of["outcome"] == "regression")
    };
    assert_eq!(scenarios.iter().map(worse).collect::<Vec<_>>(), [false, true], "{document:#}");
    let gate = compared(dir.path(), &["--gate", "base", "same", "slower"]);
    assert_eq!(gate.status.code(), Some(1), "{}", stdout(&gate));
}

#[test]
fn of_more_bundles_than_a_process_may_open_each_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let recorded =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-format/tests/fixtures/import/cyclictest.json");
    let made = |from: &str, to: &str| {
        fs::copy(recorded, dir.path().join(from)).unwrap();
        let convert = ["convert", from, "--name", "x", "--out", to];
        let made = output(tactus().current_dir(dir.path()).args(convert));
        assert!(made.status.success(), "{}", stderr(&made));
    };
    made("one.json", "one");
    fs::create_dir(dir.path().join("many")).unwrap();
    (0..60).for_each(|number| made(&format!("{number}.json"), &format!("many/{number}")));
    let few = "ulimit -n 40; exec \"$0\" compare many one --json";
    let result =
        output(Command::new("sh").current_dir(dir.path()).args(["-c", few, env!("CARGO_BIN_EXE_tactus")]));
    assert!(result.status.success(), "{}", stderr(&result));
    assert_eq!(json(&result)["conditions"][0]["bundles"].as_array().unwrap().len(), 60);
    let copied = Command::new("cp").arg("-r").current_dir(dir.path()).args(["one", "many/copy"]).status();
    assert!(copied.expect("cp").success());
    let twice = compared(dir.path(), &["many", "one"]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(stderr(&twice).contains("has a copy of a bundle"), "{}", stderr(&twice));
}

#[test]
fn what_cannot_be_compared_is_named_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    for (arguments, said) in [
        (&["one"][..], "compare takes two bundles or more"),
        (&["one", "one"], "`one` is named twice"),
        (&["--self", "one", "two"], "--self takes one baseline"),
        (&["nowhere", "empty"], "nowhere"),
        (&["empty", "nowhere"], "is not a bundle, and contains none"),
        (&["--format", "xml", "one", "two"], "`xml` is not a format of comparisons"),
        (&["--margin", "p98=3%", "one", "two"], "`p98=3%` is not a margin"),
    ] {
        let result = compared(dir.path(), arguments);
        assert_eq!(result.status.code(), Some(2), "{arguments:?}");
        let error = stderr(&result);
        assert!(error.contains(said) && error.contains("hint: "), "{arguments:?}: {error}");
    }
}
