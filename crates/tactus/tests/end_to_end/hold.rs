//! `hold-vcpu`: the host keeps a guest's virtual CPU from running; the guest measures it, and the report says
//! whose it is.

use std::fs;

use crate::blocked::large;
use crate::common::{
    alone, json, measures_beside_others, nothing_is_left, output, skipped, stderr, stdout, tactus,
};

/// How long the vCPU is held each time, in ns.
const LENGTH_NS: u64 = 100_000_000;

#[test]
fn a_held_vcpu_is_seen_in_the_guest_and_attributed_to_the_host() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    let text = r#"
name = "held"
[environment.guest]
kind = "qemu"
cpus = "0-1"
[[scenario]]
name = "held"
duration = "6s"
interval = "1ms"
[[scenario.activity]]
measure = "timer"
in = "guest"
cpus = "0-1"
[[scenario.activity]]
fault = { kind = "hold-vcpu", length = "100ms", every = "500ms" }
in = "guest"
cpus = "1"
"#;
    fs::write(&plan, text).unwrap();
    let result = output(tactus().arg("run").arg(&plan).args(["--json", "--out"]).arg(&out));
    let document = json(&result);
    let entry = &document["scenarios"][0];
    if entry["status"] == "skipped" {
        return skipped(&entry["reason"].to_string());
    }
    assert_eq!(entry["status"], "measured", "{}", stderr(&result));
    let written =
        fs::read_dir(out.join("scenarios")).unwrap().next().unwrap().unwrap().path().join("result.json");
    let row: serde_json::Value = serde_json::from_slice(&fs::read(written).unwrap()).unwrap();
    let injected = &row["injected"][0];
    assert_eq!(
        (&injected["in"], &injected["kind"], &injected["way"]),
        (&"guest".into(), &"hold-vcpu".into(), &"ptrace".into())
    );
    let times = injected["times"].as_u64().unwrap();
    // They come at random moments, at least a half of it apart.
    assert!((6..=24).contains(&times), "{injected}");
    assert!(injected["longest_ns"].as_u64().unwrap() >= LENGTH_NS);
    // On the virtual CPU that was held, and at its size or more. The machine is shared: a hold that begins while the
    // guest is late already is part of that latency.
    let most = times * 2 / 3;
    assert!(large(&row, 1, LENGTH_NS) >= most, "{row:#}");
    // By the host's record of that thread.
    let stopped = |wait: &&serde_json::Value| {
        wait["cpu"] == 1
            && wait["stopped"] == true
            && wait["waited_ns"].as_u64().unwrap() >= LENGTH_NS * 9 / 10
    };
    let record = row["waits"]["longest"].as_array().unwrap().iter().filter(stopped).count() as u64;
    assert!(record >= most, "{:#}", row["waits"]);
    let attribution = &entry["attribution"];
    let count = |key: &str| attribution[key].as_u64().unwrap();
    // Of the ten largest alone, and the emulated guest has other large ones.
    assert!(count("explained") * 2 >= times, "{attribution}");
    // If the machine itself delays its threads by a similar time, chance explains the latencies too, and none is
    // blamed on the host.
    let told = attribution["chance"].as_f64().unwrap() < 0.05;
    assert_eq!(count("host"), if told { count("explained") } else { 0 }, "{attribution}");
    let shown = stdout(&output(tactus().arg("report").arg(&out)));
    assert_eq!(shown.contains("the host, not the guest, caused"), told, "{shown}");
    nothing_is_left();
}

#[test]
fn a_place_without_virtual_cpus_refuses_to_have_them_held() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    let text = r#"
name = "held"
[environment.host]
kind = "host"
[[scenario]]
name = "held"
environment = "host"
duration = "1s"
fault = { kind = "hold-vcpu", length = "50ms", every = "1s" }
"#;
    fs::write(&plan, text).unwrap();
    let result =
        output(tactus().arg("run").arg(&plan).args(["--json", "--out"]).arg(dir.path().join("bundle")));
    let entry = &json(&result)["scenarios"][0];
    assert_eq!(entry["status"], "skipped");
    assert!(entry["reason"].as_str().unwrap().contains("no known threads that could be held"), "{entry:#}");
    nothing_is_left();
}
