//! A guest that is paused while it measures: the time is a gap, and no latency.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{
    alone, await_tick, json, nothing_is_left, output, skipped, started, stderr, stdout, tactus,
};

/// How long the guest is paused.
const PAUSE: Duration = Duration::from_secs(6);
/// The longest latency that says nothing of a pause, in ns: an emulated guest beside others is late by tens of milliseconds.
const NO_PAUSE_NS: u64 = 3_000_000_000;

/// How often a series tells its counts, in ns.
const TICK_NS: u64 = 1_000_000_000;

/// Gives QEMU's monitor a command and waits for its answer.
fn ask(monitor: &mut BufReader<UnixStream>, command: &str) {
    writeln!(monitor.get_mut(), "{{\"execute\":\"{command}\"}}").unwrap();
    let mut line = String::new();
    while !line.contains("\"return\"") {
        line.clear();
        assert!(monitor.read_line(&mut line).unwrap() > 0, "QEMU's monitor ends");
        assert!(!line.contains("\"error\""), "{command}: {line}");
    }
}

/// One gap is as long as the guest was paused; it may differ by as much as the ticks of an emulated guest are late on
/// a busy machine. The other gaps come from a machine that stalls itself.
fn is_as_long(holes: &[serde_json::Value], paused: u64) {
    let as_long =
        |hole: &&serde_json::Value| hole["length_ns"].as_u64().unwrap().abs_diff(paused) < 2 * TICK_NS;
    assert_eq!(holes.iter().filter(as_long).count(), 1, "{paused} ns in {holes:?}");
}

/// A QEMU that is found before the machine's own, and has a second monitor.
fn with_monitor(dir: &Path) -> Option<String> {
    let path = std::env::var("PATH").unwrap();
    let real =
        std::env::split_paths(&path).map(|dir| dir.join("qemu-system-x86_64")).find(|path| path.exists())?;
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' -kernel '*) set -- \"$@\" -qmp unix:{}/second,server=on,wait=off;; esac\nexec {} \"$@\"\n",
        dir.display(),
        real.display()
    );
    let program = dir.join("qemu-system-x86_64");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Some(format!("{}:{path}", dir.display()))
}

/// The path with that program, where a guest can be started; it is said where none can.
fn startable(dir: &Path) -> Option<String> {
    let path = with_monitor(dir);
    if path.is_none() {
        skipped("there is no QEMU");
        return None;
    }
    let document = json(&output(tactus().args(["environments", "--json"])));
    if !document.as_array().unwrap().iter().any(|entry| entry["kind"] == "qemu" && entry["usable"] == true) {
        skipped("no guest can be started");
        return None;
    }
    path
}

#[test]
fn a_guest_that_was_paused_has_a_gap_of_that_length_and_no_latency_of_it() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(path) = startable(dir.path()) else { return };
    let out = dir.path().join("bundle");
    let words = ["measure", "--in", "qemu", "-i", "10000", "-D", "12", "--out"];
    let mut run = started(tactus().args(words).arg(&out).env("PATH", path));
    await_tick(&out);
    let monitor = UnixStream::connect(dir.path().join("second")).unwrap();
    let mut monitor = BufReader::new(monitor);
    ask(&mut monitor, "qmp_capabilities");
    ask(&mut monitor, "stop");
    let paused = Instant::now();
    std::thread::sleep(PAUSE);
    ask(&mut monitor, "cont");
    let paused = u64::try_from(paused.elapsed().as_nanos()).unwrap();
    let ended = run.wait().unwrap();
    nothing_is_left();
    let shown = output(tactus().arg("report").arg(&out).arg("--json"));
    let shown = json(&shown);
    let row = &shown["scenarios"][0];
    assert_eq!(row["status"], "measured", "{ended:?}: {row:#}");
    let max = row["all"]["max_ns"].as_u64().unwrap();
    assert!(max < NO_PAUSE_NS, "the pause is in a latency: {max} ns");
    let result = fs::read(out.join("scenarios/01-qemu-timer/result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_slice(&result).unwrap();
    let holes =
        result["clock"]["holes"].as_array().unwrap_or_else(|| panic!("no gap: {:#}", result["clock"]));
    is_as_long(holes, paused);
    let told = output(tactus().arg("report").arg(&out));
    let said = stdout(&told).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("its clock stood still during the measurement"), "{said}\n{}", stderr(&told));
    assert!(!said.contains("its clock runs at"), "a pause is no wrong rate of the clock: {said}");
}

const WAITED_FOR: &str = r#"
name = "waited for"
[environment.guest]
kind = "qemu"
[[scenario]]
name = "paused"
environment = "guest"
interval = "10ms"
duration = "12s"
dead_after = "3s"
"#;

#[test]
fn a_guest_that_is_paused_for_longer_than_one_may_be_silent_is_waited_for() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(path) = startable(dir.path()) else { return };
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&plan, WAITED_FOR).unwrap();
    let mut run = started(tactus().args(["run", "--out"]).arg(&out).arg(&plan).env("PATH", path));
    await_tick(&out);
    let mut monitor = BufReader::new(UnixStream::connect(dir.path().join("second")).unwrap());
    ask(&mut monitor, "qmp_capabilities");
    ask(&mut monitor, "stop");
    let paused = Instant::now();
    std::thread::sleep(3 * PAUSE / 2);
    ask(&mut monitor, "cont");
    let paused = u64::try_from(paused.elapsed().as_nanos()).unwrap();
    run.wait().unwrap();
    nothing_is_left();
    let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
    let row = &shown["scenarios"][0];
    assert_eq!(row["ended"], "complete", "{row:#}");
    assert!(row["restarts"].is_null(), "{row:#}");
    let notes = row["notes"].to_string();
    assert!(notes.contains("QEMU reports that it is paused: tactus waits for it"), "{notes}");
    let result = fs::read(out.join("scenarios/01-paused/result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_slice(&result).unwrap();
    let holes = result["clock"]["holes"].as_array().unwrap_or_else(|| panic!("no gap: {result:#}"));
    is_as_long(holes, paused);
}
