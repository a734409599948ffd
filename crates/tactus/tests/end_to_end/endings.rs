//! However a run ends, its bundle opens and nothing of it stays.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::{alone, await_text, json, nothing_is_left, output, stderr, tactus};
use rustix::process::{Pid, Signal, kill_process};

/// A run that goes on for a minute, in the given environments, once it measures.
fn running(out: &Path, only: &str) -> Child {
    let child = tactus()
        .args(["run", "--duration", "60s", "--only", only, "--out"])
        .arg(out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("tactus starts");
    await_text(&out.join("events.jsonl"), "\"event\":\"ticked\"");
    child
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("the run is there");
}

fn ends(child: &mut Child, within: Duration) -> Option<i32> {
    let until = Instant::now() + within;
    loop {
        if let Some(status) = child.try_wait().expect("wait") {
            return status.code();
        }
        assert!(Instant::now() < until, "the run goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn ctrl_c_ends_the_scenario_keeps_what_was_measured_and_leaves_nothing() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let mut child = running(&out, "host, loaded");
    signal(&child, Signal::INT);
    assert_eq!(ends(&mut child, Duration::from_secs(30)), Some(2));
    nothing_is_left();
    let shown = json(&output(tactus().arg("show").arg(&out).arg("--json")));
    assert_eq!(shown["status"], "interrupted");
    let entry = &shown["scenarios"][0];
    assert_eq!(entry["status"], "measured");
    assert!(entry["reason"].as_str().unwrap().contains("interrupted"), "{entry:#}");
    assert!(entry["all"]["cycles"].as_u64().unwrap() > 0);
    assert!(out.join("report.html").exists());
}

#[test]
fn after_kill_9_the_bundle_opens_and_the_guardian_has_ended_everything() {
    let Some(_alone) = alone() else { return };
    let document = json(&output(tactus().args(["environments", "--json"])));
    for entry in document.as_array().unwrap() {
        let kind = entry["kind"].as_str().unwrap();
        // Those of a run without a plan.
        if !["host", "podman", "qemu"].contains(&kind) {
            continue;
        }
        if entry["usable"] != true {
            crate::common::skipped(&format!("{kind}: {}", entry["reason"]));
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("bundle");
        let mut child = running(&out, &format!("{kind}, loaded"));
        assert!(!crate::common::marked().is_empty(), "{kind}: the run's processes carry its mark");
        signal(&child, Signal::KILL);
        ends(&mut child, Duration::from_secs(5));
        nothing_is_left();
        let shown = output(tactus().arg("show").arg(&out).arg("--json"));
        let document = json(&shown);
        assert_eq!(document["status"], "interrupted", "{kind}");
        assert!(document["scenarios"][0]["all"]["cycles"].as_u64().unwrap() > 0, "{kind}: {document:#}");
        assert!(stderr(&shown).contains("died"), "{kind}: {}", stderr(&shown));
    }
}

#[test]
fn a_full_disk_ends_the_run_by_name_and_what_was_written_opens() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(dir.path())
        .output()
        .expect("mount starts");
    if !mount.status.success() {
        return crate::common::skipped(&format!("no tmpfs: {}", String::from_utf8_lossy(&mount.stderr)));
    }
    let out = dir.path().join("bundle");
    let mut command = tactus();
    command.args(["run", "--duration", "20s", "--only", "host, idle", "--out"]).arg(&out);
    let result = output(&mut command);
    let said = stderr(&result);
    let opened = output(tactus().arg("show").arg(&out).args(["--json", "--damaged"]));
    let unmount = std::process::Command::new("umount").arg(dir.path()).output().expect("umount starts");
    assert!(
        unmount.status.success(),
        "the run holds its bundle open: {}",
        String::from_utf8_lossy(&unmount.stderr)
    );
    assert_eq!(result.status.code(), Some(2), "{said}");
    assert!(said.contains("No space left") && said.contains("hint:"), "{said}");
    assert_eq!(json(&opened)["status"], "interrupted");
    nothing_is_left();
}

#[test]
fn a_bundle_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
    let result =
        output(tactus().args(["run", "--only", "host", "--duration", "1s", "--out"]).arg(dir.path()));
    assert_eq!(result.status.code(), Some(2));
    assert!(stderr(&result).contains("not empty"), "{}", stderr(&result));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
