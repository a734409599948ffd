//! The first two scenarios of osadl-2023: twelve threads on one core, against one thread per core.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::common::{alone, json, nothing_is_left, output, stderr, stdout, tactus};

fn series<'a>(document: &'a Value, name: &str) -> &'a Vec<Value> {
    let entries = document["scenarios"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(entry["status"], "measured", "{entry:#}");
    entry["series"].as_array().unwrap()
}

fn number(series: &Value, key: &str) -> u64 {
    series[key].as_u64().unwrap_or_else(|| panic!("{key}: {series:#}"))
}

#[test]
fn twelve_threads_on_one_core_stand_in_the_table_by_priority_beside_one_thread_per_core() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let only = "twelve threads on one core,one thread per core";
    let study = ["run", "osadl-2023", "--quick", "--duration", "2s", "--only", only, "--json", "--out"];
    let result = output(tactus().args(study).arg(&out));
    let document = json(&result);
    assert!(matches!(result.status.code(), Some(0 | 3)), "{}", stderr(&result));

    let twelve = series(&document, "twelve threads on one core");
    let priorities: Vec<u64> = twelve.iter().map(|series| number(series, "priority")).collect();
    assert_eq!(priorities, (88..=99).rev().collect::<Vec<_>>());
    let threads: Vec<u64> = twelve.iter().map(|series| number(series, "thread")).collect();
    assert_eq!(threads, (0..12).collect::<Vec<_>>());
    let cpus: BTreeSet<u64> = twelve.iter().map(|series| number(series, "cpu")).collect();
    assert_eq!(cpus.len(), 1, "all on one core: {cpus:?}");
    // Every one of them really ran: cycles and what was slept through make up the time, every 100 us.
    for series in twelve {
        let passed = number(series, "cycles") + number(series, "overruns");
        assert!(number(series, "cycles") > 0 && (18_000..=22_000).contains(&passed), "{series:#}");
    }

    let one = series(&document, "one thread per core");
    let online = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = online.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let allowed: tactus_model::CpuSet = allowed.trim().parse().unwrap();
    let cpus: BTreeSet<u64> = one.iter().map(|series| number(series, "cpu")).collect();
    assert_eq!((one.len(), cpus.len()), (allowed.len(), allowed.len()), "one thread on each");
    assert!(one.iter().all(|series| number(series, "priority") == 99), "{one:#?}");

    // The table of the document has a line for each thread.
    let shown = stdout(&output(tactus().args(["report", "--format", "markdown", "--out", "-"]).arg(&out)));
    for priority in 88..=99 {
        assert!(shown.contains(&priority.to_string()), "no line for priority {priority}: {shown}");
    }
    nothing_is_left();
}
