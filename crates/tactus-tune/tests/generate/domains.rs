//! libvirt's own schema of domains, by `virt-xml-validate`.

use std::path::Path;
use std::process::Command;

use tactus_audit::{Intent, Subject};
use tactus_model::finding::Role;
use tactus_tune::generate::{self, Accel, GenerateRequest, GuestOptions, Page, libvirt};

use crate::common::{generated, has, machine, only_file, run, skipped, words};

fn validated(file: &Path) {
    let output = run(Command::new("virt-xml-validate").arg(file).arg("domain"));
    assert!(output.status.success(), "{}\n{}", words(&output), std::fs::read_to_string(file).unwrap());
}

#[test]
fn libvirts_schema_accepts_every_domain() {
    if !has("virt-xml-validate") || !has("xmllint") {
        return;
    }
    for (name, vendor) in [("x86_64", "GenuineIntel"), ("x86_64", "AuthenticAMD"), ("aarch64", "")] {
        let facts = machine(name, vendor, 8);
        for (accel, page) in [(Accel::Kvm, Page::G1), (Accel::Kvm, Page::Base), (Accel::Tcg, Page::M2)] {
            let options = GuestOptions { accel: Some(accel), page: Some(page), ..GuestOptions::default() };
            let dir = generated("libvirt", &facts, "2-7", &options);
            validated(&only_file(dir.path()));
        }
    }
}

#[test]
fn libvirts_schema_accepts_a_users_own_domain_afterwards() {
    if !has("virt-xml-validate") || !has("xmllint") {
        return;
    }
    let own = include_str!("../fixtures/domain.xml");
    let facts = machine("x86_64", "GenuineIntel", 8);
    let intent = Intent { isolated: Some("2-7".parse().unwrap()), ..Intent::default() };
    let subject = Subject::new(&facts, Role::Host, &intent);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.xml");
    std::fs::write(&file, own).unwrap();
    validated(&file);
    for accel in [Accel::Kvm, Accel::Tcg] {
        let options = GuestOptions { accel: Some(accel), ..GuestOptions::default() };
        let request = GenerateRequest {
            subject: &subject,
            profile: "realtime-virtual-host",
            changes: &[],
            withheld: &[],
            options: &options,
            says: generate::of_check,
        };
        let (text, _) = libvirt::patch(own, "own.xml", &request).unwrap();
        std::fs::write(&file, text).unwrap();
        validated(&file);
    }
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    if !has("virt-xml-validate") || !has("xmllint") {
        return;
    }
    let dir = generated("libvirt", &machine("x86_64", "GenuineIntel", 8), "2-7", &GuestOptions::default());
    let file = only_file(dir.path());
    let text = std::fs::read_to_string(&file).unwrap().replace("scheduler='fifo'", "scheduler='soon'");
    std::fs::write(&file, text).unwrap();
    assert!(!run(Command::new("virt-xml-validate").arg(&file).arg("domain")).status.success());
}

/// libvirt's answer for a domain: from its QEMU driver within virsh, with all of its files below a separate
/// directory, or from the driver for tests.
fn virsh(driver: &str, words: &[&str], file: &Path) -> std::process::Output {
    run(Command::new("virsh").args(["-q", "-c", driver]).args(words).arg(file))
}

#[test]
fn libvirt_defines_every_domain() {
    if !has("virsh") {
        return;
    }
    for (name, vendor) in [("x86_64", "GenuineIntel"), ("x86_64", "AuthenticAMD"), ("aarch64", "")] {
        let facts = machine(name, vendor, 8);
        for accel in [Accel::Kvm, Accel::Tcg] {
            let options = GuestOptions { accel: Some(accel), ..GuestOptions::default() };
            let dir = generated("libvirt", &facts, "2-7", &options);
            let defined = virsh("test:///default", &["define"], &only_file(dir.path()));
            assert!(defined.status.success(), "{}", words(&defined));
        }
    }
}

#[test]
fn libvirts_qemu_driver_makes_a_command_line_of_a_domain() {
    if std::env::consts::ARCH != "x86_64" {
        return skipped("the domain is for x86_64");
    }
    if !["virsh", "libvirtd", "qemu-system-x86_64"].into_iter().all(has) {
        return;
    }
    if !rustix::process::getuid().is_root() {
        return skipped("libvirt's QEMU driver within virsh is tried as root");
    }
    let options = GuestOptions {
        accel: Some(Accel::Tcg),
        page: Some(Page::Base),
        memory: Some("64M".parse().unwrap()),
        vcpus: Some(2),
        ..GuestOptions::default()
    };
    let dir = generated("libvirt", &machine("x86_64", "GenuineIntel", 8), "2-7", &options);
    let file = only_file(dir.path());
    let root = tempfile::tempdir().unwrap();
    let driver = format!("qemu:///embed?root={}", root.path().display());
    let defined = virsh(&driver, &["define"], &file);
    assert!(defined.status.success(), "{}", words(&defined));
    // Its network is one that this libvirt has not.
    let text = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once("    <interface").unwrap();
    let (_, after) = rest.split_once("</interface>\n").unwrap();
    std::fs::write(&file, format!("{before}{after}")).unwrap();
    let line = virsh(&driver, &["domxml-to-native", "qemu-argv"], &file);
    let said = words(&line);
    assert!(line.status.success(), "{said}");
    for word in
        ["-accel tcg", "-cpu max", "mem-lock=on", "-smp 2,sockets=1", "-name guest=rt-guest,debug-threads=on"]
    {
        assert!(said.contains(word), "{word}: {said}");
    }
    // `-no-hpet` before QEMU 8.
    assert!(said.contains("hpet=off") || said.contains("-no-hpet"), "{said}");
    assert!(!said.contains("balloon") && !said.contains("usb-"), "{said}");
    // The schema accepts this, and QEMU's driver does not.
    let wrong =
        std::fs::read_to_string(&file).unwrap().replace("vcpusched vcpus='0-1'", "vcpusched vcpus='0-9'");
    std::fs::write(&file, wrong).unwrap();
    assert!(!virsh(&driver, &["define"], &file).status.success());
}
