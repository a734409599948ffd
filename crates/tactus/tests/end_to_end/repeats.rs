//! A plan that is measured several times over: rounds in randomised order, and effects of pairs of runs.

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
fault = [{ kind = "hog", length = "80ms", every = "150ms" }]
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
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&plan, PLAN).unwrap();
    let result = output(tactus().args(["run", "--repeat", "7", "--json", "--out"]).arg(&out).arg(&plan));
    let document = json(&result);
    let rounds = rounds(&document);
    assert_eq!(rounds.len(), 14, "{}", stderr(&result));
    for (round, run) in rounds.chunks(2).zip(1..) {
        let mut names: Vec<&str> = round.iter().map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["held", "idle"]);
        assert!(round.iter().all(|(number, _)| *number == run), "{rounds:?}");
    }
    let effects = document["claims"][0]["effects"].as_array().unwrap();
    let maximum = effects.iter().find(|effect| effect["quantity"] == "maximum").unwrap();
    assert_eq!(maximum["shown"], true, "{maximum:#}");
    assert_eq!(document["claims"][0]["pairs"], 7, "{:#}", document["claims"]);
    let shown = stdout(&output(tactus().arg("report").arg(&out)));
    assert!(shown.contains("idle") && !shown.contains("between these two runs"), "{shown}");
    let kept = fs::read_to_string(out.join("plan.toml")).unwrap();
    assert!(kept.contains("seed = ") && kept.contains("repeat = 7"), "the order can be had again: {kept}");
    nothing_is_left();
}
