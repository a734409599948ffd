use super::super::testing::{Machine, says, shown, three};
use super::super::{Accel, GenerateError};
use super::tree::Tree;
use super::{ENTRY, patch};

#[path = "../../../tests/machines/mod.rs"]
mod machines;

#[test]
fn the_domain_of_each_machine() {
    for (name, machine) in three() {
        insta::assert_snapshot!(format!("libvirt_{name}"), shown(&machine.generate(&ENTRY).unwrap()));
    }
}

#[test]
fn an_emulated_domain_says_what_it_lost() {
    let [(_, machine), ..] = three();
    let output = machine.options(|options| options.accel = Some(Accel::Tcg)).generate(&ENTRY).unwrap();
    let text = &output.files[0].text;
    let tree = Tree::parse(text).unwrap();
    assert_eq!(tree.root().attribute("type"), Some("qemu"));
    assert_eq!(tree.find(&["cpu"]).unwrap().attribute("mode"), Some("maximum"));
    for gone in [&["features", "kvm"][..], &["features", "pmu"], &["cpu", "feature"]] {
        assert!(tree.find(gone).is_none(), "{gone:?}");
    }
    for check in ["cpu-passthrough", "kvm-hint-dedicated", "guest-tsc-deadline", "vpmu-off"] {
        assert!(output.notes.iter().any(|note| note.contains("dropped") && note.contains(check)), "{check}");
        assert!(text.contains(check), "{check} is in a comment");
    }
}

/// A domain as virt-manager leaves it and an administrator annotates it.
const OWN: &str = include_str!("../../../tests/fixtures/domain.xml");

fn patched(machine: &Machine, text: &str) -> Result<(String, Vec<String>), GenerateError> {
    machine.with(|subject| {
        let request = super::GenerateRequest {
            subject,
            profile: "realtime-virtual-host",
            changes: &[],
            withheld: &[],
            options: &machine.options,
            says,
        };
        patch(text, "own.xml", &request).map(|(text, output)| (text, output.notes))
    })
}

fn own() -> Machine {
    let [(_, machine), ..] = three();
    machine.options(|options| options.vcpus = None)
}

#[test]
fn a_users_domain_keeps_what_is_not_ours_byte_for_byte() {
    let (text, notes) = patched(&own(), OWN).unwrap();
    insta::assert_snapshot!("libvirt_patched", format!("{text}\n{}", notes.join("\n")));
    assert!(text.contains(" <!-- keep: why? -->\n"), "a comment stays where its element is changed");
    for line in OWN.lines().filter(|line| line.contains("keep") && !line.contains("vcpupin")) {
        assert!(text.contains(line), "{line}");
    }
}

#[test]
fn a_domain_that_was_changed_already_stays_as_it_is() {
    for accel in [None, Some(Accel::Tcg), Some(Accel::Kvm)] {
        let machine = own().options(|options| options.accel = accel);
        let (once, _) = patched(&machine, OWN).unwrap();
        let (twice, notes) = patched(&machine, &once).unwrap();
        assert_eq!(once, twice);
        assert!(!notes.iter().any(|note| note.starts_with("changed")), "{notes:?}");
    }
    // A domain that tactus generates needs no change by tactus.
    for (_, machine) in three() {
        let text = machine.generate(&ENTRY).unwrap().files.remove(0).text;
        assert_eq!(patched(&machine, &text).unwrap().0, text);
    }
}

/// Domains of the field: a flavor for real time of OpenStack's Nova, and one with every limit that libvirt's document has.
const NOVA: &str = include_str!("../../../tests/fixtures/domains/nova-realtime.xml");
const LIMITS: &str = include_str!("../../../tests/fixtures/domains/limits.xml");

