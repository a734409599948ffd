//! A guest of another architecture: the same run, with its own kernel and probe, emulated.

use crate::common::{alone, json, nothing_is_left, output, skipped, stderr, tactus};

const ARCH: &str = if cfg!(target_arch = "aarch64") { "x86_64" } else { "aarch64" };

const PLAN: &str = r#"
name = "foreign"
[defaults]
duration = "2s"
interval = "2ms"
[environment.board]
kind = "qemu"
arch = "ARCH"
cpus = "CPUS"
[[scenario]]
name = "idle"
environment = "board"
[[scenario]]
name = "loaded"
environment = "board"
load = ["scheduler", "cpu"]
[[scenario]]
name = "hog"
environment = "board"
fault = { kind = "hog", length = "50ms", every = "500ms" }
"#;

#[test]
fn a_guest_of_another_architecture_is_audited_measured_loaded_and_disturbed() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    let cpus = if std::thread::available_parallelism().is_ok_and(|n| n.get() > 1) { "0-1" } else { "0" };
    std::fs::write(&plan, PLAN.replace("ARCH", ARCH).replace("CPUS", cpus)).unwrap();
    let result = output(tactus().arg("run").arg(&plan).args(["--json", "--out"]).arg(&out));
    let document = json(&result);
    let entries = document["scenarios"].as_array().unwrap();
    assert_eq!(entries.len(), 3, "{}", stderr(&result));
    if entries[0]["status"] == "skipped" {
        return skipped(&entries[0]["reason"].to_string());
    }
    for entry in entries {
        assert_eq!(entry["status"], "measured", "{entry:#}");
        assert_eq!(entry["evidence"], "emulated");
        assert!(entry["verdict"].is_null(), "an emulated guest gets no verdict");
        assert!(entry["all"]["cycles"].as_u64().unwrap() > 0);
        assert!(entry["self_test"]["seen_ns"].as_u64().unwrap() > 0, "{:#}", entry["self_test"]);
    }
    let hog = entries[2]["all"]["max_ns"].as_u64().unwrap();
    assert!(hog >= 40_000_000, "a hog of 50 ms is seen as {hog} ns");
    assert_eq!(document["audits"][0]["role"], "guest");
    let facts = std::fs::read_to_string(out.join("facts").join("board.json")).unwrap();
    assert!(facts.contains(&format!("\"{ARCH}\"")), "uname says what it runs on");
    nothing_is_left();
}
