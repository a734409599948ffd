//! Who had the CPU: known causes are named.

use std::fs;

use serde_json::Value;

use crate::common::{alone, json, nothing_is_left, output, skipped, stderr, stdout, tactus};

const PLAN: &str = r#"
name = "blame"
[defaults]
duration = "4s"
blame_above = "2ms"
[environment.host]
kind = "host"
cpus = "1"
[[scenario]]
name = "hog"
environment = "host"
fault = [{ kind = "hog", length = "20ms", every = "200ms" }]
[[scenario]]
name = "block"
environment = "host"
fault = [{ kind = "block", length = "20ms", every = "200ms" }]
"#;

/// How many of a row's latencies of 15 ms and more are laid to this, and how many there are.
fn laid(row: &Value, to: &str) -> (usize, usize) {
    let latencies = row["blame"]["latencies"].as_array().unwrap_or_else(|| panic!("{row:#}"));
    let large: Vec<&Value> =
        latencies.iter().filter(|one| one["value_ns"].as_u64().unwrap() >= 15_000_000).collect();
    (large.iter().filter(|one| one["cause"].as_str().unwrap().contains(to)).count(), large.len())
}

#[test]
fn a_hog_and_a_block_are_named_as_those_who_had_the_cpu_and_parts_are_the_latency() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&plan, PLAN).unwrap();
    let result = output(tactus().arg("run").arg(&plan).args(["--json", "--out"]).arg(&out));
    let document = json(&result);
    let rows = document["scenarios"].as_array().unwrap();
    if let Some(row) = rows.iter().find(|row| row["status"] == "skipped") {
        return skipped(&row["reason"].to_string());
    }
    for (name, cause) in [("hog", "tactus-hog"), ("block", "local_timer interrupt")] {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        let (to, of) = laid(row, cause);
        assert!(of >= 5 && to * 10 >= of * 8, "{to} of {of}: {:#}\n{}", row["blame"], stderr(&result));
        for latency in row["blame"]["latencies"].as_array().unwrap() {
            let parts = latency["parts"].as_array().unwrap();
            let sum: u64 = parts.iter().map(|part| part["ns"].as_u64().unwrap()).sum();
            let unaccounted = latency["unaccounted_ns"].as_u64().unwrap();
            assert_eq!(sum + unaccounted, latency["value_ns"].as_u64().unwrap(), "{latency:#}");
        }
    }
    let shown = stdout(&output(tactus().arg("show").arg(&out)));
    assert!(shown.contains("largest: ") && shown.contains("local_timer interrupt"), "{shown}");
    nothing_is_left();
}
