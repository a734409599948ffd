//! The kind `libvirt`, beyond what every kind must keep.

use std::fs;
use std::time::Duration;

use tactus_environment::{ENVIRONMENTS, Environment, Usable};
use tactus_model::plan;
use tactus_system::{Real, System};

use super::conversation::Conversation;
use super::libvirtd::Libvirtd;
use super::{beside_others, leftovers, skipped, spec};

fn kind() -> &'static (dyn Environment + Sync) {
    *ENVIRONMENTS.iter().find(|environment| environment.kind() == "libvirt").unwrap()
}

/// The kind, and a libvirt to use it with.
fn usable(libvirtd: Option<Libvirtd>) -> Option<(Libvirtd, plan::Environment)> {
    let Some(libvirtd) = libvirtd else {
        skipped("libvirt: libvirtd is not installed, or this is not root");
        return None;
    };
    let spec = spec("libvirt", &[("uri", &libvirtd.uri())]);
    match kind().usable_as(&spec, &Real) {
        Usable::Yes { .. } => Some((libvirtd, spec)),
        Usable::No { reason, remedy } => {
            skipped(&format!("libvirt: {reason}; {remedy}"));
            None
        }
    }
}

fn notes(talk: &mut Conversation) -> Vec<String> {
    talk.running.after_hello().unwrap().into_iter().map(|note| note.text).collect()
}

#[test]
fn a_domain_stands_where_it_was_asked_to_and_is_gone_afterwards() {
    let _turn = beside_others();
    let Some((libvirtd, mut spec)) = usable(Libvirtd::start()) else { return };
    // The runtime that a container in it would need.
    let program = Real.find_program("crun").or_else(|| Real.find_program("runc"));
    if let Some(program) = &program {
        spec.options.insert("programs".into(), serde_json::json!([program]));
    }
    let mut talk = Conversation::begin(kind(), &spec).unwrap();
    talk.greet();
    if let Some(program) = &program {
        assert!(talk.system().exists(program), "{} is in the guest", program.display());
    }
    let notes = notes(&mut talk);
    let placed = notes.iter().find(|note| note.starts_with("read from the domain's threads")).unwrap();
    let cpus = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    if cpus.trim() != "0" {
        assert!(placed.contains("vCPU 0 on CPU 0") && placed.contains("vCPU 1 on CPU 1"), "{notes:?}");
        assert!(placed.contains("vCPU 1 with SCHED_FIFO 1"), "{notes:?}");
        assert!(placed.contains("other threads on CPU 0"), "{notes:?}");
    }
    let vcpus = talk.running.vcpus();
    assert_eq!(vcpus.iter().map(|(vcpu, _)| *vcpu).collect::<Vec<_>>(), [0, 1], "{vcpus:?}");
    for (vcpu, thread) in vcpus {
        let name = fs::read_to_string(format!("/proc/{thread}/comm")).unwrap();
        assert!(name.starts_with(&format!("CPU {vcpu}/")), "{name}");
    }
    let (_, domains) = libvirtd.virsh(&["list", "--name"]);
    assert!(domains.contains(talk.id()), "{domains}");
    let id = talk.id().to_owned();
    talk.end();
    assert_eq!(libvirtd.virsh(&["list", "--all", "--name"]), (true, String::new()));
    leftovers::none_within(&id, Duration::from_secs(5))
        .unwrap_or_else(|left| panic!("libvirt leaves {left}"));
}

#[test]
fn a_libvirt_that_refuses_priorities_creates_the_domain_without_and_says_so() {
    let _turn = beside_others();
    let Some((_libvirtd, spec)) = usable(Libvirtd::without_budget()) else { return };
    if !std::path::Path::new("/sys/fs/cgroup/cpu/cpu.rt_runtime_us").exists() {
        eprintln!("this kernel has no budgets for real-time groups: there is nothing to refuse");
        return;
    }
    let mut talk = Conversation::begin(kind(), &spec).unwrap();
    talk.greet();
    let notes = notes(&mut talk);
    let refused = notes.iter().find(|note| note.starts_with("no vCPU got SCHED_FIFO")).unwrap();
    assert!(refused.contains("Cannot set scheduler parameters"), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("vCPU 0 on CPU 0") && !note.contains("FIFO")), "{notes:?}");
    let id = talk.id().to_owned();
    talk.end();
    leftovers::none_within(&id, Duration::from_secs(5))
        .unwrap_or_else(|left| panic!("libvirt leaves {left}"));
}

#[test]
fn what_libvirt_refuses_is_told_in_its_words() {
    let _turn = beside_others();
    let Some((libvirtd, mut spec)) = usable(Libvirtd::start()) else { return };
    spec.options.insert("memory".into(), "16777216MiB".into());
    let Err(error) = Conversation::begin(kind(), &spec) else { panic!("no machine has that much") };
    assert!(error.reason.contains("virsh create"), "{error}");
    assert_eq!(libvirtd.virsh(&["list", "--all", "--name"]), (true, String::new()));
}