#[test]
fn disks_are_put_on_the_thread_that_is_made_for_them() {
    let (text, notes) = patched(&own(), NOVA).unwrap();
    let tree = Tree::parse(&text).unwrap();
    assert_eq!(tree.find(&["iothreads"]).unwrap().text, "1");
    assert_eq!(tree.find(&["devices", "disk", "driver"]).unwrap().attribute("iothread"), Some("1"));
    assert!(notes.contains(&"changed: disk vda on iothread 1 (iothread-pin)".to_owned()), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("NUMA")), "it has one node: {notes:?}");
    // No disk that could use one: none is made.
    let (text, _) = patched(&own(), &NOVA.replace("bus='virtio'", "bus='sata'")).unwrap();
    assert!(!text.contains("iothread"), "{text}");
    let (_, notes) = patched(
        &own(),
        &NOVA.replace("bus='virtio'", "bus='ide'").replace("<cputune>", "<iothreads>2</iothreads><cputune>"),
    )
    .unwrap();
    assert!(notes.iter().any(|note| note.starts_with("iothread-pin: no disk")), "{notes:?}");
    // A user who has put disks on threads keeps them there.
    let chosen = NOVA
        .replace("cache='none'", "cache='none' iothread='2'")
        .replace("<cputune>", "<iothreads>2</iothreads><cputune>");
    let (text, _) = patched(&own(), &chosen).unwrap();
    assert!(text.contains("iothread='2'/>") && text.contains("<iothreadpin iothread='2'"), "{text}");
    let numbered = NOVA.replace("<cputune>", "<iothreadids><iothread id='7'/></iothreadids><cputune>");
    let (text, _) = patched(&own(), &numbered).unwrap();
    assert!(
        text.contains("cache='none' iothread='7'/>") && text.contains("<iothreadpin iothread='7'"),
        "{text}"
    );
}

