//! Two bundles of repeated runs held against each other, and what cannot be.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{alone, json, nothing_is_left, output, stderr, stdout, tactus};

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

fn compared(dir: &Path, arguments: &[&str]) -> Output {
    output(tactus().current_dir(dir).arg("compare").args(arguments))
}

#[test]
fn bundles_of_repeats_are_judged_and_others_stand_side_by_side() {
    let Some(_alone) = alone() else { return };
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
    assert!(text.contains("after against before") && text.contains("interleaved A/B"), "{text}");
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
fn of_more_bundles_than_a_process_may_open_each_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let recorded =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-format/tests/fixtures/import/cyclictest.json");
    let made = output(tactus().current_dir(dir.path()).args(["import", recorded, "--out", "one"]));
    assert!(made.status.success(), "{}", stderr(&made));
    fs::create_dir(dir.path().join("many")).unwrap();
    for number in 0..60 {
        let to = dir.path().join(format!("many/{number}"));
        let copied = Command::new("cp").arg("-r").arg(dir.path().join("one")).arg(to).status();
        assert!(copied.expect("cp").success());
    }
    let few = "ulimit -n 40; exec \"$0\" compare many one --json";
    let result =
        output(Command::new("sh").current_dir(dir.path()).args(["-c", few, env!("CARGO_BIN_EXE_tactus")]));
    assert!(result.status.success(), "{}", stderr(&result));
    assert_eq!(json(&result)["conditions"][0]["bundles"].as_array().unwrap().len(), 60);
}

#[test]
fn what_cannot_be_compared_is_named_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    for (arguments, said) in [
        (&["one"][..], "there is nothing to compare it with"),
        (&["one", "one"], "`one` is named twice"),
        (&["--self", "one", "two"], "--self takes one baseline"),
        (&["nowhere", "empty"], "nowhere"),
        (&["empty", "nowhere"], "is no bundle, and has none in it"),
        (&["--format", "xml", "one", "two"], "`xml` is not a format of comparisons"),
        (&["--margin", "p98=3%", "one", "two"], "`p98=3%` is no margin"),
    ] {
        let result = compared(dir.path(), arguments);
        assert_eq!(result.status.code(), Some(2), "{arguments:?}");
        let error = stderr(&result);
        assert!(error.contains(said) && error.contains("hint: "), "{arguments:?}: {error}");
    }
}
