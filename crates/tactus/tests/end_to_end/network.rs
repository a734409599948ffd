//! Network paths, from the plan to the JSON; and that nothing of them stays, however a run ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{
    alone, await_text, copied_into, json, marked, nothing_is_left, of_this_test, output, skipped, started,
    stderr, tactus,
};

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
    let shown = json(&output(tactus().arg("report").arg(out).arg("--json")));
    assert_eq!(shown["status"], "complete");
    check_table(&shown);
    shown["scenarios"].as_array().unwrap().clone()
}

/// Every measured stream is in the table, and the first of a direction is the reference for the others.
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
    // A load that the kernel's own account is too coarse to see is 0, and no ratio is of that.
    let has_load = |entry: &Value| entry["load_per_gbps"].as_f64().is_some_and(|load| load > 0.0);
    for entry in tx.iter().skip(1).filter(|entry| has_load(entry) && has_load(tx[0])) {
        assert!(entry["degradation"]["value"].is_number(), "{entry:#}");
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
        // 50 are offered. A receiver that waits for a CPU takes in what came meanwhile in less time than it was sent in.
        assert!(throughput > 0.0 && throughput < 100.0, "{row:#}");
    }
    says_where_the_time_went(row);
}

/// For each direction: every CPU of the machine, and the threads that carried the stream, by name.
fn says_where_the_time_went(row: &Value) {
    let cpus = std::thread::available_parallelism().unwrap().get();
    for way in ["TX", "RX"] {
        let of = |own: &&Value| own["phase"] == way;
        let own: Vec<&Value> = row["breakdown"].as_array().unwrap().iter().filter(of).collect();
        assert!(!own.is_empty(), "{way}: {row:#}");
        assert!(own.iter().any(|own| own["cpus"].as_array().unwrap().len() >= cpus), "{row:#}");
        let flows = |own: &&Value| {
            let threads = own["threads"].as_array().unwrap();
            threads.iter().any(|thread| thread["name"] == "tactus-flow-0" && thread["ns"].as_u64() > Some(0))
        };
        assert!(own.iter().any(flows), "{way}: {row:#}");
        assert!(own.iter().all(|own| own["switches"].as_u64() > Some(0)), "{row:#}");
        let received =
            |own: &&Value| own["softirqs"].as_array().unwrap().iter().any(|kind| kind["name"] == "NET_RX");
        assert!(own.iter().any(received), "{way}: {row:#}");
    }
}

#[test]
fn what_can_be_made_is_measured_what_cannot_is_skipped_with_the_reason_and_nothing_stays() {
    let Some(_alone) = alone() else { return };
    if !can_be_made() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let paths = [
        ("veth", "kind = \"veth\""),
        ("bridge", "kind = \"bridge\""),
        ("macvlan", "kind = \"macvlan\""),
        ("loopback", "kind = \"loopback\""),
        ("tuned", "kind = \"bridge\"\ngro = true\ngso = false\nrps = \"0\""),
        ("narrow", "kind = \"veth\"\nmtu = 1400"),
        ("steered", "kind = \"veth\"\nrps = \"8000\""),
        ("nic", "kind = \"nic\"\nnics = [\"no-such-nic\", \"nor-this\"]"),
    ];
    let rows = run(&plan(dir.path(), &paths, "host", "3s"), &dir.path().join("bundle"));
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    for name in ["veth", "bridge", "macvlan", "loopback", "tuned"] {
        is_measured(row(name));
    }
    for (name, reason) in [
        ("narrow", "do not fit into the MTU of 1400"),
        ("nic", "no network interface no-such-nic"),
        ("steered", "CPU 8000, which this machine does not have"),
    ] {
        let row = row(name);
        assert_eq!(row["status"], "skipped", "{row:#}");
        assert!(row["reason"].as_str().unwrap().contains(reason), "{row:#}");
    }
}

#[test]
fn without_the_right_to_namespaces_a_path_is_skipped_with_the_reason_and_the_loopback_is_measured() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::Builder::new().prefix("tactus-nobody").tempdir_in("/tmp").unwrap();
    let copy = copied_into(dir.path());
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    for path in [dir.path(), copy.as_path()] {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    if let Err(error) = std::os::unix::fs::chown(&out, Some(65534), Some(65534)) {
        return skipped(&format!("chown: {error}"));
    }
    let paths = [("cable", "kind = \"veth\""), ("own", "kind = \"loopback\"")];
    let plan = plan(dir.path(), &paths, "host", "2s");
    let mut command = std::process::Command::new("setpriv");
    of_this_test(&mut command);
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(&copy);
    command.arg("run").arg(&plan).args(["--json", "--out"]).arg(out.join("bundle")).env("HOME", &out);
    command.env_remove("XDG_RUNTIME_DIR").env_remove("XDG_CACHE_HOME");
    let run = output(command.stdin(std::process::Stdio::null()).env("LC_ALL", "C.UTF-8"));
    nothing_is_left();
    let document = json(&run);
    let rows = document["scenarios"].as_array().unwrap();
    assert_eq!(rows[0]["status"], "skipped", "{:#}", rows[0]);
    let why = rows[0]["reason"].as_str().unwrap();
    assert!(
        why.contains("network namespaces, which only root can create") && why.contains("as root"),
        "{why}"
    );
    is_measured(&rows[1]);
}

