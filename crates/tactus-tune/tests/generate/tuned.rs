//! The real TuneD: it finds the generated profile, and loads it with its includes and variables. It runs in a
//! separate mount namespace, where /etc/tuned is a copy.

use std::path::Path;
use std::process::Command;

use tactus_audit::{Intent, Subject};
use tactus_model::change::Target;
use tactus_model::finding::Role;
use tactus_system::Real;
use tactus_system::topology;
use tactus_tune::generate::{self, GenerateRequest, GuestOptions};
use tactus_tune::plan::{Choice, Plan, Withheld};
use tactus_tune::profile;

use crate::common::{run, skipped, words};

/// Runs a shell where `etc` lies over /etc/tuned.
fn within(etc: &Path, script: &str) -> std::process::Output {
    let script = format!("mount --bind \"$0\" /etc/tuned && {script}");
    run(Command::new("unshare").args(["-m", "sh", "-c", &script]).arg(etc))
}

#[test]
fn tuned_finds_each_profile_and_loads_it_with_its_includes_and_variables() {
    if !Path::new("/usr/lib/tuned/realtime-virtual-host").is_dir() {
        return skipped("TuneD with its real-time profiles is not installed");
    }
    if !rustix::process::getuid().is_root() {
        return skipped("only root has a mount namespace of its own");
    }
    let topology = topology(&Real);
    let Some(cpu) = topology.online.last().filter(|cpu| *cpu > 0) else {
        return skipped("there is one CPU only");
    };
    let mut facts = tactus_system::facts(&Real, &topology, std::process::id()).unwrap();
    profile::complete(&mut facts, &Real);
    for online in topology.online.iter() {
        let siblings = format!("/sys/devices/system/cpu/cpu{online}/topology/thread_siblings_list");
        facts.keep(siblings, online.to_string());
    }
    let intent = Intent { isolated: Some(cpu.to_string().parse().unwrap()), ..Intent::default() };
    let subject = Subject::new(&facts, Role::Host, &intent);
    for stock in profile::PROFILES {
        if !Path::new("/usr/lib/tuned").join(stock.name).is_dir() {
            skipped(&format!("TuneD's profile {} is not installed", stock.name));
            continue;
        }
        let plan = Plan::new(&subject, stock, &Choice::default());
        let changes: Vec<_> = plan.entries.iter().map(|step| step.change.clone()).collect();
        let request = GenerateRequest {
            subject: &subject,
            profile: stock.name,
            changes: &changes,
            withheld: &plan.withheld,
            options: &GuestOptions::default(),
            says: generate::of_check,
        };
        let output = (generate::find("tuned").unwrap().generate)(&request).unwrap();
        let etc = tempfile::tempdir().unwrap();
        assert!(run(Command::new("cp").args(["-a", "/etc/tuned/."]).arg(etc.path())).status.success());
        for file in &output.files {
            let path = etc.path().join(&file.name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &file.text).unwrap();
        }
        let name = format!("tactus-{}", stock.name);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/generate/tuned_loads.py");
        let loaded = within(etc.path(), &format!("/usr/bin/python3 {script} {name}"));
        assert!(loaded.status.success(), "{name}: {}", words(&loaded));
        let units: serde_json::Value = serde_json::from_slice(&loaded.stdout).unwrap_or_else(|error| {
            panic!("{name}: {error}: {}", words(&loaded));
        });
        let boot = units["bootloader"].as_object().unwrap();
        let line: String = boot.values().map(|value| format!("{} ", value.as_str().unwrap())).collect();
        let isolated =
            if stock.name == "realtime" { format!("domain,{cpu}") } else { format!("nohz_full={cpu}") };
        assert!(line.contains(&isolated), "{name}: {line}");
        // The additions of tactus are there beside TuneD's own parameters.
        assert!(boot.keys().any(|key| key.starts_with("cmdline_tactus")), "{name}: {line}");
        verified(etc.path(), &name, &plan.withheld);
        let listed = within(etc.path(), "tuned-adm list");
        assert!(words(&listed).contains(&format!("\n- {name}")), "{}", words(&listed));
    }
}

/// TuneD's plug-ins verify a profile, as for `tuned-adm verify`: they know every option, and expect no value that the
/// plan has left out.
fn verified(etc: &Path, name: &str, withheld: &[Withheld]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/generate/tuned_verifies.py");
    let told = within(etc, &format!("/usr/bin/python3 {script} {name}"));
    assert!(told.status.success(), "{name}: {}", words(&told));
    let said = String::from_utf8(told.stdout).unwrap();
    assert!(!said.contains("Unknown option"), "{name}: {said}");
    let expects =
        |what: &str| said.lines().filter(|line| line.contains("verify:") && line.contains(what)).count();
    assert!(expects("cmdline arg 'skew_tick'") > 0 && expects("'vm.swappiness'") > 0, "{name}: {said}");
    assert!(expects("'/sys/devices/virtual/workqueue/cpumask'") > 0, "{name}: {said}");
    assert!(withheld.len() > 2, "{name}: {withheld:?}");
    for one in withheld {
        match &one.change.target {
            Target::Kernel { parameter } => {
                assert_eq!(expects(&format!("cmdline arg '{parameter}'")), 0, "{name}: {said}");
            }
            Target::File { path, .. } if path.starts_with("/proc/sys/") => {
                let key = path.trim_start_matches("/proc/sys/").replace('/', ".");
                let value = format!("expected '{}'", one.change.then);
                let wrong =
                    said.lines().find(|line| line.contains(&format!("'{key}'")) && line.contains(&value));
                assert_eq!(wrong, None, "{name}");
            }
            _ => {}
        }
    }
}
