//! A run whose control was not seen: self-test not passed there, and its verdicts say nothing.

use std::fs;

use serde_json::Value;

use crate::common::{json, measures_beside_others, nothing_is_left, output, stderr, stdout, tactus};

/// A requirement that this machine keeps, and a control.
fn plan(control: &str) -> String {
    required(control, "60s")
}

/// A requirement of this maximum, and a control.
fn required(control: &str, max: &str) -> String {
    format!(
        r#"
name = "unproven"
[environment.host]
kind = "host"
[[scenario]]
name = "required"
environment = "host"
cpus = "first"
interval = "1ms"
duration = "1s"
{control}
require = {{ max = "{max}", cycles = 100 }}
"#
    )
}

/// Runs a plan; the exit code, the scenario's entry, what `show` says and the report.
fn perform(plan: &str) -> (Option<i32>, Value, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let (written, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&written, plan).unwrap();
    let result = output(tactus().arg("run").arg(&written).args(["--json", "--out"]).arg(&out));
    let entry = json(&result)["scenarios"][0].clone();
    assert_eq!(entry["status"], "measured", "{}", stderr(&result));
    assert!(entry["all"]["cycles"].as_u64().unwrap() >= 100, "{entry:#}");
    // However the lines are broken.
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = flat(&stdout(&output(tactus().arg("report").arg(&out))));
    let report = flat(&fs::read_to_string(out.join("report.html")).unwrap());
    nothing_is_left();
    (result.status.code(), entry, shown, report)
}

fn both_say(shown: &str, report: &str, words: &str) {
    assert!(shown.contains(words), "{shown}");
    // It is long.
    assert!(report.contains(words), "the report never says `{words}`");
}

#[test]
fn a_control_that_cannot_be_told_from_the_noise_makes_the_verdict_inconclusive() {
    let Some(_turn) = measures_beside_others() else { return };
    // No Linux wakes its threads in less than 100 ns for as long as the noise is measured.
    let control = r#"control = { kind = "hog", length = "100ns", every = "20ms" }"#;
    let (code, entry, shown, report) = perform(&plan(control));
    assert_eq!(entry["self_test"]["passed"], false, "{entry:#}");
    assert_eq!(entry["self_test"]["injected_ns"], 100, "{entry:#}");
    assert_eq!(entry["verdict"]["outcome"], "inconclusive", "{entry:#}");
    let reason = entry["verdict"]["reason"].as_str().unwrap();
    assert!(reason.contains("self-test not passed"), "{reason}");
    assert_eq!(code, Some(3));
    both_say(&shown, &report, "self-test not passed");
    both_say(&shown, &report, "cannot be distinguished from the noise");
}

#[test]
fn a_control_that_the_kernel_refuses_makes_the_verdict_inconclusive_and_says_why() {
    let Some(_turn) = measures_beside_others() else { return };
    // OSADL's module, which no distribution has.
    let control = r#"control = { kind = "block", length = "1ms", every = "1s", way = "blocksys" }"#;
    if std::path::Path::new("/dev/blocksys").exists() {
        return crate::common::skipped("this kernel has /dev/blocksys");
    }
    let (code, entry, shown, report) = perform(&plan(control));
    assert!(entry["self_test"].is_null(), "{entry:#}");
    assert_eq!(entry["verdict"]["outcome"], "inconclusive", "{entry:#}");
    assert_eq!(code, Some(3));
    both_say(&shown, &report, "self-test not passed");
    both_say(&shown, &report, "blocksys: No such file");
}

#[test]
fn a_requirement_is_judged_where_the_control_was_seen() {
    let Some(_turn) = measures_beside_others() else { return };
    let (code, entry, shown, _) = perform(&required("", "1ns"));
    // A shared machine may hide one control; that the others' verdict comes of theirs shows here.
    let proven = entry["self_test"]["passed"] == true;
    let (outcome, expected) = if proven { ("fail", 1) } else { ("inconclusive", 3) };
    assert_eq!((entry["verdict"]["outcome"].as_str(), code), (Some(outcome), Some(expected)), "{entry:#}");
    assert_eq!(shown.contains("self-test not passed"), !proven, "{shown}");
}

#[test]
fn what_is_kept_for_a_second_does_not_pass() {
    let Some(_turn) = measures_beside_others() else { return };
    let (code, entry, _, _) = perform(&plan(""));
    let reason = entry["verdict"]["reason"].as_str().unwrap();
    let short = reason.contains("1 s are too short for a pass, which needs 1 min");
    assert!(short || reason.contains("self-test not passed"), "{reason}");
    assert_eq!((entry["verdict"]["outcome"].as_str(), code), (Some("inconclusive"), Some(3)), "{entry:#}");
}
