//! The generated flavor, by Nova's own validators of extra specs; and the script, by a shell that calls what
//! stands in for the client.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tactus_tune::generate::{GuestOptions, Page};

use crate::common::{generated, machine, run, tools, words};

/// Each property of the generated script, as the client gets it.
fn properties(name: &str, vendor: &str, page: Page) -> Vec<String> {
    let options = GuestOptions { page: Some(page), ..GuestOptions::default() };
    let dir = generated("nova", &machine(name, vendor, 8), "2-7", &options);
    let client = dir.path().join("openstack");
    std::fs::write(&client, "#!/bin/sh\nfor word do printf '%s\\n' \"$word\"; done\n").unwrap();
    std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let output = run(Command::new(dir.path().join("rt-guest-flavor.sh")).env("PATH", path));
    assert!(output.status.success(), "{}", words(&output));
    let said = words(&output);
    let set: Vec<String> = said.lines().filter(|line| line.starts_with("hw:")).map(str::to_owned).collect();
    assert!(set.len() >= 8, "{said}");
    set
}

#[test]
fn nova_takes_every_property_of_the_flavor_and_refuses_what_it_does_not_know() {
    let Some(python) = tools("nova") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/generate/nova_holds.py");
    let held = |properties: &[String]| run(Command::new(&python).arg(script).args(properties));
    for (name, vendor, page) in [
        ("x86_64", "GenuineIntel", Page::G1),
        ("x86_64", "AuthenticAMD", Page::M2),
        ("aarch64", "", Page::Base),
    ] {
        let output = held(&properties(name, vendor, page));
        assert!(output.status.success(), "{}", words(&output));
    }
    for wrong in ["hw:cpu_policy=alone", "hw:emulator_thread_policy=share", "hw:numa_nodes=few"] {
        let output = held(&[wrong.to_owned()]);
        assert!(!output.status.success() && words(&output).contains(wrong), "{}", words(&output));
    }
}

#[test]
fn nova_reads_the_drop_in_of_a_compute_host() {
    let Some(python) = tools("nova") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/generate/nova_reads.py");
    let dir = generated("nova", &machine("x86_64", "GenuineIntel", 8), "2-4,6-7", &GuestOptions::default());
    let text = std::fs::read_to_string(dir.path().join("50-tactus.conf")).unwrap();
    let read = |text: &str| {
        let conf = tempfile::tempdir().unwrap();
        std::fs::write(conf.path().join("50-tactus.conf"), text).unwrap();
        run(Command::new(&python).arg(script).arg(conf.path()))
    };
    let output = read(&text);
    assert!(output.status.success(), "{}", words(&output));
    let values: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cpus = |name: &str| -> tactus_model::CpuSet { values[name].as_str().unwrap().parse().unwrap() };
    let (dedicated, shared) = (cpus("compute.cpu_dedicated_set"), cpus("compute.cpu_shared_set"));
    assert_eq!((dedicated.to_string().as_str(), shared.to_string().as_str()), ("2-4,6,7", "0,1,5"));
    assert_eq!(
        (&values["libvirt.virt_type"], &values["libvirt.cpu_mode"]),
        (&"kvm".into(), &"host-passthrough".into())
    );
    assert_eq!(values["libvirt.realtime_scheduler_priority"], 1);
    let wrong = |from: &str, to: &str| {
        let output = read(&text.replace(from, to));
        assert!(!output.status.success() && text.contains(from), "{to}: {}", words(&output));
    };
    wrong("cpu_dedicated_set", "cpu_dedicated_sets");
    wrong("= host-passthrough", "= host");
    wrong("realtime_scheduler_priority = 1", "realtime_scheduler_priority = high");
}
