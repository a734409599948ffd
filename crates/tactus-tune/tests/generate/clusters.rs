//! The YAML for clusters keeps to the schemas of those who read it.

use std::path::Path;
use std::process::{Command, Output};

use tactus_tune::generate::{GuestOptions, Page};

use crate::common::{generated, machine, run, skipped, tools, words};

/// Each generated file with its schema.
const FILES: [(&str, &str, &str); 4] = [
    ("kubernetes", "50-tactus-kubelet.conf", "kubelet"),
    ("kubernetes", "tactus-performance-profile.yaml", "performance-profile"),
    ("kubernetes", "rt-guest-pod.yaml", "pod"),
    ("kubevirt", "rt-guest-vm.yaml", "virtual-machine"),
];

fn checked(schema: &str, file: &Path) -> Output {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    run(Command::new("/usr/bin/python3")
        .arg(tests.join("generate/yaml_holds.py"))
        .arg(tests.join(format!("fixtures/schemas/{schema}.json")))
        .arg(file))
}

fn able() -> bool {
    let there = Path::new("/usr/bin/python3").exists()
        && run(Command::new("/usr/bin/python3").args(["-c", "import yaml, jsonschema"])).status.success();
    if !there {
        skipped("the system's Python has no yaml and jsonschema");
    }
    there
}

#[test]
fn every_document_keeps_to_its_schema() {
    if !able() {
        return;
    }
    // A single CPU in a list is a text, too, and not a number.
    for (name, vendor, page, isolate) in [
        ("x86_64", "GenuineIntel", Page::G1, "2-7"),
        ("x86_64", "AuthenticAMD", Page::M2, "2,3,5"),
        ("aarch64", "", Page::Base, "6,7"),
    ] {
        let options = GuestOptions { page: Some(page), ..GuestOptions::default() };
        for (kind, file, schema) in FILES {
            let dir = generated(kind, &machine(name, vendor, 8), isolate, &options);
            let output = checked(schema, &dir.path().join(file));
            assert!(output.status.success(), "{file}, isolated {isolate}: {}", words(&output));
        }
    }
}

#[test]
fn a_schema_refuses_an_unknown_field_and_a_number_for_a_text() {
    if !able() {
        return;
    }
    let mistakes = [
        ("cpuManagerPolicy:", "cpuManagementPolicy:"),
        ("balanceIsolated: false", "balanceIsolated: \"no\""),
        ("resources:", "ressources:"),
        ("dedicatedCpuPlacement: true", "dedicatedCPUPlacement: true"),
    ];
    for ((kind, file, schema), (right, wrong)) in FILES.into_iter().zip(mistakes) {
        let dir = generated(kind, &machine("x86_64", "GenuineIntel", 8), "2-7", &GuestOptions::default());
        let path = dir.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(right), "{file}: {right}");
        std::fs::write(&path, text.replace(right, wrong)).unwrap();
        let output = checked(schema, &path);
        assert!(
            !output.status.success() && words(&output).contains("ValidationError"),
            "{file}: {}",
            words(&output)
        );
    }
}

#[test]
fn kubernetes_own_schema_takes_the_pod_and_the_job_and_refuses_an_unknown_field() {
    let Some(python) = tools("kubernetes_validate") else { return };
    let validated = |file: &Path| {
        run(Command::new(python.with_file_name("kubernetes-validate")).arg("--strict").arg(file))
    };
    for (name, vendor, page) in [("x86_64", "GenuineIntel", Page::G1), ("aarch64", "", Page::Base)] {
        let options = GuestOptions { page: Some(page), ..GuestOptions::default() };
        for (kind, file) in
            [("kubernetes", "rt-guest-pod.yaml"), ("kubernetes-job", "rt-guest-latency-job.yaml")]
        {
            let dir = generated(kind, &machine(name, vendor, 8), "2-7", &options);
            let file = dir.path().join(file);
            let output = validated(&file);
            assert!(output.status.success(), "{}", words(&output));
            let wrong =
                std::fs::read_to_string(&file).unwrap().replace("securityContext:", "securityKontext:");
            std::fs::write(&file, wrong).unwrap();
            assert!(!validated(&file).status.success());
        }
    }
}