#[test]
fn a_container_is_at_an_end_of_a_path_as_the_host_is() {
    let Some(_alone) = alone() else { return };
    if !can_be_made() {
        return;
    }
    let document = json(&output(tactus().args(["environments", "--json"])));
    for kind in ["podman", "nspawn", "lxc", "oci"] {
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
fn a_guest_is_at_an_end_of_a_tap_and_of_a_macvtap_and_both_kernels_say_where_the_time_went() {
    let Some(_alone) = alone() else { return };
    if !can_be_made() {
        return;
    }
    let document = json(&output(tactus().args(["environments", "--json"])));
    let qemu = document.as_array().unwrap().iter().find(|entry| entry["kind"] == "qemu").unwrap();
    if qemu["usable"] != true {
        return skipped(&format!("qemu: {}", qemu["reason"]));
    }
    let dir = tempfile::tempdir().unwrap();
    let paths = [
        ("tap", "kind = \"tap\""),
        ("macvtap", "kind = \"macvtap\""),
        ("e1000", "kind = \"macvtap\"\ndevice = \"e1000\""),
    ];
    for row in run(&plan(dir.path(), &paths, "qemu", "6s"), &dir.path().join("bundle")) {
        is_measured(&row);
        let of = |environment: &str| {
            let all = row["breakdown"].as_array().unwrap();
            all.iter().filter(|own| own["in"] == environment).cloned().collect::<Vec<_>>()
        };
        assert_eq!((of("near").len(), of("far").len()), (2, 2), "{row:#}");
        let is_virtual_cpu =
            |thread: &Value| thread["name"].as_str().is_some_and(|name| name.starts_with("CPU "));
        let threads = of("far")[0]["threads"].as_array().unwrap().clone();
        assert!(threads.iter().any(is_virtual_cpu), "the machine sees the guest's CPUs: {threads:#?}");
    }
}

/// Processes that are where the peer is awaited, but for the one that holds the namespace.
fn at_the_far_end() -> Vec<u32> {
    let all = marked().into_iter().map(|process| process.pid);
    let text = |pid: u32, name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    // Port 5202 of 198.18.0.2, awaited.
    let awaits = |pid: &u32| text(*pid, "net/tcp").contains(" 020012C6:1452 00000000:0000 0A ");
    all.filter(awaits).filter(|pid| text(*pid, "comm").trim() != "cat").collect()
}

#[test]
fn a_peer_that_goes_in_the_middle_ends_its_row_with_the_reason_and_the_rest_is_measured() {
    let Some(_alone) = alone() else { return };
    if !can_be_made() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let paths = [("veth", "kind = \"veth\""), ("bridge", "kind = \"bridge\"")];
    let (plan, out) = (plan(dir.path(), &paths, "host", "6s"), dir.path().join("bundle"));
    let before = networks();
    let mut child = started(tactus().arg("run").arg(&plan).arg("--out").arg(&out));
    await_text(&out.join("events.jsonl"), "value_measured");
    let gone = at_the_far_end();
    assert!(!gone.is_empty(), "somebody awaits the near end");
    for pid in gone {
        let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL);
    }
    child.wait().unwrap();
    nothing_is_left();
    assert_eq!(networks().difference(&before).collect::<Vec<_>>(), [""; 0]);
    let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
    let row = &shown["scenarios"][0];
    assert_eq!(row["status"], "failed", "{row:#}");
    // By the end that waits for it, or by its own stream: whichever is heard first.
    let reason = row["reason"].as_str().unwrap();
    assert!(
        reason.contains("the peer at 198.18.0.2")
            || reason.starts_with("far, the peer of this measurement, ended"),
        "{row:#}"
    );
    assert!(!row["values"].as_array().unwrap().is_empty(), "what had arrived stays");
    is_measured(&shown["scenarios"][1]);
}

#[test]
fn a_run_that_is_killed_leaves_no_namespace_no_interface_and_no_address() {
    let Some(_alone) = alone() else { return };
    if !can_be_made() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) =
        (plan(dir.path(), &[("bridge", "kind = \"bridge\"")], "host", "60s"), dir.path().join("bundle"));
    let before = networks();
    let mut child = started(tactus().arg("run").arg(&plan).arg("--out").arg(&out));
    await_text(&out.join("events.jsonl"), "value_measured");
    assert!(networks().difference(&before).count() >= 3, "two ends and a bridge");
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), Signal::KILL).unwrap();
    child.wait().unwrap();
    nothing_is_left();
    assert_eq!(networks().difference(&before).collect::<Vec<_>>(), [""; 0]);
    let shown = json(&output(tactus().arg("report").arg(&out).arg("--json")));
    assert_eq!(shown["status"], "interrupted");
    assert!(!shown["scenarios"][0]["values"].as_array().unwrap().is_empty(), "what had arrived stays");
}
