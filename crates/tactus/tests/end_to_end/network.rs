//! Network paths, from the plan to the JSON; and that nothing of them stays, however a run ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{await_text, json, nothing_is_left, output, skipped, stderr, tactus};

/// A plan whose scenarios are named after the paths that they take.
fn plan(dir: &Path, paths: &[(&str, &str)], near: &str, duration: &str) -> PathBuf {
    let mut text = format!(
        "name = \"paths\"\n[defaults]\nduration = \"{duration}\"\n[environment.near]\nkind = \"{near}\"\n\
         [environment.far]\nkind = \"host\"\n"
    );
    for (name, keys) in paths {
        let to = if keys.contains("loopback") { "" } else { "to = \"far\"" };
        text += &format!(
            r#"
[path.{name}]
{keys}
[[scenario]]
name = "{name}"
[[scenario.activity]]
measure = {{ kind = "network", rate = 50 }}
in = "near"
{to}
path = "{name}"
"#
        );
    }
    let plan = dir.join("plan.toml");
    fs::write(&plan, text).unwrap();
    plan
}

/// Whether paths can be made here at all.
fn can_be_made() -> bool {
    let unshare = std::process::Command::new("unshare").args(["--net", "--", "ip", "link"]).output();
    let can = unshare.is_ok_and(|output| output.status.success());
    if !can {
        skipped("no network namespace can be made here");
    }
    can
}

/// Network namespaces of processes, names of namespaces, and interfaces of this one.
fn networks() -> BTreeSet<String> {
    let names = |dir: &str| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect::<Vec<_>>()
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let namespaces = processes.filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok());
    let namespaces = namespaces.map(|link| link.display().to_string());
    namespaces.chain(names("/run/netns")).chain(names("/sys/class/net")).collect()
}

fn run(plan: &Path, out: &Path) -> Vec<Value> {
    let before = networks();
    let run = output(tactus().arg("run").arg(plan).arg("--out").arg(out));
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", stderr(&run));
    nothing_is_left();
    assert_eq!(networks().difference(&before).collect::<Vec<_>>(), [""; 0], "nothing of a path stays");
    let shown = json(&output(tactus().arg("show").arg(out).arg("--json")));
    assert_eq!(shown["status"], "complete");
    check_table(&shown);
    shown["scenarios"].as_array().unwrap().clone()
}

/// Every stream that was measured stands in the table, and the first of a direction is what others are held against.
fn check_table(shown: &Value) {
    let measured = shown["scenarios"].as_array().unwrap().iter().filter(|row| {
        row["values"]
            .as_array()
            .is_some_and(|values| values.iter().any(|value| value["item"] == "TX throughput"))
    });
    let table = shown["network"].as_array().cloned().unwrap_or_default();
    let tx: Vec<_> = table.iter().filter(|entry| entry["direction"] == "TX").collect();
    assert_eq!(tx.len(), measured.count(), "{table:#?}");
    assert!(tx.first().is_none_or(|first| first["degradation"].is_null()), "{table:#?}");
    for entry in tx.iter().skip(1) {
        assert!(entry["degradation"]["value"].is_number() || entry["load_per_gbps"].is_null(), "{entry:#}");
    }
}

fn is_measured(row: &Value) {
    assert_eq!((&row["status"], &row["reason"]), (&"measured".into(), &Value::Null), "{row:#}");
    let item = |name: &str| {
        let values = row["values"].as_array().unwrap();
        values.iter().find(|value| value["item"] == name).and_then(|value| value["value"].as_f64())
    };
    for way in ["TX", "RX"] {
        // Dropped, where a hypervisor took the CPUs.
        let Some(throughput) = item(&format!("{way} throughput")) else { continue };
        assert!(throughput > 0.0 && throughput < 55.0, "{row:#}");
    }
}

#[test]
fn what_can_be_made_is_measured_what_cannot_is_skipped_with_the_reason_and_nothing_stays() {
    if !can_be_made() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let paths = [
        ("veth", "kind = \"veth\""),
        ("bridge", "kind = \"bridge\""),
        ("macvlan", "kind = \"macvlan\""),
        ("loopback", "kind = \"loopback\""),
        ("narrow", "kind = \"veth\"\nmtu = 1400"),
        ("nic", "kind = \"nic\"\nnics = [\"no-such-nic\", \"nor-this\"]"),
    ];
    let rows = run(&plan(dir.path(), &paths, "host", "3s"), &dir.path().join("bundle"));
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    for name in ["veth", "bridge", "macvlan", "loopback"] {
        is_measured(row(name));
    }
    for (name, reason) in
        [("narrow", "do not fit into the MTU of 1400"), ("nic", "no network interface no-such-nic")]
    {
        let row = row(name);
        assert_eq!(row["status"], "skipped", "{row:#}");
        assert!(row["reason"].as_str().unwrap().contains(reason), "{row:#}");
    }
}

#[test]
fn a_container_is_at_an_end_of_a_path_as_the_host_is() {
    if !can_be_made() {
        return;
    }
    let document = json(&output(tactus().args(["environments", "--json"])));
    for kind in ["podman", "oci"] {
        let entry = document.as_array().unwrap().iter().find(|entry| entry["kind"] == kind).unwrap();
        if entry["usable"] != true {
            skipped(&format!("{kind}: {}", entry["reason"]));
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(dir.path(), &[("veth", "kind = \"veth\"")], kind, "2s");
        is_measured(&run(&plan, &dir.path().join("bundle"))[0]);
    }
}

#[test]
fn a_run_that_is_killed_leaves_no_namespace_no_interface_and_no_address() {
    if !can_be_made() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) =
        (plan(dir.path(), &[("bridge", "kind = \"bridge\"")], "host", "60s"), dir.path().join("bundle"));
    let before = networks();
    let mut child = tactus()
        .arg("run")
        .arg(&plan)
        .arg("--out")
        .arg(&out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    await_text(&out.join("events.jsonl"), "value_measured");
    assert!(networks().difference(&before).count() >= 3, "two ends and a bridge");
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), Signal::KILL).unwrap();
    child.wait().unwrap();
    nothing_is_left();
    assert_eq!(networks().difference(&before).collect::<Vec<_>>(), [""; 0]);
    let shown = json(&output(tactus().arg("show").arg(&out).arg("--json")));
    assert_eq!(shown["status"], "interrupted");
    assert!(!shown["scenarios"][0]["values"].as_array().unwrap().is_empty(), "what had arrived stays");
}
