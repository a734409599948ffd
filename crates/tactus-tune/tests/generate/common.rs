//! Machines, and a directory with what was generated for them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tactus_audit::{Intent, Subject};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_tune::generate::{self, GenerateRequest, GuestOptions};

#[expect(clippy::print_stderr, reason = "a test that could not be done says so")]
pub fn skipped(why: &str) {
    assert!(std::env::var_os("TACTUS_TEST_ALL").is_none(), "skipped, and TACTUS_TEST_ALL is set: {why}");
    eprintln!("skipped: {why}");
}

/// Whether a program is here; says so if it is not.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let here = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    if !here {
        skipped(&format!("{program} is not installed"));
    }
    here
}

/// The Python of `scripts/setup.sh test`, if it has this package; says so if not.
pub fn tools(package: &str) -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let python = target.join("tools/bin/python3");
    let find = format!("import importlib.util, sys; sys.exit(importlib.util.find_spec('{package}') is None)");
    let here = python.exists() && run(Command::new(&python).args(["-c", &find])).status.success();
    if !here {
        skipped(&format!("the Python package {package} is not installed (scripts/setup.sh test)"));
    }
    here.then_some(python)
}

/// The facts of a machine with these many CPUs of one node, written by hand.
pub fn machine(name: &str, vendor: &str, cpus: u32) -> Facts {
    let mut facts = Facts::default();
    facts.keep("uname:machine", name);
    facts.keep("/proc/cpuinfo", format!("vendor_id\t: {vendor}\nflags\t\t: fpu pdpe1gb\n"));
    facts.keep("/sys/devices/system/cpu/online", format!("0-{}", cpus - 1));
    facts.keep("/sys/devices/system/node/node0/cpulist", format!("0-{}", cpus - 1));
    facts
}

/// Generates into a directory.
pub fn generated(kind: &str, facts: &Facts, isolate: &str, options: &GuestOptions) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let intent = Intent { isolated: Some(isolate.parse().unwrap()), ..Intent::default() };
    let subject = Subject::new(facts, Role::Host, &intent);
    let request = GenerateRequest {
        subject: &subject,
        profile: "realtime-virtual-host",
        changes: &[],
        withheld: &[],
        options,
        says: generate::of_check,
    };
    let output = (generate::find(kind).unwrap().generate)(&request).unwrap();
    for file in output.files {
        let path = dir.path().join(&file.name);
        std::fs::write(&path, &file.text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(file.mode)).unwrap();
    }
    dir
}

pub fn only_file(dir: &Path) -> PathBuf {
    std::fs::read_dir(dir).unwrap().next().unwrap().unwrap().path()
}

pub fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

pub fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
