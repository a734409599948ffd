//! The study of host and guest profiles, with real guests of both kernels, and `--into`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{json, measures_beside_others, nothing_is_left, output, skipped, stderr, tactus};

const REALTIME: &str = "host as it is with realtime-virtual-guest";
const PARTITIONED: &str = "host as it is with cpu-partitioning guest";
const PAIR: &str = "cpu-partitioning host with realtime-virtual-guest";

fn entry<'a>(document: &'a Value, name: &str) -> &'a Value {
    let entries = document["scenarios"].as_array().unwrap();
    entries.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("no {name}: {document:#}"))
}

/// Every file of the rows that were measured first.
fn files(bundle: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let rows = fs::read_dir(bundle.join("scenarios")).unwrap().map(|entry| entry.unwrap().path());
    let kept = rows.filter(|path| path.to_string_lossy().contains("host-as-it-is"));
    kept.flat_map(|path| fs::read_dir(path).unwrap())
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

#[test]
fn guests_of_both_kernels_have_their_profiles_and_a_later_run_fills_further_cells() {
    let Some(_turn) = measures_beside_others() else { return };
    let kernels = output(tactus().args(["kernel", "list", "--json"]));
    let list = String::from_utf8_lossy(&kernels.stdout).into_owned();
    if !(list.contains("\"preempt_rt\": true") && list.contains("\"preempt_rt\": false")) {
        return skipped("this needs both a PREEMPT_RT and a standard kernel for guests");
    }
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bundle");
    let only = [REALTIME, PARTITIONED, PAIR].join(",");
    let study = ["run", "redhat-openstack-2018", "--duration", "2s", "--json"];
    let first = output(tactus().args(study).args(["--only", &only, "--out"]).arg(&bundle));
    let document = json(&first);
    if entry(&document, REALTIME)["status"] == "skipped" {
        return skipped(&format!("{}", entry(&document, REALTIME)["reason"]));
    }
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let systems = document["systems"].as_array().unwrap();
    let system = |place: &str| systems.iter().find(|system| system["place"] == place).unwrap();
    assert_eq!(system("guest-realtime@other")["preempt_rt"], true);
    assert_eq!(system("guest-realtime@other")["sched_rt_runtime_us"], "-1", "as its probe has set it");
    assert!(!system("guest-realtime@other")["irq_threads"].as_array().unwrap().is_empty());
    assert_eq!(system("guest-partitioned@other")["preempt_rt"], false);
    for place in ["guest-realtime@other", "guest-partitioned@other"] {
        let facts: Value =
            serde_json::from_slice(&fs::read(bundle.join(format!("facts/{place}.json"))).unwrap()).unwrap();
        assert_eq!(facts["/sys/devices/system/cpu/isolated"]["text"], "1", "{place}");
        assert_eq!(facts["/sys/devices/system/cpu/nohz_full"]["text"], "1", "{place}");
    }
    let missing = entry(&document, PAIR);
    assert_eq!(missing["status"], "skipped");
    let reason = missing["reason"].as_str().unwrap();
    assert!(
        reason.contains("needs the host state cpu-partitioning") && reason.contains("--into"),
        "{reason}"
    );
    let before = files(&bundle);
    assert!(!before.is_empty());

    // The reboot that would lead there is said instead.
    let again =
        output(tactus().args(["run", "--json", "--host-state", "cpu-partitioning", "--into"]).arg(&bundle));
    let document = json(&again);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(stderr(&again).contains("2 of 3 scenarios are complete"), "{}", stderr(&again));
    assert_eq!(entry(&document, PAIR)["status"], "measured");
    assert_eq!(files(&bundle), before, "what was complete is as it was");
    let names: Vec<String> = fs::read_dir(bundle.join("facts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.contains(&"guest-realtime@cpu-partitioning.json".into()), "{names:?}");
    assert!(names.contains(&"guest-realtime@other.json".into()), "{names:?}");
    let cells = document["matrices"][0]["cells"].as_array().unwrap();
    assert!(cells.iter().all(|cell| cell["max_ns"].as_u64().is_some()), "{cells:#?}");

    let longer = output(tactus().args(["run", "--duration", "3s", "--into"]).arg(&bundle));
    assert_eq!(longer.status.code(), Some(2));
    assert!(stderr(&longer).contains("--duration: the bundle was begun without it"), "{}", stderr(&longer));
    let other = output(tactus().args(["run", "intel-xeon-2015", "--into"]).arg(&bundle));
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("not of intel-xeon-2015"), "{}", stderr(&other));
    assert!(!bundle.join("scenarios/04-intel").exists());
    nothing_is_left();
}
