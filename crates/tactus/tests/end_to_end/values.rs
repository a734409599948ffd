//! Measurements that yield values, from the plan to the JSON.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{
    alone, await_text, json, measures_beside_others, nothing_is_left, output, skipped, started, stderr,
    stdout, tactus,
};

/// A plan that measures `os` in these environments, one after the other.
fn plan(dir: &Path, kinds: &[&str], duration: &str) -> std::path::PathBuf {
    let mut text =
        format!("name = \"services\"\n[defaults]\nduration = \"{duration}\"\nmeasurement = \"os\"\n");
    for kind in kinds {
        text += &format!(
            r#"
[environment.{kind}]
kind = "{kind}"
[[scenario]]
name = "{kind}, services"
environment = "{kind}"
require = {{ values = {{ "system call" = "1ms" }} }}
[[reference]]
scenario = "{kind}, services"
item = "signal handler"
value = "3.48us"
source = "nowhere"
"#
        );
    }
    let plan = dir.join("plan.toml");
    fs::write(&plan, text).unwrap();
    plan
}

/// The kinds of environments that are usable here.
fn usable() -> Vec<String> {
    let document = json(&output(tactus().args(["environments", "--json"])));
    let all = document.as_array().unwrap().iter().filter(|entry| entry["usable"] == true);
    all.map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect()
}

fn value<'a>(entry: &'a Value, item: &str) -> &'a Value {
    let values = entry["values"].as_array().unwrap();
    values.iter().find(|value| value["item"] == item).unwrap_or_else(|| panic!("no {item}: {entry:#}"))
}

/// Every file of a bundle's rows.
fn rows(bundle: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let rows = fs::read_dir(bundle.join("scenarios")).unwrap();
    let files = rows.flat_map(|row| fs::read_dir(row.unwrap().path()).unwrap());
    let mut all: Vec<_> =
        files.map(|file| file.unwrap().path()).map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    all.sort();
    all
}

#[test]
fn what_the_system_costs_on_the_host_and_in_a_container_is_measured_once() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let usable = usable();
    let container = ["podman", "docker", "oci", "lxc", "nspawn"]
        .into_iter()
        .find(|kind| usable.iter().any(|own| own == kind));
    if container.is_none() {
        skipped("no container can be started here");
    }
    let kinds: Vec<&str> = ["host"].into_iter().chain(container).collect();
    let (plan, out) = (plan(dir.path(), &kinds, "3s"), dir.path().join("bundle"));
    let run = output(tactus().arg("run").arg(&plan).arg("--out").arg(&out));
    assert_eq!(run.status.code(), Some(3), "{}", stderr(&run));
    assert!(stderr(&run).contains("can fail, but not pass"), "{}", stderr(&run));
    nothing_is_left();
    let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
    assert_eq!(shown["status"], "complete");
    assert_eq!(shown["scenarios"].as_array().unwrap().len(), kinds.len());
    for entry in shown["scenarios"].as_array().unwrap() {
        assert_eq!(
            (&entry["status"], &entry["ended"]),
            (&"measured".into(), &"complete".into()),
            "{entry:#}"
        );
        assert_eq!((&entry["all"], &entry["self_test"]), (&Value::Null, &Value::Null), "{entry:#}");
        assert_eq!(entry["series"].as_array().unwrap().len(), 0);
        for (item, unit) in [
            ("system call", "ns"),
            ("signal handler", "us"),
            ("select on TCP fds", "us"),
            ("context switch", "ns"),
            ("AF_UNIX bandwidth", "MB/s"),
        ] {
            let value = value(entry, item);
            let number = |key: &str| value[key].as_f64().unwrap_or_else(|| panic!("{key} of {value:#}"));
            assert_eq!(value["unit"], unit);
            assert!(number("low") <= number("value") && number("value") <= number("high"), "{value:#}");
            assert!(number("value") > 0.0 && number("samples") >= 6.0, "{value:#}");
        }
        assert_eq!(value(entry, "signal handler")["published"], 3.48);
        // It is kept, and three seconds pass nothing.
        assert_eq!(entry["verdict"]["outcome"], "inconclusive", "{entry:#}");
        assert_eq!(entry["verdict"]["limits"][0]["side"], "kept", "{entry:#}");
        assert!(
            entry["verdict"]["reason"].as_str().unwrap().contains(" are too short for a pass"),
            "{entry:#}"
        );
    }
    let before = rows(&out);
    let again = output(tactus().arg("run").arg(&plan).arg("--into").arg(&out));
    assert!(matches!(again.status.code(), Some(0 | 3)), "{}", stderr(&again));
    assert_eq!(rows(&out), before, "complete rows stay as they are");
}

