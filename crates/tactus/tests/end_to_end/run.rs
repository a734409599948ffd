//! `tactus run` from its command line to its report, on this machine.

use std::fs;

use crate::common::{alone, json, measures_beside_others, nothing_is_left, output, stderr, stdout, tactus};
use serde_json::Value;

fn entry<'a>(document: &'a Value, name: &str) -> &'a Value {
    document["scenarios"]
        .as_array()
        .and_then(|entries| entries.iter().find(|entry| entry["name"] == name))
        .unwrap_or_else(|| panic!("no scenario {name} in {document:#}"))
}

/// A measured entry is whole: its counts agree with each other.
fn is_whole(entry: &Value) {
    assert_eq!(entry["status"], "measured", "{entry:#}");
    let all = &entry["all"];
    let number = |key: &str| all[key].as_u64().unwrap_or_else(|| panic!("{key}: {all:#}"));
    assert!(number("cycles") > 0);
    assert!(number("min_ns") <= number("p50_ns") && number("p50_ns") <= number("p99_ns"));
    assert!(number("p99_ns") <= number("p999_ns") && number("p999_ns") <= number("max_ns"));
    let mean = all["mean_ns"].as_f64().expect("a mean");
    let bound = |key: &str| all[key].as_f64().expect("a number");
    assert!(mean >= bound("min_ns") && mean <= bound("max_ns"));
    let cycles: u64 = entry["series"].as_array().unwrap().iter().map(|s| s["cycles"].as_u64().unwrap()).sum();
    assert_eq!(cycles, number("cycles"));
    assert_eq!(
        all["corrected"]["count"].as_u64().unwrap(),
        number("cycles") + number("overruns") - number("lost")
    );
    let control = &entry["self_test"];
    assert!(control["injected_ns"].as_u64().unwrap() > 0, "{control:#}");
    assert!(control["seen_ns"].as_u64().unwrap() > 0, "{control:#}");
}

#[test]
fn one_command_measures_the_host_a_container_and_a_guest_idle_and_loaded() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let result = output(tactus().args(["run", "--quick", "--duration", "2s", "--json", "--out"]).arg(&out));
    let document = json(&result);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    assert_eq!(document["status"], "complete");
    assert_eq!(document["format"]["major"], 2);
    let entries = document["scenarios"].as_array().unwrap();
    assert_eq!(entries.len(), 6);
    for entry in entries {
        if entry["status"] == "skipped" {
            crate::common::skipped(&format!("{}: {}", entry["name"], entry["reason"]));
            continue;
        }
        is_whole(entry);
        assert_eq!(
            entry["load"].as_array().unwrap().is_empty(),
            entry["name"].as_str().unwrap().ends_with("idle")
        );
    }
    let guest = entry(&document, "qemu idle");
    if guest["status"] == "measured" {
        let kvm = guest["evidence"] != "emulated";
        assert!(kvm || guest["verdict"].is_null(), "an emulated guest gets no verdict");
    }
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("host loaded") && !report.contains("src=\"http"));
    // A later report is the one that was shown at the end.
    let shown = output(tactus().arg("report").arg(&out).arg("--json"));
    assert_eq!(json(&shown), document);
    for format in ["text", "markdown", "svg", "png", "json", "html"] {
        let drawn = output(tactus().arg("report").arg(&out).args(["--format", format, "--out", "-"]));
        assert_eq!(drawn.status.code(), Some(0), "{format}: {}", stderr(&drawn));
        assert!(drawn.stdout.len() > 200, "{format}: {}", stdout(&drawn));
    }
    nothing_is_left();
}

#[test]
fn the_table_names_every_scenario_and_the_path_of_the_report() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let result = output(tactus().args(["run", "--only", "host", "--duration", "1s", "--out"]).arg(&out));
    let text = stdout(&result);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    for part in ["host  idle ", "host  scheduler load on CPU", "page: ", "report.html"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours without a terminal");
    let progress = stderr(&result);
    assert!(progress.contains("[1/2] host idle: measuring") && progress.contains("left"), "{progress}");
}

