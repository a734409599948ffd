use super::super::testing::{Machine, says, shown, three};
use super::super::{Accel, GenerateError};
use super::tree::Tree;
use super::{ENTRY, patch};

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
    // What tactus generates needs no change by tactus.
    for (_, machine) in three() {
        let text = machine.generate(&ENTRY).unwrap().files.remove(0).text;
        assert_eq!(patched(&machine, &text).unwrap().0, text);
    }
}

#[test]
fn what_is_no_domain_is_refused_by_name() {
    for (text, word) in [
        ("", "no element"),
        ("<network/>", "<network>"),
        ("<domain/>", "not said"),
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
