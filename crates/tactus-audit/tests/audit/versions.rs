//! The advice for a kernel contains only settings that its version knows.

use std::collections::BTreeSet;

use tactus_audit::{Intent, Kernel, Subject, all};
use tactus_model::change::Target;
use tactus_model::facts::Facts;
use tactus_model::finding::Role;

use crate::machines::{MACHINES, machine};

/// Every parameter that a check may ask for at boot, and the version of Linux that first knew it; (0, 0): older
/// than 3.10, or not the kernel's own. Of `Documentation/admin-guide/kernel-parameters.txt` and `docs/reference/audit-sources.md`.
const KNOWN_SINCE: &[(&str, (u32, u32))] = &[
    ("amd_pstate", (6, 1)),
    ("audit", (0, 0)),
    ("clocksource", (0, 0)),
    ("cpuidle_haltpoll.force", (5, 4)),
    ("default_hugepagesz", (0, 0)),
    ("hugepages", (0, 0)),
    ("hugepagesz", (0, 0)),
    ("idle", (0, 0)),
    ("intel_idle.max_cstate", (0, 0)),
    ("intel_iommu", (0, 0)),
    ("intel_pstate", (3, 10)),
    ("iommu", (0, 0)),
    ("iommu.passthrough", (4, 12)),
    ("irqaffinity", (4, 1)),
    ("isolcpus", (0, 0)),
    ("kvm-arm.wfi_trap_policy", (6, 11)),
    ("mce", (0, 0)),
    ("nmi_watchdog", (0, 0)),
    ("nohz", (0, 0)),
    ("nohz_full", (3, 10)),
    ("nosmt", (4, 19)),
    ("nosoftlockup", (0, 0)),
    ("pcie_aspm.policy", (0, 0)),
    ("preempt", (5, 12)),
    ("processor.max_cstate", (0, 0)),
    ("rcu_nocb_poll", (3, 10)),
    ("rcu_nocbs", (3, 10)),
    ("rcupdate.rcu_normal_after_boot", (4, 5)),
    ("rcutree.nohz_full_patience_delay", (6, 11)),
    ("skew_tick", (0, 0)),
    ("systemd.cpu_affinity", (0, 0)),
    ("threadirqs", (0, 0)),
    ("transparent_hugepage", (0, 0)),
    ("tsc", (0, 0)),
];

/// The boot parameters that all checks ask for on a system, with their values.
fn asked(facts: &Facts, role: Role) -> BTreeSet<(String, String)> {
    let intent = Intent::default();
    let subject = Subject::new(facts, role, &intent);
    let changes = all().flat_map(|(_, check)| (check.changes)(&subject));
    changes
        .filter_map(|change| match change.target {
            Target::Kernel { parameter } => Some((parameter, change.then)),
            _ => None,
        })
        .collect()
}

#[test]
fn no_machine_is_asked_for_a_boot_parameter_that_its_kernel_does_not_know() {
    for name in MACHINES {
        let facts = machine(name);
        let kernel = Kernel::of(&facts);
        for role in [Role::Host, Role::Guest] {
            for (parameter, then) in asked(&facts, role) {
                let Some((_, (major, minor))) = KNOWN_SINCE.iter().find(|(word, _)| *word == parameter)
                else {
                    panic!("{name}: {parameter} is not in the table");
                };
                assert!(
                    !kernel.before(*major, *minor),
                    "{name}: {parameter}={then} is of Linux {major}.{minor}"
                );
            }
        }
    }
}

#[test]
fn an_old_kernel_is_asked_for_less_and_a_flag_that_it_does_not_know_is_not_among_it() {
    let of = |release: &str| {
        let mut facts = machine("amd-epyc");
        facts.keep("uname:release", release);
        asked(&facts, Role::Host)
    };
    let isolcpus = |release: &str| of(release).into_iter().find(|(word, _)| word == "isolcpus").unwrap().1;
    assert_eq!(isolcpus("3.10.0-1160.el7.x86_64"), "1-15,17-31");
    assert_eq!(isolcpus("5.5.19"), "1-15,17-31");
    assert_eq!(isolcpus("5.6.0"), "managed_irq,domain,1-15,17-31");
    assert!(!of("5.5.19").iter().any(|(_, then)| then.contains("managed_irq")));
}