#[test]
fn a_study_shows_the_published_figure_beside_the_measured_one() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let mut command = tactus();
    command.args([
        "run",
        "intel-xeon-2015",
        "--quick",
        "--duration",
        "2s",
        "--only",
        "VM without load",
        "--json",
        "--out",
    ]);
    let result = output(command.arg(&out));
    let document = json(&result);
    let entry = entry(&document, "VM without load");
    assert_eq!(entry["published"]["max_ns"], 8000);
    if entry["status"] == "skipped" {
        crate::common::skipped(&entry["reason"].to_string());
    } else {
        is_whole(entry);
    }
}

#[test]
fn host_and_container_are_measured_at_once_with_a_load_in_one_of_them() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    let text = r#"
name = "at-once"
[environment.host]
kind = "host"
[environment.box]
kind = "oci"
[[scenario]]
name = "both"
duration = "2s"
[[scenario.activity]]
measure = "timer"
in = "host"
[[scenario.activity]]
measure = "timer"
in = "box"
priority = 90
[[scenario.activity]]
load = { kind = "scheduler", groups = 1 }
in = "box"
"#;
    fs::write(&plan, text).unwrap();
    let result = output(tactus().arg("run").arg(&plan).arg("--json").arg("--out").arg(dir.path().join("b")));
    let document = json(&result);
    let entries = document["scenarios"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "one entry per measurement, with the same name");
    for (entry, place) in entries.iter().zip(["host", "box"]) {
        assert_eq!((&entry["name"], &entry["environment"]), (&"both".into(), &place.into()));
        if entry["status"] == "skipped" {
            return crate::common::skipped(&entry["reason"].to_string());
        }
        is_whole(entry);
        assert_eq!(entry["load"][0]["in"], "box");
    }
    nothing_is_left();
}

#[test]
fn a_requirement_that_is_broken_ends_with_1_and_says_why() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    let text = r#"
name = "strict"
[environment.host]
kind = "host"
[[scenario]]
name = "impossible"
environment = "host"
duration = "1s"
require = { max = "1ns", cycles = 100 }
"#;
    fs::write(&plan, text).unwrap();
    let result = output(tactus().arg("run").arg(&plan).arg("--json").arg("--out").arg(dir.path().join("b")));
    let document = json(&result);
    let verdict = &entry(&document, "impossible")["verdict"];
    let proven = entry(&document, "impossible")["self_test"]["passed"] == true;
    // Where the control was not seen at its size, there is no verdict.
    let (outcome, code) = if proven { ("fail", 1) } else { ("inconclusive", 3) };
    assert_eq!(verdict["outcome"], outcome, "{verdict:#}");
    assert_eq!(result.status.code(), Some(code));
}

#[test]
fn what_is_not_installed_is_skipped_with_its_remedy_and_the_rest_runs() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    // A machine with the usual tools, and neither Podman nor QEMU.
    for tool in ["sh", "unshare", "umount"] {
        let found = ["/bin", "/usr/bin"]
            .map(|at| std::path::Path::new(at).join(tool))
            .into_iter()
            .find(|p| p.exists());
        std::os::unix::fs::symlink(found.expect(tool), dir.path().join(tool)).unwrap();
    }
    let mut command = tactus();
    command.env("PATH", dir.path()).args(["run", "--duration", "1s", "--json", "--out"]);
    let result = output(command.arg(dir.path().join("bundle")));
    let document = json(&result);
    assert_eq!(entry(&document, "host idle")["status"], "measured");
    let guest = entry(&document, "qemu idle");
    assert_eq!(guest["status"], "skipped");
    assert!(guest["reason"].as_str().unwrap().contains("install"), "{guest:#}");
    assert_eq!(result.status.code(), Some(0));
}
