//! libvirt's own schema of domains, by `virt-xml-validate`.

use std::path::Path;
use std::process::Command;

use tactus_audit::{Intent, Subject};
use tactus_model::finding::Role;
use tactus_tune::generate::{self, Accel, GenerateRequest, GuestOptions, Page, libvirt};

use crate::common::{generated, has, machine, only_file, run, words};

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
