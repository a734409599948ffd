//! `tactus prove`: the machine is as before, whatever happens.

use std::fs;
use std::process::Stdio;

use crate::common::{
    alone, await_text, beside_others, json, nothing_is_left, output, skipped, stderr, stdout, tactus,
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
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let proof = &document["proofs"][0];
    assert_eq!((&proof["setting"], &proof["pairs"]), (&"vmstat-interval".into(), &10.into()), "{proof:#}");
    let quantities: Vec<&str> = proof["effects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|effect| effect["quantity"].as_str().unwrap())
        .collect();
    // On a machine that is busy enough the control is not seen at its size, and nothing is judged.
    if !proof["reason"].as_str().is_some_and(|reason| reason.contains("self-test not passed")) {
        assert_eq!(quantities, ["p99", "p99.9", "maximum"]);
    }
    assert_eq!(fs::read_to_string(INTERVAL).unwrap(), before);
    // The setting was really made for half of the measurements.
    let events = fs::read_to_string(out.join("events.jsonl")).unwrap();
    assert_eq!(events.matches("setting made: ").count(), 10, "one note for each measurement with it");
    let shown = output(tactus().arg("show").arg(&out));
    assert!(stdout(&shown).contains("A/B test of settings"), "{}", stdout(&shown));
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
    let Some(_alone) = alone() else { return };
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
        (vec!["prove", "thp", "--pairs", "1"], "2..=1000"),
        (vec!["prove", "thp", "--in", "mainframe"], "mainframe"),
    ] {
        let result = output(tactus().args(&arguments));
        assert_eq!(result.status.code(), Some(2), "{arguments:?}: {}", stderr(&result));
        assert!(stderr(&result).contains(words), "{arguments:?}: {}", stderr(&result));
    }
}
