//! `tactus prove`: the machine is as before, whatever happens.

use std::fs;
use std::process::Stdio;

use crate::common::{
    alone, await_text, beside_others, json, measures_beside_others, nothing_is_left, output, skipped, stderr,
    stdout, tactus,
};
use rustix::process::{Pid, Signal, kill_process};

const INTERVAL: &str = "/proc/sys/vm/stat_interval";

#[test]
fn a_setting_is_proven_in_ten_pairs_and_taken_back() {
    let Some(_alone) = alone() else { return };
    let before = fs::read_to_string(INTERVAL).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let result =
        output(tactus().args(["prove", "vmstat-interval", "-D", "200ms", "--json", "--out"]).arg(&out));
    let document = json(&result);
    let proof = &document["proofs"][0];
    assert_eq!((&proof["setting"], &proof["planned"]), (&"vmstat-interval".into(), &10.into()), "{proof:#}");
    let quantities: Vec<&str> = proof["effects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|effect| effect["quantity"].as_str().unwrap())
        .collect();
    // On a machine that is busy enough the self-test is not seen at its size, and nothing is judged.
    let rows = document["scenarios"].as_array().unwrap();
    let passed = |row: &serde_json::Value| row["self_test"]["passed"].as_bool();
    if rows.iter().all(|row| passed(row) != Some(false)) {
        assert_eq!((&proof["reason"], &proof["pairs"]), (&serde_json::Value::Null, &10.into()), "{proof:#}");
        assert_eq!(quantities, ["p99", "p99.9", "maximum"]);
    }
    let (code, word) = match proof["reason"].is_null() {
        true => (0, "EFFECT SHOWN"),
        false => (3, "NOT TESTED"),
    };
    assert_eq!(result.status.code(), Some(code), "{}", stderr(&result));
    assert!(document["answer"]["word"].as_str().unwrap().contains(word), "{}", document["answer"]);
    assert!(stderr(&result).contains("1 setting in 20 measurements: about "), "{}", stderr(&result));
    assert_eq!(fs::read_to_string(INTERVAL).unwrap(), before);
    // The setting was really made for half of the measurements.
    let events = fs::read_to_string(out.join("events.jsonl")).unwrap();
    assert_eq!(events.matches("setting made: ").count(), 10, "one note for each measurement with it");
    let shown = output(tactus().arg("report").arg(&out));
    assert!(stdout(&shown).contains("A/B test of settings"), "{}", stdout(&shown));
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Does this setting lower latency here?") && !page.contains("meet the deadline"));
    nothing_is_left();
}

#[test]
fn a_look_of_two_pairs_is_not_tested() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let result = output(
        tactus()
            .args(["prove", "vmstat-interval", "--pairs", "2", "-D", "100ms", "--idle", "--out"])
            .arg(dir.path().join("bundle")),
    );
    assert_eq!(result.status.code(), Some(3), "{}", stderr(&result));
    let said = stdout(&result);
    assert!(said.starts_with("NOT TESTED: vmstat-interval: "), "{said}");
    nothing_is_left();
}

#[test]
fn an_interrupted_prove_says_that_it_was_and_that_everything_is_restored() {
    let Some(_alone) = alone() else { return };
    let before = fs::read_to_string(INTERVAL).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let child = tactus()
        .args(["prove", "vmstat-interval", "-D", "300ms", "--out"])
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tactus starts");
    await_text(&out.join("events.jsonl"), "\"row\":2,");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::INT).expect("the run is there");
    let result = child.wait_with_output().expect("it ends");
    assert_eq!(result.status.code(), Some(2), "{}", stderr(&result));
    let said = stderr(&result);
    assert!(said.contains("interrupted: everything is restored; "), "{said}");
    assert!(!said.contains("skipped"), "{said}");
    // The measurements so far are kept, but do not suffice.
    let told = stdout(&result);
    assert!(told.starts_with("NOT TESTED: vmstat-interval: "), "{told}");
    assert!(told.contains("the run did not end"), "{told}");
    assert_eq!(fs::read_to_string(INTERVAL).unwrap(), before);
    nothing_is_left();
}

#[test]
fn after_kill_9_the_setting_is_what_it_was() {
    let Some(_alone) = alone() else { return };
    let before = fs::read_to_string(INTERVAL).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let mut child = tactus()
        .args(["prove", "vmstat-interval", "-D", "2s", "--out"])
        .arg(&out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("tactus starts");
    await_text(&out.join("events.jsonl"), "setting made: ");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::KILL).expect("the run is there");
    child.wait().expect("wait");
    nothing_is_left();
    assert_eq!(fs::read_to_string(INTERVAL).unwrap(), before);
}

#[test]
fn a_boot_parameter_is_proven_by_booting_guests() {
    let Some(_turn) = measures_beside_others() else { return };
    let dry = output(tactus().args(["prove", "skew-tick", "--in", "qemu", "--dry-run"]));
    if dry.status.code() != Some(0) {
        return skipped(&stderr(&dry));
    }
    assert!(stdout(&dry).contains("skew_tick=1"), "{}", stdout(&dry));
    nothing_is_left();
}

#[test]
fn what_cannot_be_proven_is_said_before_anything_is_measured() {
    let _turn = beside_others();
    for (arguments, words) in [
        (vec!["prove", "nonsense"], "there is no check `nonsense`"),
        (vec!["prove", "preempt-rt"], "nothing can be tested here"),
        (vec!["prove"], "required"),
        (vec!["prove", "thp", "--pairs", "1"], "2 to 1000"),
        (vec!["prove", "thp", "--in", "mainframe"], "mainframe"),
    ] {
        let result = output(tactus().args(&arguments));
        assert_eq!(result.status.code(), Some(2), "{arguments:?}: {}", stderr(&result));
        assert!(stderr(&result).contains(words), "{arguments:?}: {}", stderr(&result));
    }
}
