//! Environments that die while they are measured: started again, in the same row, with a gap; and nothing stays.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{
    Process, alone, await_tick, ended, is_of_others, json, kill, marked, measures_beside_others,
    nothing_is_left, output, skipped, started, stdout, tactus,
};

/// Processes of a run whose command line has `word`, and no other of these.
fn processes(word: &str, but: &[&str]) -> Vec<u32> {
    let is_one = |process: &Process| {
        let line = process.to_string();
        line.contains(word) && !but.iter().any(|but| line.contains(but))
    };
    marked().into_iter().filter(is_one).map(|process| process.pid).collect()
}

/// Waits until something is found.
fn awaited<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_usable(kind: &str) -> bool {
    let document = json(&output(tactus().args(["environments", "--json"])));
    let usable = |entry: &Value| entry["kind"] == kind && entry["usable"] == true;
    let usable = document.as_array().unwrap().iter().any(usable);
    if !usable {
        skipped(&format!("{kind} is not usable"));
    }
    usable
}

/// Ends what is measured in an environment of that kind.
fn kill_environment(kind: &str) {
    match kind {
        "host" => processes("tactus-probe", &["guardian", " watch "])
            .into_iter()
            .for_each(|pid| kill(pid, Signal::KILL)),
        "qemu" => processes("qemu-system-", &[]).into_iter().for_each(|pid| kill(pid, Signal::KILL)),
        _ => {
            let listed = output(Command::new("podman").args(["ps", "--format", "{{.Names}}"]));
            let names = stdout(&listed);
            let own = |name: &&str| name.starts_with("tactus-") && !is_of_others(name);
            let name = names.lines().find(own).expect("it runs");
            assert!(output(Command::new("podman").args(["kill", name])).status.success());
        }
    }
}

fn row_result(bundle: &Path) -> Value {
    let rows = fs::read_dir(bundle.join("scenarios")).unwrap().flatten();
    let result = rows.map(|row| row.path().join("result.json")).next().expect("a row");
    serde_json::from_slice(&fs::read(result).unwrap()).unwrap()
}

fn ticks(bundle: &Path) -> usize {
    let rows = fs::read_dir(bundle.join("scenarios")).into_iter().flatten().flatten();
    let texts = rows.map(|row: fs::DirEntry| fs::read_to_string(row.path().join("ticks.csv")));
    texts.map(|text| text.unwrap_or_default().matches('\n').count()).sum::<usize>().saturating_sub(1)
}

#[test]
fn an_environment_that_is_killed_measures_on_in_the_same_row_after_a_gap() {
    let Some(_alone) = alone() else { return };
    for kind in ["host", "podman", "qemu"] {
        if !is_usable(kind) {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("bundle");
        let words = ["measure", "--in", kind, "-i", "10000", "-D", "6", "--restart", "2", "--out"];
        let mut run = started(tactus().args(words).arg(&out));
        await_tick(&out);
        kill_environment(kind);
        ended(&mut run, Duration::from_secs(120));
        nothing_is_left();
        let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
        let row = &shown["scenarios"][0];
        assert_eq!(row["ended"], "complete", "{kind}: {row:#}");
        let restarts = row["restarts"].as_array().unwrap_or_else(|| panic!("{kind}: {row:#}"));
        assert_eq!(restarts.len(), 1, "{kind}: {restarts:#?}");
        let (at, gap) = (restarts[0]["at_ns"].as_u64().unwrap(), restarts[0]["gap_ns"].as_u64().unwrap());
        assert!(at > 0 && at < 6_000_000_000 && gap > 0, "{kind}: {restarts:#?}");
        assert!(!restarts[0]["reason"].as_str().unwrap().is_empty());
        // A period is measured or missed, before and after: those of the tick that died and of the gap are not there.
        let all = &row["all"];
        let periods = all["cycles"].as_u64().unwrap() + all["overruns"].as_u64().unwrap();
        assert!((590..=602).contains(&periods), "{kind}: {all:#}");
        assert_eq!(row["self_test"]["passed"], true, "{kind}: {:#}", row["self_test"]);
        let told = stdout(&output(tactus().arg("report").arg(&out)));
        let said = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("it died after") && said.contains("was started again"), "{kind}: {said}");
        let page = stdout(&output(tactus().args(["report", "--format", "html", "--out", "-"]).arg(&out)));
        assert!(page.contains("it died after"), "{kind}");
    }
}

#[test]
fn without_a_word_of_starting_again_a_guest_that_is_killed_ends_its_scenario_by_name() {
    let Some(_turn) = measures_beside_others() else { return };
    if !is_usable("qemu") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let words = ["measure", "--in", "qemu", "-i", "10000", "-D", "30", "--out"];
    let mut run = started(tactus().args(words).arg(&out));
    await_tick(&out);
    kill_environment("qemu");
    assert_ne!(ended(&mut run, Duration::from_secs(120)), Some(0));
    nothing_is_left();
    let result = row_result(&out);
    assert_eq!(result["ended"], "failed");
    let reason = result["reason"].as_str().unwrap();
    assert!(reason.starts_with("qemu ended during the measurement: QEMU was killed by a signal"), "{reason}");
    assert!(result["restarts"].is_null());
}

/// A run whose guest was killed.
fn killed_guest(out: &Path) -> std::process::Child {
    let words = ["measure", "--in", "qemu", "-i", "10000", "-D", "60", "--restart", "2", "--out"];
    let run = started(tactus().args(words).arg(out));
    await_tick(out);
    let first = processes("qemu-system-", &[]);
    kill_environment("qemu");
    awaited("another guest", || {
        let now = processes("qemu-system-", &[]);
        now.iter().any(|pid| !first.contains(pid)).then_some(())
    });
    run
}

#[test]
fn kill_9_while_a_guest_is_started_again_leaves_nothing_and_the_bundle_opens() {
    let Some(_turn) = measures_beside_others() else { return };
    if !is_usable("qemu") {
        return;
    }
    // While the new guest comes up, and when it measures.
    for measures in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let out: PathBuf = dir.path().join("bundle");
        let mut run = killed_guest(&out);
        if measures {
            let before = ticks(&out);
            awaited("a tick of the new guest", || (ticks(&out) > before).then_some(()));
        }
        kill(run.id(), Signal::KILL);
        run.wait().unwrap();
        nothing_is_left();
        let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
        let row = &shown["scenarios"][0];
        assert_eq!(shown["status"], "interrupted");
        assert!(row["all"]["cycles"].as_u64().unwrap() > 0, "{row:#}");
        let restarts = row["restarts"].as_array().map_or(0, Vec::len);
        assert_eq!(restarts, usize::from(measures), "{row:#}");
    }
}
