//! A docker container at an end of a network path, by a daemon of the test's own.

use std::fs;

use crate::common::{alone, json, nothing_is_left, output, skipped, stderr, tactus};

#[path = "../../../tactus-environment/tests/contract/docker/daemon.rs"]
pub mod daemon;

#[test]
fn a_docker_container_is_at_either_end_of_a_path_and_nothing_of_it_stays() {
    let Some(_alone) = alone() else { return };
    let Some(daemon) = daemon::Daemon::start() else { return skipped("docker: there is no dockerd") };
    let dir = tempfile::tempdir().unwrap();
    let mut text = format!(
        "name = \"docker\"\n[defaults]\nduration = \"2s\"\n[environment.box]\nkind = \"docker\"\nhost = \"{}\"\n\
         [environment.host]\nkind = \"host\"\n[path.cable]\nkind = \"veth\"\n[path.macvlan]\nkind = \"macvlan\"\n\
         [path.narrow]\nkind = \"bridge\"\nmtu = 1400\n",
        daemon.host()
    );
    for (path, near, far) in [
        ("cable", "box", "host"),
        ("macvlan", "box", "host"),
        ("cable", "host", "box"),
        ("narrow", "box", "host"),
    ] {
        text += &format!(
            "[[scenario]]\nname = \"{near}, {path}\"\n[[scenario.activity]]\nmeasure = {{ kind = \"network\", rate = 50 }}\n\
             in = \"{near}\"\nto = \"{far}\"\npath = \"{path}\"\n"
        );
    }
    let plan = dir.path().join("plan.toml");
    fs::write(&plan, text).unwrap();
    let links = || {
        fs::read_dir("/sys/class/net").unwrap().flatten().map(|entry| entry.file_name()).collect::<Vec<_>>()
    };
    let before = links();
    let run =
        output(tactus().arg("run").arg(&plan).arg("--json").arg("--out").arg(dir.path().join("bundle")));
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", stderr(&run));
    assert_eq!(links(), before);
    assert_eq!(daemon.has("tactus"), [] as [String; 0]);
    // Its own groups bear our name, too.
    drop(daemon);
    nothing_is_left();
    let document = json(&run);
    let rows = document["scenarios"].as_array().unwrap();
    for row in &rows[..3] {
        assert_eq!(
            (&row["status"], &row["reason"]),
            (&"measured".into(), &serde_json::Value::Null),
            "{row:#}"
        );
        let values = row["values"].as_array().unwrap();
        for item in ["TX throughput", "RX throughput", "round trip"] {
            // Dropped, where a hypervisor took the CPUs.
            let Some(value) = values.iter().find(|value| value["item"] == item) else { continue };
            assert!(value["value"].as_f64().unwrap() > 0.0, "{row:#}");
        }
    }
    assert_eq!(rows[3]["status"], "skipped", "{:#}", rows[3]);
    assert!(rows[3]["reason"].as_str().unwrap().contains("do not fit into the MTU of 1400"), "{:#}", rows[3]);
}
