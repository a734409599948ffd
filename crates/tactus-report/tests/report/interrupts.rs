//! How interrupts arrive, from the recorded and written machines of the audit's tests.

use std::path::Path;

use tactus_model::bundle::{Contents, RowResult};
use tactus_model::document::InterruptsEntry;
use tactus_model::facts::{Facts, Reading};
use tactus_report::document;
use tactus_report::render::html;

use crate::common::{Shape, Span, empty, environment, measured, planned};

/// The facts of a machine, as the probe recorded them.
#[expect(clippy::disallowed_methods, reason = "a recorded machine is no machine: it is read beside the door")]
fn recorded(name: &str) -> Facts {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tactus-audit/tests/machines");
    let text = std::fs::read_to_string(machines.join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A bundle with the facts of one environment, measured on CPUs 1 and 2.
fn of(name: &str, kind: &str, facts: Facts) -> Contents {
    let mut contents = empty();
    contents.plan.environment.insert(name.into(), environment(kind));
    contents.facts.insert(name.into(), facts);
    let result: RowResult = planned("idle", name, kind, Vec::new());
    contents.rows.push(measured(result, tactus_model::Evidence::BareMetal, Shape::IDLE, Span::QUICK, 1));
    contents
}

fn one(contents: &Contents) -> InterruptsEntry {
    let mut all = document(contents).interrupts;
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn messages_and_lines_of_a_recorded_machine_are_told_apart() {
    let entry = one(&of("host", "host", recorded("debian-rt.json")));
    assert_eq!((entry.place.as_str(), entry.measured.as_str()), ("host", "1,2"));
    assert!(entry.devices.iter().any(|one| one.message && one.chip.contains("MSI")), "{entry:?}");
    assert!(entry.devices.iter().any(|one| !one.message && one.chip.contains("IO-APIC")), "{entry:?}");
    assert!(entry.devices.iter().all(|one| !one.handlers.is_empty() && one.allowed.is_some()));
    assert!(entry.devices.iter().any(|one| one.threads == ["FIFO 50"]), "PREEMPT_RT: handlers are threads");
}

#[test]
fn the_page_has_every_interrupt_and_those_first_that_arrive_where_it_was_measured() {
    let contents = of("host", "host", recorded("debian-rt.json"));
    let page = html::render(&contents).unwrap();
    assert!(page.contains("How interrupts arrive") && page.contains("Interrupts: host"));
    for device in &one(&contents).devices {
        assert!(page.contains(&device.chip), "{}", device.chip);
    }
}

#[test]
fn a_container_has_the_interrupts_of_its_machine_and_no_separate_list() {
    let contents = of("podman", "podman", recorded("podman-container.json"));
    assert!(document(&contents).interrupts.is_empty());
    assert!(!html::render(&contents).unwrap().contains("How interrupts arrive"));
}

#[test]
fn posted_interrupts_are_told_by_kvms_parameter_and_the_kernels_count() {
    let mut facts = Facts::default();
    let rows = "           CPU0       CPU1\n 26: 1 0 PCI-MSI-0000:00:03.0 0-edge eth0\n\
                PIN:          5          7   Posted-interrupt notification event\n\
                PIW:          0          1   Posted-interrupt wakeup event\n";
    facts.keep("/proc/interrupts", rows);
    assert_eq!(one(&of("host", "host", facts.clone())).posted, None, "KVM does not run");
    facts.keep("/sys/module/kvm_intel/parameters/enable_apicv", "Y");
    let posted = one(&of("host", "host", facts.clone())).posted.unwrap();
    assert_eq!((posted.parameter.as_str(), posted.notified), ("kvm_intel.enable_apicv=Y", Some(13)));
    facts.keep("/proc/interrupts", "           CPU0\n 26: 1 PCI-MSI-0000:00:03.0 0-edge eth0\n");
    assert_eq!(one(&of("host", "host", facts)).posted.unwrap().notified, None);
}

#[test]
fn where_an_interrupt_arrives_is_not_known_without_its_affinity() {
    let mut facts = Facts::default();
    facts.keep("/proc/interrupts", "           CPU0\n 26: 1 PCI-MSI-0000:00:03.0 0-edge eth0\n");
    let page = html::render(&of("host", "host", facts.clone())).unwrap();
    assert!(page.contains(">not known</td>"), "{page}");
    facts.keep("/proc/irq/26/effective_affinity_list", "2");
    assert!(html::render(&of("host", "host", facts)).unwrap().contains(">1 (CPUs 1,2)</td>"));
}

#[test]
fn interrupts_that_could_not_be_read_are_not_said_to_be_none() {
    let mut facts = Facts::default();
    facts.0.insert("/proc/interrupts".into(), Reading::Unreadable("denied".into()));
    assert!(document(&of("host", "host", facts)).interrupts.is_empty());
}
