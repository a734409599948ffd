//! `block` in a guest: the control by it, where it is seen, and that it does not reach the host.

use std::fs;

use serde_json::Value;

use crate::common::{alone, json, nothing_is_left, output, skipped, stderr, tactus};

/// How long interrupts are off each time, in ns.
pub const LENGTH_NS: u64 = 50_000_000;

/// How many of the largest values on a CPU are about as long as a disturbance, or longer.
pub fn large(row: &Value, cpu: u64, length_ns: u64) -> u64 {
    let series = row["series"].as_array().unwrap().iter().find(|series| series["cpu"] == cpu);
    let outliers = series.unwrap_or_else(|| panic!("no CPU {cpu}: {row:#}"))["outliers"].as_array().unwrap();
    outliers.iter().filter(|outlier| outlier["value_ns"].as_u64().unwrap() >= length_ns * 9 / 10).count()
        as u64
}

#[test]
fn a_block_in_a_guest_is_seen_on_its_cpu_there_proves_the_instrument_and_does_not_reach_the_host() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    let text = r#"
name = "blocked"
[environment.host]
kind = "host"
[environment.guest]
kind = "qemu"
kernel = "rt"
cpus = "0-1"
[defaults]
interval = "1ms"
[[scenario]]
name = "proven by a block"
duration = "1s"
environment = "guest"
cpus = "0-1"
control = { kind = "block", length = "50ms", every = "1s" }
[[scenario]]
name = "blocked"
duration = "4s"
[[scenario.activity]]
measure = "timer"
in = "guest"
cpus = "0-1"
[[scenario.activity]]
measure = "timer"
in = "host"
cpus = "0-1"
[[scenario.activity]]
fault = { kind = "block", length = "50ms", every = "500ms" }
in = "guest"
cpus = "1"
"#;
    fs::write(&plan, text).unwrap();
    let result = output(tactus().arg("run").arg(&plan).args(["--json", "--out"]).arg(&out));
    let document = json(&result);
    let entries = document["scenarios"].as_array().unwrap();
    if let Some(entry) = entries.iter().find(|entry| entry["status"] == "skipped") {
        return skipped(&entry["reason"].to_string());
    }
    assert!(entries.iter().all(|entry| entry["status"] == "measured"), "{}", stderr(&result));
    let rows: Vec<Value> = fs::read_dir(out.join("scenarios"))
        .unwrap()
        .map(|dir| {
            serde_json::from_slice(&fs::read(dir.unwrap().path().join("result.json")).unwrap()).unwrap()
        })
        .collect();
    let row = |name: &str, environment: &str| {
        rows.iter().find(|row| row["name"] == name && row["environment"] == environment).unwrap()
    };
    for control in row("proven by a block", "guest")["self_tests"].as_array().unwrap() {
        assert_eq!(control["by"], "block");
        let (injected, seen) =
            (control["injected_ns"].as_u64().unwrap(), control["seen_ns"].as_u64().unwrap());
        assert_eq!(injected, LENGTH_NS);
        // Whether it is proven depends on the noise of this machine; that it was seen does not.
        assert!(seen >= injected * 9 / 10, "{control}");
    }
    let (guest, host) = (row("blocked", "guest"), row("blocked", "host"));
    let injected = &guest["injected"][0];
    assert_eq!(
        (&injected["in"], &injected["kind"], &injected["cpus"]),
        (&"guest".into(), &"block".into(), &"1".into())
    );
    // Seven or eight blocks in four seconds; the machine is shared, so that some may be hidden in others.
    let there = large(guest, 1, LENGTH_NS);
    assert!(there >= 5, "seen {there} times where it was: {guest:#}");
    assert!(large(guest, 0, LENGTH_NS) < there, "as often on the other CPU");
    let reached = large(host, 0, LENGTH_NS) + large(host, 1, LENGTH_NS);
    assert!(reached < there / 2, "seen {reached} times on the host, {there} times in the guest");
    nothing_is_left();
}
