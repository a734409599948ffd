//! The audit of recorded machines of which some readings say anything at all: it never panics, has an
//! answer for every check, and finds the same twice.

#![cfg_attr(fuzzing, no_main)]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tactus_audit::{Intent, Subject, all, audit};
use tactus_model::facts::{Facts, Reading};
use tactus_model::finding::Role;

static MACHINES: LazyLock<Vec<Facts>> = LazyLock::new(|| {
    [
        include_str!("../../crates/tactus-audit/tests/machines/this-vm.json"),
        include_str!("../../crates/tactus-audit/tests/machines/debian-rt.json"),
        include_str!("../../crates/tactus-audit/tests/machines/debian-arm64.json"),
        include_str!("../../crates/tactus-audit/tests/machines/hwloc-xeon-smt.json"),
        include_str!("../../crates/tactus-audit/tests/machines/container-cgroup2.json"),
    ]
    .iter()
    .map(|text| serde_json::from_str(text).expect("a recorded machine"))
    .collect()
});

fuzz_target!(|data: &[u8]| {
    let [which, part, rest @ ..] = data else { return };
    let mut facts = MACHINES[usize::from(*which) % MACHINES.len()].clone();
    let names: Vec<String> = facts.0.keys().cloned().collect();
    for piece in rest.split(|byte| *byte == 0).take(32) {
        let [high, low, kind, text @ ..] = piece else { continue };
        let name = names[(usize::from(*high) * 256 + usize::from(*low)) % names.len()].clone();
        let text = String::from_utf8_lossy(text).into_owned();
        let reading = match kind % 8 {
            0 => Reading::Absent,
            1 => Reading::Unreadable(text),
            2 => Reading::Cut(text),
            _ => Reading::Text(text),
        };
        facts.0.insert(name, reading);
    }
    let role = [Role::Host, Role::Guest, Role::Container][usize::from(*part) % 3];
    let later = (part & 4 != 0).then(|| facts.clone());
    let carrier = (part & 8 != 0).then(|| MACHINES[0].clone());
    let intent = Intent { isolated: None, later, carrier, started: part & 16 != 0 };
    let subject = Subject::new(&facts, role, &intent);
    let found = audit(&subject);
    assert_eq!(found.findings.len(), all().count());
    assert_eq!(audit(&subject), found);
    for (_, check) in all() {
        let changes = (check.changes)(&subject);
        assert!(changes.iter().all(|change| change.check == check.id), "{}", check.id);
    }
});