#[test]
fn values_that_had_arrived_before_kill_9_are_in_the_bundle_and_nothing_of_the_run_is_left() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (plan(dir.path(), &["host"], "60s"), dir.path().join("bundle"));
    let mut child = started(tactus().arg("run").arg(&plan).arg("--out").arg(&out));
    await_text(&out.join("events.jsonl"), "\"item\":\"AF_UNIX bandwidth\"");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    child.wait().unwrap();
    nothing_is_left();
    let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
    assert_eq!(shown["status"], "interrupted");
    let entry = &shown["scenarios"][0];
    assert_eq!((&entry["status"], &entry["ended"]), (&"measured".into(), &"died".into()), "{entry:#}");
    for item in ["system call", "AF_UNIX bandwidth"] {
        assert!(value(entry, item)["value"].as_f64().unwrap() > 0.0, "{entry:#}");
    }
    assert_eq!(entry["verdict"]["outcome"], "inconclusive", "{entry:#}");
}

#[test]
fn what_computes_and_what_memory_does_is_measured_on_the_host_and_in_a_container() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let container = ["podman", "docker", "oci", "lxc", "nspawn"];
    let container = container.into_iter().find(|kind| usable().iter().any(|own| own == kind));
    if container.is_none() {
        skipped("no container can be started here");
    }
    let mut text = "name = \"machine\"\n[defaults]\nduration = \"3s\"\n".to_owned();
    for kind in ["host"].into_iter().chain(container) {
        text += &format!("[environment.{kind}]\nkind = \"{kind}\"\n");
        for (name, measurement) in
            [("cpu", "\"cpu\""), ("memory", "{ kind = \"memory\", sizes = \"1KiB..4MiB\" }")]
        {
            text += &format!(
                "[[scenario]]\nname = \"{kind}, {name}\"\nenvironment = \"{kind}\"\nmeasurement = {measurement}\n"
            );
        }
    }
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&plan, text).unwrap();
    let run = output(tactus().arg("run").arg(&plan).arg("--out").arg(&out));
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", stderr(&run));
    nothing_is_left();
    let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
    for entry in shown["scenarios"].as_array().unwrap() {
        assert_eq!(entry["status"], "measured", "{entry:#}");
        if entry["name"].as_str().unwrap().ends_with("cpu") {
            let number = |item: &str| value(entry, item)["value"].as_f64().unwrap();
            assert!(number("clock") > 0.0 && number("kernel mix") > 0.0 && number("integer divide") > 0.0);
            continue;
        }
        assert!(value(entry, "memory read bandwidth")["value"].as_f64().unwrap() > 0.0);
        for order in ["sequential", "random"] {
            let item = format!("{order} latency, 4 KiB pages");
            let points = entry["values"].as_array().unwrap().iter().filter(|value| value["item"] == *item);
            let bytes: Vec<u64> = points.map(|point| point["at"]["bytes"].as_u64().unwrap()).collect();
            assert_eq!(bytes, (10..=22).map(|power| 1 << power).collect::<Vec<u64>>(), "{item}");
        }
    }
    let report = output(tactus().arg("report").arg(&out).args(["--format", "text", "--out", "-"]));
    // Headings are wrapped; rows are sizes.
    let text = stdout(&report);
    assert!(text.contains("random latency, 4 KiB") && text.contains("\n  512KiB  "), "{text}");
}
