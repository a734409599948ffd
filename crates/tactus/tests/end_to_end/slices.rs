//! Scenarios in slices that take turns, killed in the middle and resumed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::common::{alone, json, nothing_is_left, output, stderr, stdout, tactus};

const PLAN: &str = r#"
name = "slices"
[defaults]
environment = "host"
cpus = "first"
interval = "1ms"
duration = "8s"
interleave = "1s"
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
[[figure]]
kind = "latency-over-time"
title = "All of it"
scenarios = ["idle", "held"]
"#;

/// Every file of slices that are complete.
fn complete(bundle: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let Ok(rows) = fs::read_dir(bundle.join("scenarios")) else { return BTreeMap::new() };
    let is_complete = |dir: &PathBuf| {
        let result = fs::read(dir.join("result.json")).unwrap_or_default();
        serde_json::from_slice::<Value>(&result).is_ok_and(|result| result["ended"] == "complete")
    };
    rows.flatten()
        .map(|row| row.path())
        .filter(is_complete)
        .flat_map(|dir| fs::read_dir(dir).unwrap().flatten().map(|file| file.path()))
        .map(|file| (file.clone(), fs::read(file).unwrap()))
        .collect()
}

#[test]
fn a_killed_run_in_slices_is_resumed_inside_its_scenarios_and_each_is_one_row() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&plan, PLAN).unwrap();
    let mut first = tactus().args(["run", "--out"]).arg(&out).arg(&plan).spawn().unwrap();
    // Three slices are in the bundle, and one is measured.
    while complete(&out).iter().filter(|(file, _)| file.ends_with("result.json")).count() < 3 {
        assert!(first.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(700));
    first.kill().unwrap();
    first.wait().unwrap();
    nothing_is_left();
    let kept = complete(&out);
    let died = json(&output(tactus().args(["report", "--json"]).arg(&out)));
    assert_eq!(died["scenarios"].as_array().unwrap().len(), 2, "a row each: {died:#}");

    let again = output(tactus().args(["run", "--json", "--into"]).arg(&out));
    let document = json(&again);
    assert!(stderr(&again).contains("of 16 scenarios are complete"), "{}", stderr(&again));
    for (file, bytes) in &kept {
        assert_eq!(fs::read(file).unwrap(), *bytes, "{} is as it was", file.display());
    }
    for row in document["scenarios"].as_array().unwrap() {
        assert_eq!(row["ended"], "complete", "{row:#}");
        let all = &row["all"];
        // A period is measured or counted as missed: all eight seconds are there, and none twice.
        let periods = all["cycles"].as_u64().unwrap() + all["overruns"].as_u64().unwrap();
        assert!((7_900..=8_008).contains(&periods), "{row:#}");
    }
    assert_eq!(document["claims"][0]["pairs"], 8, "{:#}", document["claims"]);
    let shown = stdout(&output(tactus().args(["report"]).arg(&out)));
    assert!(shown.contains("the typical maximum of a slice"), "{shown}");
    let figure = output(tactus().args(["report", "--format", "html", "--out", "-"]).arg(&out));
    let page = stdout(&figure);
    assert!(page.contains("All of it") && page.contains("8 pairs of slices of 1 s"), "{page}");
    let resolved = fs::read_to_string(out.join("plan.toml")).unwrap();
    assert!(resolved.contains("interleave = ") && resolved.contains("seed = "), "{resolved}");
    nothing_is_left();
}
