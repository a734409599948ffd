//! Threads of the command stay away from where it measures.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use tactus_model::CpuSet;

use crate::common::{await_tick, measures_beside_others, nothing_is_left, tactus};

fn allowed(status: &Path) -> CpuSet {
    let status = fs::read_to_string(status).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn no_thread_of_the_command_may_run_where_it_is_measured_and_the_probe_may_run_everywhere() {
    let Some(_turn) = measures_beside_others() else { return };
    let ours = allowed(Path::new("/proc/self/status"));
    let Some(measured) = ours.iter().last().filter(|_| ours.len() > 1) else {
        eprintln!("skipped: one CPU is too few");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bundle");
    let mut running = tactus()
        .args(["measure", "-D", "60", "--metrics", ":0", "-a", &measured.to_string(), "--out"])
        .arg(&bundle)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    await_tick(&bundle);
    let threads = |process: u32| {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
        tasks.flatten().map(|task| task.path()).collect::<Vec<_>>()
    };
    let command = threads(running.id());
    assert!(command.len() > 1, "{command:?}");
    for thread in &command {
        let name = fs::read_to_string(thread.join("comm")).unwrap();
        assert!(!allowed(&thread.join("status")).contains(measured), "{name} may run on CPU {measured}");
    }
    let children = format!("/proc/{0}/task/{0}/children", running.id());
    let children = fs::read_to_string(children).unwrap();
    let probes: Vec<u32> = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .filter(|child| {
            fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name.contains("probe"))
        })
        .collect();
    assert!(!probes.is_empty(), "{children}");
    for probe in probes {
        let some = threads(probe).iter().any(|thread| allowed(&thread.join("status")).contains(measured));
        assert!(some, "the measuring thread is there");
    }
    running.kill().unwrap();
    running.wait().unwrap();
    nothing_is_left();
}