#[test]
fn no_limit_of_the_guest_stays_in_silence() {
    let (text, notes) = patched(&own(), LIMITS).unwrap();
    for gone in ["<quota>", "emulator_quota", "iothread_quota", "memorytune"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    assert!(
        notes.iter().any(|note| note.starts_with("resctrl-cat: <cachetune> limits vCPUs 0-3 to 3 MiB of L3")),
        "{notes:?}"
    );
    let more = LIMITS
        .replace("bandwidth='60'", "bandwidth='100'")
        .replace("<target dev", "<iotune><read_iops_sec>9</read_iops_sec></iotune><target dev");
    let (text, notes) = patched(&own(), &more).unwrap();
    assert!(text.contains("memorytune"), "all of the bandwidth is no limit");
    assert!(notes.contains(&"io-path: <iotune> limits disk vda and stays".to_owned()), "{notes:?}");
}

#[test]
fn a_domain_keeps_the_size_of_its_pages_and_is_told_where_the_host_has_too_few() {
    let huge = |size: &str| {
        NOVA.replace("<nosharepages/>", &format!("<hugepages>{size}</hugepages><nosharepages/>"))
    };
    let host = own()
        .fact("/proc/cpuinfo", "flags\t: pdpe1gb")
        .fact("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "600")
        .fact("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0");
    let size = |domain: &str| {
        let (text, notes) = patched(&host, domain).unwrap();
        let tree = Tree::parse(&text).unwrap();
        let page = tree.find(&["memoryBacking", "hugepages", "page"]).unwrap();
        let size = format!("{}{}", page.attribute("size").unwrap(), page.attribute("unit").unwrap());
        (size, notes.into_iter().find(|note| note.starts_with("guest-hugepages")))
    };
    assert_eq!(size(&huge("<page size='2048' unit='KiB'/>")), ("2M".into(), None));
    assert_eq!(size(&huge("")), ("2M".into(), None), "the host's default");
    assert_eq!(size(NOVA), ("2M".into(), None), "those that the host has");
    let (large, note) = size(&huge("<page size='1' unit='G'/>"));
    assert_eq!(large, "1G");
    assert_eq!(
        note.as_deref(),
        Some(
            "guest-hugepages: the host has 0 pages of 1GiB on node 0, but the guest needs 1: it does not start before they are reserved"
        )
    );
}

#[test]
fn patching_any_domain_on_any_recorded_machine_twice_changes_nothing() {
    let domains = [OWN, NOVA, LIMITS];
    let mut done = 0;
    for (name, facts) in machines::machines() {
        let isolation = tactus_audit::Intent::default();
        let subject = tactus_audit::Subject::new(&facts, tactus_model::finding::Role::Host, &isolation);
        for domain in domains {
            for accel in [None, Some(Accel::Tcg)] {
                let options = crate::generate::GuestOptions { accel, ..Default::default() };
                let request = super::GenerateRequest {
                    subject: &subject,
                    profile: "realtime-virtual-host",
                    changes: &[],
                    withheld: &[],
                    options: &options,
                    says,
                };
                // Some machines have fewer CPUs or less memory than the domain wants.
                let Ok((once, first)) = patch(domain, "own.xml", &request) else { continue };
                let (twice, second) = patch(&once, "own.xml", &request).unwrap();
                assert_eq!(once, twice, "{name}");
                assert!(
                    !second.notes.iter().any(|note| note.starts_with("changed")),
                    "{name}: {:?}",
                    second.notes
                );
                holds(&name, &once, &subject);
                assert!(first.notes.iter().any(|note| note.starts_with("changed")), "{name}");
                done += 1;
            }
        }
    }
    assert!(done > 20, "{done}");
}

/// The settings match the machine, and the rest of the domain.
fn holds(name: &str, text: &str, subject: &tactus_audit::Subject<'_>) {
    let tree = Tree::parse(text).unwrap();
    let tune = tree.find(&["cputune"]).unwrap();
    let online = &subject.topology.online;
    for pin in ["vcpupin", "emulatorpin", "iothreadpin"] {
        for one in tree.children(tune, pin) {
            let cpus: tactus_model::CpuSet = one.attribute("cpuset").unwrap().parse().unwrap();
            assert!(!cpus.is_empty() && cpus.minus(online).is_empty(), "{name}: {pin} {cpus}");
        }
    }
    for gone in ["quota", "global_quota", "emulator_quota", "iothread_quota", "memorytune"] {
        assert!(tree.find(&["cputune", gone]).is_none(), "{name}: {gone}");
    }
    if tree.find(&["iothreads"]).is_some() {
        assert!(super::threads::is_used(&tree), "{name}: no disk uses the threads");
    }
    if let Some(memory) = tree.find(&["numatune", "memory"]) {
        let node = memory.attribute("nodeset").unwrap();
        let path = format!("/sys/devices/system/node/node{node}/cpulist");
        assert!(subject.facts.text(&path).is_some(), "{name}: no node {node}");
        if let Some(of_cell) = tree.find(&["numatune", "memnode"]) {
            assert_eq!(of_cell.attribute("nodeset"), Some(node), "{name}");
        }
    }
}

#[test]
fn what_is_no_domain_is_refused_by_name() {
    for (text, word) in [
        ("", "no element"),
        ("<network/>", "<network>"),
        ("<domain/>", "not set"),
        ("<domain type='xen'/>", "xen"),
        ("<domain type='kvm'/>", "vCPUs"),
        ("<domain type='kvm'><vcpu>2</vcpu></domain>", "memory"),
        ("<domain type='kvm'><vcpu>99999999999</vcpu></domain>", "vCPUs"),
        ("<domain type='kvm'><vcpu>2</vcpu><memory unit='G'>99999999999999</memory></domain>", "memory"),
        (&OWN[..OWN.len() / 2], "cut"),
    ] {
        let refusal = patched(&own(), text).unwrap_err();
        assert!(matches!(refusal, GenerateError::Domain { .. }), "{refusal}");
        let said = refusal.to_string();
        assert!(said.starts_with("own.xml: ") && said.contains(word), "{said}");
        assert!(!refusal.hint().is_empty());
    }
    let many = "<domain type='kvm'><vcpu>7</vcpu><memory>4194304</memory></domain>";
    assert!(matches!(patched(&own(), many).unwrap_err(), GenerateError::TooMany { .. }));
}

#[test]
fn a_machine_of_another_kind_is_refused_by_name() {
    for (kind, word) in [("riscv64", "riscv64"), ("", "uname:machine")] {
        let [(_, machine), ..] = three();
        let refusal = machine.fact("uname:machine", kind).generate(&ENTRY).unwrap_err();
        assert!(refusal.to_string().contains(word), "{refusal}");
    }
}
