//! A container in a guest, measured while the guest is at rest and while it is loaded.

use std::fs;

use crate::common::{alone, json, nothing_is_left, output, skipped, stderr, tactus};

/// As in the guide.
const PLAN: &str = r#"
name = "container in a guest"
[defaults]
duration = "4s"
interval = "2ms"
[environment.guest]
kind = "qemu"
kernel = "rt"
[environment.container]
kind = "oci"
inside = "guest"
[[scenario]]
name = "container in the guest"
environment = "container"
measurement = "timer"
[[scenario]]
name = "container in the guest, the guest loaded"
environment = "container"
measurement = "timer"
load = [{ kind = "cpu", in = "guest", cpus = "0" }]
[[scenario]]
name = "both"
[[scenario.activity]]
measure = "timer"
in = "guest"
[[scenario.activity]]
measure = "timer"
in = "container"
"#;

#[test]
fn a_container_in_a_guest_is_measured_through_the_guests_probe_and_is_gone_with_it() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&plan, PLAN).unwrap();
    let result = output(tactus().arg("run").arg(&plan).args(["--json", "--out"]).arg(&out));
    let document = json(&result);
    let entries = document["scenarios"].as_array().unwrap();
    assert_eq!(entries.len(), 4, "{document:#}");
    if entries.iter().all(|entry| entry["status"] == "skipped") {
        return skipped(&format!("{}", entries[0]["reason"]));
    }
    let mut evidence: Vec<&str> = Vec::new();
    for entry in entries {
        assert_eq!(entry["status"], "measured", "{entry:#}\n{}", stderr(&result));
        assert!(entry["all"]["cycles"].as_u64().unwrap() > 100, "{entry:#}");
        evidence.push(entry["evidence"].as_str().unwrap());
    }
    // What is inside stands on the ground of what is around it.
    evidence.dedup();
    assert_eq!(evidence.len(), 1, "{evidence:?}");
    let events = fs::read_to_string(out.join("events.jsonl")).unwrap();
    assert!(events.contains("oci in guest, on its CPUs"), "the report says where it lies");
    assert!(events.contains("environment_kept"), "one guest carries all of it");
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("container (oci in guest)"));
    nothing_is_left();
}
