//! The machines that serve as fixtures are what they say they are.

use tactus_model::cmdline::Cmdline;
use tactus_model::facts::Reading;
use tactus_model::interrupts::Interrupts;
use tactus_model::threads::{Policy, Threads};
use tactus_model::topology::Topology;

use crate::machines::{MACHINES, machine};

const README: &str = include_str!("../machines/README.md");

#[test]
fn every_file_is_in_the_table_and_in_the_readme() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machines");
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            entry
                .unwrap()
                .file_name()
                .into_string()
                .unwrap()
                .split_once(".json")
                .map(|(name, _)| name.to_owned())
        })
        .collect();
    names.sort();
    assert_eq!(names, MACHINES);
    for name in MACHINES {
        assert!(README.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn every_line_of_every_machine_can_be_read() {
    for name in MACHINES {
        let facts = machine(name);
        let topology = Topology::of(&facts);
        assert!(!topology.online.is_empty() && topology.cores.len() <= topology.online.len(), "{name}");
        let threads = Threads::of(&facts);
        assert_eq!(threads.damaged, 0, "{name}");
        // The archives of hwloc hold neither threads nor interrupts.
        assert_eq!(threads.known, !name.starts_with("hwloc-"), "{name}");
        let interrupts = Interrupts::of(&facts);
        assert_eq!(interrupts.known, threads.known, "{name}");
        for interrupt in interrupts.active() {
            let allowed = interrupt.affinity.as_ref();
            assert!(allowed.is_none_or(|set| !set.is_empty()), "{name}: {interrupt:?}");
            assert!(!interrupt.chip.is_empty(), "{name}: {interrupt:?}");
        }
    }
}

#[test]
fn nothing_in_them_names_a_person_or_a_place() {
    for name in MACHINES {
        for (key, reading) in machine(name).0 {
            let (Reading::Text(text) | Reading::Cut(text) | Reading::Unreadable(text)) = &reading else {
                continue;
            };
            if key == "uname:nodename" {
                assert!(["recorded", "written"].contains(&text.as_str()), "{name}: {text}");
            }
            assert!(!key.ends_with("_serial") && !key.ends_with("/address"), "{name}: {key}");
            assert!(
                !text.contains('@')
                    || key.contains("interrupts")
                    || key.starts_with("uname:version")
                    || key == "/proc/version"
                    || key == "/proc/cpuinfo"
                    || key.starts_with("threads:"),
                "{name}: {key}: {text}"
            );
        }
    }
}

#[test]
fn the_guests_isolate_the_cpus_they_were_told_to() {
    for (name, isolated, rt) in [
        ("debian-standard", "1", false),
        ("debian-rt", "1", true),
        ("debian-rt-6-12", "1", true),
        ("debian-arm64", "2,3", false),
    ] {
        let facts = machine(name);
        assert_eq!(Topology::of(&facts).isolated.to_string(), isolated, "{name}");
        let line = Cmdline::of(&facts);
        assert_eq!(line.get("nohz_full").map(|list| list.replace('-', ",")), Some(isolated.into()), "{name}");
        assert!(
            facts.text("dmesg:rcu-offload").unwrap().contains("Offload RCU callbacks from CPUs"),
            "{name}"
        );
        assert_eq!(facts.text("config:CONFIG_PREEMPT_RT") == Some("y"), rt, "{name}");
        assert_eq!(facts.text("dmesg:start"), Some("whole"), "{name}");
    }
    let handlers = Threads::of(&machine("debian-rt"));
    assert!(handlers.named("irq/").any(|thread| thread.policy == Policy::Fifo && thread.priority == 50));
}

#[test]
fn virtual_cpus_lie_well_on_the_tuned_machine_and_badly_on_the_other() {
    let spread = |name: &str| {
        let facts = machine(name);
        let topology = Topology::of(&facts);
        let threads = Threads::of(&facts);
        let vcpus: Vec<_> = threads.named("CPU ").collect();
        assert_eq!(vcpus.len(), 3, "{name}");
        let cores: std::collections::BTreeSet<_> =
            vcpus.iter().map(|vcpu| topology.core_of(vcpu.cpus.first().unwrap())).collect();
        cores.len()
    };
    assert_eq!(spread("intel-bare-tuned"), 3);
    assert_eq!(spread("smt-two-nodes"), 2);
}

#[test]
fn the_large_host_is_large() {
    let facts = machine("host-128");
    assert_eq!(Topology::of(&facts).online.len(), 128);
    assert_eq!(Interrupts::of(&facts).active().count(), 600);
    assert!((5900..=6100).contains(&Threads::of(&facts).list.len()));
}
