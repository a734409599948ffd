//! A plan that is measured several times over: rounds in an order drawn by lot, and effects of pairs of runs.

use std::fs;

use serde_json::Value;

use crate::common::{alone, json, nothing_is_left, output, stderr, stdout, tactus};

const PLAN: &str = r#"
name = "repeats"
[defaults]
environment = "host"
cpus = "first"
interval = "1ms"
duration = "300ms"
[environment.host]
kind = "host"
[[scenario]]
name = "idle"
[[scenario]]
name = "held"
fault = [{ kind = "hog", length = "20ms", every = "60ms" }]
[[compare]]
name = "what a hog does"
base = "idle"
with = "held"
"#;

fn rounds(document: &Value) -> Vec<(u64, String)> {
    let scenarios = document["scenarios"].as_array().unwrap();
    let entry = |one: &Value| (one["repeat"].as_u64().unwrap(), one["name"].as_str().unwrap().to_owned());
    scenarios.iter().map(entry).collect()
}

#[test]
fn repeated_runs_are_rounds_and_their_pairs_show_what_a_hog_does() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out, again) =
        (dir.path().join("plan.toml"), dir.path().join("first"), dir.path().join("second"));
    fs::write(&plan, PLAN).unwrap();
    let result = output(tactus().args(["run", "--repeat", "7", "--json", "--out"]).arg(&out).arg(&plan));
    let document = json(&result);
    let rounds_of_first = rounds(&document);
    assert_eq!(rounds_of_first.len(), 14, "{}", stderr(&result));
    for (round, run) in rounds_of_first.chunks(2).zip(1..) {
        let mut names: Vec<&str> = round.iter().map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["held", "idle"]);
        assert!(round.iter().all(|(number, _)| *number == run), "{rounds_of_first:?}");
    }
    let effects = document["claims"][0]["effects"].as_array().unwrap();
    let maximum = effects.iter().find(|effect| effect["quantity"] == "maximum").unwrap();
    assert_eq!(maximum["shown"], true, "{maximum:#}");
    assert_eq!(document["claims"][0]["pairs"], 7, "{:#}", document["claims"]);
    let shown = stdout(&output(tactus().arg("show").arg(&out)));
    assert!(shown.contains("idle") && !shown.contains("between these two runs"), "{shown}");
    // The plan that the bundle keeps gives the same order again.
    let kept = out.join("plan.toml");
    let result = output(tactus().args(["run", "--json", "--out"]).arg(&again).arg(&kept));
    assert_eq!(rounds(&json(&result)), rounds_of_first, "{}", stderr(&result));
    nothing_is_left();
}
