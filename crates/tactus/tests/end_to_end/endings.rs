//! However a run ends, its bundle opens and nothing of it stays.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;

use crate::common::{
    Process, await_tick, beside_others, ended, json, kill, marked, measures_beside_others, nothing_is_left,
    output, skipped, started, stderr, tactus,
};

/// A run of a minute, in the given environments, once it measures.
fn running(out: &Path, only: &str) -> Child {
    let child = started(tactus().args(["run", "--duration", "60s", "--only", only, "--out"]).arg(out));
    await_tick(out);
    child
}

fn signal(child: &Child, signal: Signal) {
    kill(child.id(), signal);
}

#[test]
fn ctrl_c_ends_the_scenario_keeps_what_was_measured_and_leaves_nothing() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let mut child = running(&out, "host loaded");
    signal(&child, Signal::INT);
    assert_eq!(ended(&mut child, Duration::from_secs(30)), Some(2));
    nothing_is_left();
    let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
    assert_eq!(shown["status"], "interrupted");
    let entry = &shown["scenarios"][0];
    assert_eq!(entry["status"], "measured");
    assert!(entry["reason"].as_str().unwrap().contains("interrupted"), "{entry:#}");
    assert!(entry["all"]["cycles"].as_u64().unwrap() > 0);
    assert!(out.join("report.html").exists());
}

#[test]
fn after_kill_9_the_bundle_opens_and_the_guardian_has_ended_everything() {
    let Some(_turn) = measures_beside_others() else { return };
    let document = json(&output(tactus().args(["environments", "--json"])));
    for entry in document.as_array().unwrap() {
        let kind = entry["kind"].as_str().unwrap();
        // Those of a run without a plan.
        if !["host", "podman", "qemu"].contains(&kind) {
            continue;
        }
        if entry["usable"] != true {
            skipped(&format!("{kind}: {}", entry["reason"]));
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("bundle");
        let mut child = running(&out, &format!("{kind} loaded"));
        assert!(!marked().is_empty(), "{kind}: the run's processes carry its mark");
        signal(&child, Signal::KILL);
        ended(&mut child, Duration::from_secs(5));
        nothing_is_left();
        let shown = output(tactus().arg("report").arg(&out).arg("--json"));
        let document = json(&shown);
        assert_eq!(document["status"], "interrupted", "{kind}");
        assert!(document["scenarios"][0]["all"]["cycles"].as_u64().unwrap() > 0, "{kind}: {document:#}");
        assert!(stderr(&shown).contains("died"), "{kind}: {}", stderr(&shown));
    }
}

/// Threads of probes of these tests with a real-time policy: `comm` and its `stat`.
fn real_time_threads() -> Vec<String> {
    let processes = marked().into_iter();
    let tasks = processes.filter_map(|process| fs::read_dir(format!("/proc/{}/task", process.pid)).ok());
    let stats = tasks.flatten().flatten().filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let command = fs::read_to_string(task.path().join("cmdline")).unwrap_or_default();
        // The policy is the 41st field, the third the first after the name (proc_pid_stat(5)).
        let policy = stat.rsplit(')').next()?.split_ascii_whitespace().nth(41 - 3)?;
        (command.contains("tactus-probe") && matches!(policy, "1" | "2" | "6")).then_some(stat)
    });
    stats.collect()
}

/// A run on this machine with both faults of SCHED_FIFO tasks, once it measures.
fn disturbed(dir: &Path) -> Child {
    let text = r#"
name = "disturbed"
[environment.host]
kind = "host"
[[scenario]]
name = "disturbed"
environment = "host"
interval = "1ms"
duration = "60s"
fault = [
    { kind = "hog", length = "2ms", every = "50ms" },
    { kind = "overcommit", threads = 3, length = "1ms", every = "50ms" },
]
"#;
    let plan = dir.join("plan.toml");
    fs::write(&plan, text).unwrap();
    let out = dir.join("bundle");
    let child = started(tactus().arg("run").arg(&plan).arg("--out").arg(&out));
    await_tick(&out);
    // A hog and three threads on each CPU, beside those that measure.
    assert!(real_time_threads().len() >= 5, "{:#?}", real_time_threads());
    child
}

#[test]
fn after_kill_9_no_thread_of_a_hog_or_of_an_overcommit_is_left() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut child = disturbed(dir.path());
    signal(&child, Signal::KILL);
    ended(&mut child, Duration::from_secs(5));
    nothing_is_left();
    assert_eq!(real_time_threads(), [] as [String; 0]);
}

#[test]
fn a_probe_that_is_killed_takes_its_hogs_along_and_the_run_says_so() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut child = disturbed(dir.path());
    // The session, whose name stands alone on its command line; not its workers.
    let session = |process: &Process| {
        let line = process.to_string();
        process.descends_from(child.id())
            && line.contains("tactus-probe")
            && !["worker", "watch"].iter().any(|word| line.contains(word))
    };
    let session = marked().into_iter().find(session).expect("a session");
    kill(session.pid, Signal::KILL);
    assert_eq!(ended(&mut child, Duration::from_secs(30)), Some(2));
    nothing_is_left();
    assert_eq!(real_time_threads(), [] as [String; 0]);
    let shown = json(&output(tactus().arg("report").arg(dir.path().join("bundle")).arg("--json")));
    let entry = &shown["scenarios"][0];
    assert_eq!(entry["status"], "failed", "{entry:#}");
    assert!(entry["reason"].as_str().unwrap().contains("killed"), "{entry:#}");
}

#[test]
fn a_bundle_is_not_written_over() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
    let result =
        output(tactus().args(["run", "--only", "host", "--duration", "1s", "--out"]).arg(dir.path()));
    assert_eq!(result.status.code(), Some(2));
    assert!(stderr(&result).contains("not empty"), "{}", stderr(&result));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
