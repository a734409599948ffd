//! Containers in a guest, at rest, loaded and blocked, and on a machine that ssh reaches.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::blocked::{LENGTH_NS, large};
use crate::common::{json, measures_beside_others, nothing_is_left, output, skipped, stderr, tactus};
use crate::sshd::Sshd;

/// As in the guide, shorter, and blocked.
const PLAN: &str = r#"
name = "container in a guest"
[defaults]
duration = "2s"
interval = "2ms"
[environment.guest]
kind = "qemu"
kernel = "rt"
[environment.container]
kind = "oci"
inside = "guest"
cpus = "0-1"
tracing = true
[[scenario]]
name = "container in the guest"
environment = "container"
measurement = "timer"
[[scenario]]
name = "container in the guest, the guest loaded"
environment = "container"
measurement = "timer"
load = [{ kind = "cpu", in = "guest", cpus = "0" }]
[[scenario]]
name = "both"
[[scenario.activity]]
measure = "timer"
in = "guest"
[[scenario.activity]]
measure = "timer"
in = "container"
[[scenario]]
name = "the guest blocked"
duration = "3s"
[[scenario.activity]]
measure = "timer"
in = "container"
cpus = "0-1"
[[scenario.activity]]
fault = { kind = "block", length = "50ms", every = "500ms" }
in = "guest"
cpus = "1"
[[scenario]]
name = "the container blocks"
duration = "3s"
[[scenario.activity]]
measure = "timer"
in = "guest"
cpus = "0-1"
[[scenario.activity]]
fault = { kind = "block", length = "50ms", every = "500ms" }
in = "container"
cpus = "1"
"#;

/// The row of a scenario.
fn row(bundle: &Path, name: &str) -> Value {
    let dirs = fs::read_dir(bundle.join("scenarios")).unwrap().flatten();
    let mut rows = dirs.map(|dir| {
        serde_json::from_slice::<Value>(&fs::read(dir.path().join("result.json")).unwrap()).unwrap()
    });
    rows.find(|row| row["name"] == name).unwrap_or_else(|| panic!("no row {name}"))
}

#[test]
fn a_container_in_a_guest_is_measured_through_the_guests_probe_and_is_gone_with_it() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&plan, PLAN).unwrap();
    let result = output(tactus().arg("run").arg(&plan).args(["--json", "--out"]).arg(&out));
    let document = json(&result);
    let entries = document["scenarios"].as_array().unwrap();
    assert_eq!(entries.len(), 6, "{document:#}");
    if entries.iter().all(|entry| entry["status"] == "skipped") {
        return skipped(&format!("{}", entries[0]["reason"]));
    }
    let mut evidence: Vec<&str> = Vec::new();
    for entry in entries {
        assert_eq!(entry["status"], "measured", "{entry:#}\n{}", stderr(&result));
        assert!(entry["all"]["cycles"].as_u64().unwrap() > 100, "{entry:#}");
        evidence.push(entry["evidence"].as_str().unwrap());
    }
    // An inner environment has the evidence of the outer one.
    evidence.dedup();
    assert_eq!(evidence.len(), 1, "{evidence:?}");
    let events = fs::read_to_string(out.join("events.jsonl")).unwrap();
    assert!(events.contains("oci in guest, on its CPUs"), "the report says where it lies");
    assert!(events.contains("environment_kept"), "one guest carries all of it");
    for (scenario, where_injected) in [("the guest blocked", "guest"), ("the container blocks", "container")]
    {
        let row = row(&out, scenario);
        let injected = &row["injected"][0];
        assert_eq!(
            (&injected["in"], &injected["kind"]),
            (&where_injected.into(), &"block".into()),
            "{row:#}"
        );
        // Some five blocks; the machine is shared, so that some may be hidden in others.
        let there = large(&row, 1, LENGTH_NS);
        assert!(there >= 3, "{scenario}: seen {there} times where it was: {row:#}");
        assert!(large(&row, 0, LENGTH_NS) < there, "{scenario}: as often on the other CPU");
    }
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("container (oci in guest)"));
    nothing_is_left();
}

#[test]
fn containers_on_a_machine_that_ssh_reaches_are_measured_through_its_probe_and_are_gone_with_it() {
    let Some(_turn) = measures_beside_others() else { return };
    let server = match Sshd::start() {
        Ok(server) => server,
        Err(why) => return skipped(&why),
    };
    let mut text = "name = \"there\"\n[defaults]\nduration = \"1s\"\ninterval = \"2ms\"\n[environment.board]\nkind = \"ssh\"\n"
        .to_owned();
    for (key, value) in server.spec().options {
        writeln!(text, "{key} = {value}").unwrap();
    }
    let kinds = ["podman", "oci", "lxc", "nspawn"];
    for kind in kinds {
        write!(
            text,
            "[environment.{kind}]\nkind = \"{kind}\"\ninside = \"board\"\n[[scenario]]\nname = \"{kind}\"\nenvironment = \"{kind}\"\n"
        )
        .unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    fs::write(&plan, text).unwrap();
    let result = output(tactus().arg("run").arg(&plan).args(["--json", "--out"]).arg(&out));
    let document = json(&result);
    let entries = document["scenarios"].as_array().unwrap();
    assert_eq!(entries.len(), kinds.len(), "{document:#}");
    for entry in entries {
        if entry["status"] == "skipped" {
            skipped(&entry["reason"].to_string());
            continue;
        }
        assert_eq!(entry["status"], "measured", "{entry:#}\n{}\n{}", stderr(&result), server.log());
        assert!(entry["all"]["cycles"].as_u64().unwrap() > 100, "{entry:#}");
    }
    nothing_is_left();
}
