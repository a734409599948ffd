//! The audit of every machine among the fixtures, as a table: what a rule says of a whole machine
//! shows where it says too much.

use std::collections::BTreeMap;
use std::fmt::Write;

use tactus_audit::{Intent, Subject, audit};
use tactus_model::finding::{Audit, Role, Severity, State};
use tactus_report::audit::{Audited, Detail, text};
use tactus_report::render::text::Style;

use crate::machines::{MACHINES, machine};

fn role(name: &str) -> Role {
    match name {
        name if name.starts_with("debian-") => Role::Guest,
        "podman-container" | "container-cgroup2" => Role::Container,
        _ => Role::Host,
    }
}

fn audited(name: &str) -> Audit {
    audit(&Subject::new(&machine(name), role(name), &Intent::default()))
}

#[test]
fn every_machine_has_an_audit_that_can_be_read() {
    for name in MACHINES {
        let audit = audited(name);
        let mut table = String::new();
        // A check that does not concern a machine stands in the table of the next test: a new check changes no other snapshot.
        for finding in audit.findings.iter().filter(|finding| finding.state != State::NotApplicable) {
            let state = match finding.state {
                State::Finding => finding.severity.to_string(),
                state => state.to_string(),
            };
            let _ = writeln!(table, "{state:<14} {}: {}", finding.id, finding.message);
        }
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(*name, table) });
    }
}

#[test]
fn a_check_says_why_it_does_not_concern_a_machine() {
    let mut machines = BTreeMap::<String, Vec<&str>>::new();
    for name in MACHINES {
        let audit = audited(name);
        for finding in audit.findings.iter().filter(|finding| finding.state == State::NotApplicable) {
            machines.entry(format!("{}: {}", finding.id, finding.message)).or_default().push(name);
        }
    }
    let mut table = String::new();
    for (finding, names) in &machines {
        let _ = writeln!(table, "{finding}: {}", names.join(", "));
    }
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!("not-applicable", table) });
}

#[test]
fn a_machine_made_ready_has_nothing_grave_and_one_that_was_not_has() {
    let grave = |name: &str| {
        let audit = audited(name);
        let ids: Vec<String> = audit
            .found()
            .filter(|finding| finding.severity >= Severity::Major)
            .map(|finding| format!("{}: {}", finding.id, finding.message))
            .collect();
        ids
    };
    let left = grave("intel-bare-tuned");
    assert!(left.is_empty(), "{}", left.join("\n"));
    assert!(grave("intel-bare-untuned").len() >= 15, "{}", grave("intel-bare-untuned").join("\n"));
}

/// Machines that were never tuned. Those of hwloc's archives have only a part of the readings.
const UNTOUCHED: [&str; 11] = [
    "amd-epyc",
    "debian-cloud-6-12",
    "host-128",
    "hwloc-arm64-server",
    "hwloc-hybrid-lakefield",
    "hwloc-opteron",
    "hwloc-xeon-e7",
    "hwloc-xeon-smt",
    "intel-bare-untuned",
    "intel-hybrid",
    "this-vm",
];

#[test]
fn the_audit_of_an_untouched_machine_fits_one_screen() {
    for name in UNTOUCHED {
        let audit = audited(name);
        let page = text(&[Audited { environment: "host", audit: &audit }], Detail::Brief, Style::default());
        // A terminal of 100 columns breaks what is longer.
        let rows: usize = page.lines().map(|line| line.chars().count().div_ceil(100).max(1)).sum();
        assert!(rows <= 40, "{name}: {rows} rows\n{page}");
        let other = audit.findings.iter().filter(|finding| finding.state == State::NotApplicable).count();
        let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&format!("{other} not applicable")), "{name}: {other}\n{page}");
        // How many checks do not concern a machine grows with the catalogue.
        let filters = vec![(r"\d+ not\s+applicable", "[some] not applicable")];
        insta::with_settings!({ omit_expression => true, filters => filters }, {
            insta::assert_snapshot!(format!("brief-{name}"), page);
        });
    }
}

#[test]
fn the_first_three_actions_fix_half_of_the_findings() {
    for name in UNTOUCHED {
        let audit = audited(name);
        let fixed: usize = audit.actions.iter().take(3).map(|action| action.fixes.len()).sum();
        let found = audit.found().count();
        assert!(fixed * 2 >= found, "{name}: {fixed} of {found}: {:?}", audit.actions);
    }
}

#[test]
fn another_kernel_is_said_to_fix_only_what_asks_for_one() {
    for name in MACHINES {
        let kernels =
            audited(name).actions.into_iter().filter(|action| action.title == "Boot another kernel");
        for id in kernels.flat_map(|action| action.fixes) {
            let check = tactus_audit::find(&id).unwrap();
            assert!(format!("{} {}", check.fix, check.why).contains("kernel"), "{name}: {id}: {}", check.fix);
            assert!(!check.fix.starts_with("Another processor"), "{name}: {id}");
        }
    }
}

#[test]
fn a_finding_says_what_was_read_and_how_it_is_fixed() {
    for name in MACHINES {
        for finding in audited(name).found() {
            assert!(!finding.message.is_empty() && !finding.fix.is_empty(), "{name}: {}", finding.id);
            // A finding about every container needs no reading.
            let read = !finding.read.is_empty() || finding.id == "ctr-separation";
            assert!(read, "{name}: {} read nothing", finding.id);
            let filled = [&finding.message, &finding.fix, &finding.expected, &finding.risk];
            assert!(
                filled.iter().all(|text| !text.contains("{isolated") && !text.contains("{housekeeping")),
                "{name}: {}",
                finding.id
            );
        }
    }
}

#[test]
fn in_a_virtual_machine_nothing_of_the_hardware_is_called_ok() {
    for name in MACHINES {
        let facts = machine(name);
        if !facts.virtualized() {
            continue;
        }
        for finding in audited(name).findings {
            let hardware = tactus_audit::find(&finding.id).is_some_and(|check| check.hardware);
            assert!(!hardware || finding.state != State::Ok, "{name}: {}", finding.id);
        }
    }
}
