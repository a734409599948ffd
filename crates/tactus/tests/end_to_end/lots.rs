//! A separation as it is measured: random moments, windows of time, and the sentences that follow from both.

use std::fs;

use serde_json::Value;

use crate::common::{alone, json, nothing_is_left, output, skipped, stderr, tactus};

/// Whether a word says that it is seen.
fn is_seen(cell: &Value) -> bool {
    ["yes", "sometimes", "weaker"].iter().any(|word| cell["leak"] == *word)
}

#[test]
fn a_hog_is_seen_in_every_environment_of_its_kernel_when_it_is_made() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    let text = r#"
name = "lots"
[defaults]
duration = "6s"
[environment.host]
kind = "host"
[environment.container]
kind = "oci"
or = ["podman", "docker"]
[separation]
environments = ["host", "container"]
disturb = [{ fault = { kind = "hog", length = "30ms", every = "500ms" } }]
"#;
    fs::write(&plan, text).unwrap();
    let result = output(tactus().args(["run", "--json", "--out"]).arg(&out).arg(&plan));
    let document = json(&result);
    let separation = &document["separation"];
    if !separation["absent"].as_object().unwrap().is_empty() {
        return skipped(&separation["absent"].to_string());
    }
    let cells = separation["cells"].as_array().unwrap();
    for from in ["host", "container"] {
        for to in ["host", "container"] {
            let own = |cell: &&Value| {
                cell["disturbed"] == from && cell["measured"] == to && cell["same_cpu"] == true
            };
            let cell = cells.iter().find(own).unwrap();
            assert!(is_seen(cell), "{from} to {to}: {cell:#}\n{}", stderr(&result));
            assert!(cell["injected"].as_u64().unwrap() >= 7, "{cell:#}");
            assert!(cell["stand_out"].as_u64().unwrap() >= 4, "{cell:#}");
        }
    }
    let kept = fs::read_to_string(out.join("plan.toml")).unwrap();
    assert!(kept.contains("seed = "), "the draws can be repeated: {kept}");
    let rows = fs::read_dir(out.join("scenarios")).unwrap().map(|entry| entry.unwrap().path());
    for row in rows.filter(|path| path.to_string_lossy().contains("hog")) {
        let written: Value = serde_json::from_slice(&fs::read(row.join("result.json")).unwrap()).unwrap();
        let at = written["injected"][0]["at"].as_str().unwrap();
        assert!(at.split(' ').count() >= 8, "{at}");
        assert_eq!(written["window_ns"], 50_000_000);
        let windows = fs::read_to_string(row.join("windows.csv")).unwrap();
        let maxima: usize = windows.lines().skip(1).map(|line| line.split(',').count() - 6).sum();
        assert!(maxima >= 100, "{windows}");
    }
    nothing_is_left();
}
